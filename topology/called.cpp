#include "topology/called.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

using Words = std::vector<std::string>;

std::uint32_t digits_in(std::string_view digits) {
  return number_from<std::uint32_t>(digits).value_or(0);
}

// Takes "8x" or "8 *" off the front of the text.
std::uint32_t take_first_count(std::string& text) {
  constexpr std::uint32_t most = 1024;  // "4090x2" begins with a card
  const std::size_t digits = text.find_first_not_of("0123456789");
  if (digits == 0 || digits == std::string::npos) return 0;
  const std::size_t sign = text.find_first_not_of(' ', digits);
  const std::uint32_t count = digits_in(std::string_view(text).substr(0, digits));
  if (sign == std::string::npos || (text[sign] != 'x' && text[sign] != '*') || count > most)
    return 0;
  text.erase(0, sign + 1);
  return count;
}

// Takes ":8", or "x8" with another sign, off the end of the text.
std::uint32_t take_last_count(std::string& text, char sign) {
  const std::size_t place = text.find_last_not_of("0123456789");
  if (place == std::string::npos || place == 0 || text[place] != sign) return 0;
  const std::uint32_t count = digits_in(std::string_view(text).substr(place + 1));
  if (count > 0) text.erase(place);
  return count;
}

// Takes "8x " off the front, or ":8" off the end.
std::uint32_t take_count(std::string& text) {
  const std::uint32_t count = take_first_count(text);
  return count > 0 ? count : take_last_count(text, ':');
}

// Makers, sockets and kinds of memory tell no two cards of the catalogue apart.
bool says_nothing(std::string_view word) {
  constexpr std::array<std::string_view, 25> words{
      "nvidia", "geforce",    "tesla",   "quadro", "amd",       "instinct", "gpu",    "gpus", "rtx",
      "gtx",    "generation", "edition", "server", "blackwell", "ampere",   "hopper", "oam",  "sxm",
      "sxm2",   "sxm3",       "sxm4",    "sxm5",   "hbm2",      "hbm3",     "hbm3e"};
  return std::find(words.begin(), words.end(), word) != words.end() || word.empty();
}

void add_word(std::string_view word, Words& words) {
  constexpr std::string_view family = "rtx";
  if (word.starts_with(family) && word.size() > family.size()) word.remove_prefix(family.size());
  const std::size_t digits = std::min(word.find_first_not_of("0123456789"), word.size());
  const std::string_view rest = word.substr(digits);
  if (digits == 0 || rest.empty()) {
    if (!says_nothing(word)) words.emplace_back(word);
    return;
  }
  words.emplace_back(word.substr(0, digits));
  if (rest != "gb" && rest != "g" && rest != "gib") add_word(rest, words);
}

// Returns "a100", "80" of "NVIDIA A100-SXM4-80GB".
Words words_of(std::string_view name) {
  Words words;
  for (std::size_t begin = 0; begin < name.size();) {
    std::size_t end = begin;
    while (end < name.size() && is_letter_or_digit(name[end])) ++end;
    add_word(name.substr(begin, end - begin), words);
    begin = std::max(end, begin + 1);
  }
  return words;
}

Document table_of_words(const Catalogue& data) {
  return read_document(data.file("topology/called.yaml"));
}

std::string gpu_of(const Catalogue& data, const Words& words) {
  for (const std::string& gpu : names_on(data, gpu_shelf))
    if (words_of(gpu) == words) return gpu;
  const Document document = table_of_words(data);
  const Table cards = document.root().table("cards");
  return cards.text_or(fmt::format("{}", fmt::join(words, " ")), "");
}

// Returns how many GB or GiB the card is sold with.
std::uint32_t memory_of(const Catalogue& data, const std::string& gpu) {
  const std::string said = open_entry(data, gpu_shelf, gpu).peek("memory.capacity").value_or("");
  return digits_in(std::string_view(said).substr(0, said.find(' ')));
}

// Returns the card of these words, among which may stand the memory that it has in any case.
std::string card_of(const Catalogue& data, const Words& words) {
  if (words.empty()) return "";
  std::string gpu = gpu_of(data, words);
  for (std::size_t i = words.size(); gpu.empty() && words.size() > 1 && i-- > 0;) {
    const std::uint32_t memory = digits_in(words[i]);
    if (memory == 0) continue;
    Words others = words;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const std::string card = gpu_of(data, others);
    if (!card.empty() && memory_of(data, card) == memory) gpu = card;
  }
  return gpu;
}

// Returns the node of a card that differs from another in its links alone, and how many of it are
// asked for: "A800-80G:4".
std::string only_node(const Catalogue& data, std::string_view said, std::uint32_t& count) {
  std::string text = in_small_letters(said);
  count = take_count(text);
  const Words words = words_of(text);
  const Document document = table_of_words(data);
  return words.empty() ? "" : document.root().table("only_in").text_or(words.front(), "");
}

}  // namespace

std::optional<CalledCard> card_called(const Catalogue& data, std::string_view said) {
  std::string text = in_small_letters(said);
  std::uint32_t count = take_count(text);
  std::string gpu = card_of(data, words_of(text));
  if (gpu.empty() && count == 0) {
    count = take_last_count(text, 'x');
    if (count > 0) gpu = card_of(data, words_of(text));
  }
  if (gpu.empty()) return std::nullopt;
  return CalledCard{.gpu = std::move(gpu), .count = count};
}

std::string why_no_machine(const Catalogue& data, std::string_view said) {
  const Words words = words_of(in_small_letters(said));
  const Document document = table_of_words(data);
  for (const Table& each : document.root().tables("not_modelled"))
    for (const std::string& known : each.texts("words"))
      if (std::any_of(words.begin(), words.end(), [&](const std::string& word) {
            return word == known || (known.size() > 2 && word.starts_with(known));
          }))
        return each.text("why");
  return "";
}

std::string node_of_card(const Catalogue& data, const std::string& gpu, std::uint32_t gpus,
                         std::uint32_t& found) {
  const Words words = words_of(gpu);
  std::string best;
  found = 0;
  for (const std::string& node : names_on(data, node_shelf)) {
    const Words of_node = words_of(node);
    if (of_node.empty() || words.empty() || !of_node.front().starts_with(words.front())) continue;
    const Document document = open_entry(data, node_shelf, node);
    if (document.peek("gpu") != gpu) continue;
    const std::uint32_t count = digits_in(document.peek("parts.gpu").value_or("0"));
    const bool enough = count >= gpus, had = found >= gpus;
    const bool better = best.empty() || (enough && !had) || (enough && had && count < found) ||
                        (!enough && !had && count > found) ||
                        (count == found && node.size() < best.size());
    if (!better) continue;
    best = node;
    found = count;
  }
  return best;
}

void settle_machine(const Catalogue& data, std::uint32_t all, ClusterChoice& choice) {
  std::uint32_t each = 0;
  const bool entry = choice.name.empty() || is_on(data, node_shelf, choice.name) ||
                     is_on(data, cluster_shelf, choice.name);
  std::uint32_t count = 0;
  if (const std::string only = entry ? "" : only_node(data, choice.name, count); !only.empty()) {
    if (all == 0 && !choice.gpus) all = count;
    choice.name = only;
  } else if (const auto card = entry ? std::nullopt : card_called(data, choice.name)) {
    if (all == 0 && !choice.gpus) all = card->count;
    const std::uint32_t nodes = std::max(choice.nodes.value_or(1), 1u);
    const std::uint32_t wanted = choice.gpus.value_or(std::max(1u, all / nodes));
    const std::string node = node_of_card(data, card->gpu, wanted, each);
    if (node.empty()) return;
    choice.name = node;
  }
  if (all == 0) return;
  if (each == 0 && is_on(data, cluster_shelf, choice.name))
    each =
        digits_in(open_entry(data, node_shelf,
                             open_entry(data, cluster_shelf, choice.name).peek("node").value_or(""))
                      .peek("parts.gpu")
                      .value_or("0"));
  else if (each == 0 && is_on(data, node_shelf, choice.name))
    each = digits_in(open_entry(data, node_shelf, choice.name).peek("parts.gpu").value_or("0"));
  if (each == 0) return;  // refused for its name
  const std::uint32_t nodes = all <= each ? 1 : all / each;
  if (!choice.nodes && nodes > most_nodes)
    throw UserError(fmt::format("{} GPUs are {} nodes of {} ({}); expected at most {} nodes", all,
                                nodes, each, choice.name, most_nodes));
  if (!choice.nodes) choice.nodes = nodes;
  const std::uint32_t of_node = all / *choice.nodes;
  if (of_node * *choice.nodes != all || of_node > each)
    throw UserError(fmt::format("{} GPUs are no whole number of nodes of {} ({}): {} or {}", all,
                                each, choice.name, std::max(1u, all / each) * each,
                                (all / each + 1) * each));
  if (of_node != each || choice.gpus) choice.gpus = of_node;
}

}  // namespace stepsim
