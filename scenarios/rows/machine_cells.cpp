#include "scenarios/rows/machine_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

#include "scenarios/rows/step_row.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

constexpr double giga = 1e9, gibi = 1024.0 * 1024.0 * 1024.0;
constexpr double least_memory = 8, most_memory = 300;  // GB: beyond it is a host's
constexpr double near = 0.04;                          // sizes are rounded

bool begins_with_digit(std::string_view word) {
  return !word.empty() && is_digit(word.front());
}

// Takes the number that a word begins with; what follows stays in `word`.
std::optional<double> take_number(std::string_view& word) {
  if (!begins_with_digit(word)) return std::nullopt;
  double value = 0;
  const auto [rest, error] =
      std::from_chars(word.data(), word.data() + word.size(), value, std::chars_format::fixed);
  if (error != std::errc()) return std::nullopt;
  word.remove_prefix(static_cast<std::size_t>(rest - word.data()));
  return value;
}

// "8xh100" counts, "h100sxm5" and "h100pcie" say a form as well.
void add_word(std::string_view word, std::vector<std::string>& words) {
  std::string_view rest = word;
  if (take_number(rest) && rest.size() > 1 && rest[0] == 'x' && is_letter(rest[1]))
    word = rest.substr(1);
  for (const std::string_view form : {"sxm", "pcie", "nvl"}) {
    const std::size_t place = word.find(form);
    if (place == std::string_view::npos || place == 0) continue;
    const std::string_view behind = word.substr(place + form.size());
    if (!std::ranges::all_of(behind, is_digit)) continue;
    words.emplace_back(word.substr(0, place));
    word = word.substr(place);
  }
  words.emplace_back(word);
}

bool is_size_unit(std::string_view word) {
  return word == "gb" || word == "gib" || word == "g";
}

// Returns whether PCIe is the way to the host: "PCIe Gen4", "PCIe 5.0 x16", "PCIe switch".
bool is_of_slot(std::string_view next) {
  constexpr std::array<std::string_view, 12> words{"3",   "4",   "5",   "6",      "3.0",      "4.0",
                                                   "5.0", "6.0", "x16", "switch", "switches", "to"};
  return next.starts_with("gen") || holds(words, next);
}

// A card has a name, and apart from it the size and the form, which people put in any place.
struct Card {
  std::vector<std::string> words;
  double memory = 0;
  std::string form;
};

Card card_in(std::string_view text) {
  const std::vector<std::string> words = machine_words_in(text);
  Card card;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view next = i + 1 < words.size() ? std::string_view(words[i + 1]) : "";
    std::string_view unit = word;
    const auto size = take_number(unit);
    const bool apart = size && unit.empty() && is_size_unit(next);
    if (size && (apart || is_size_unit(unit))) {
      if (card.memory == 0 && *size >= least_memory && *size <= most_memory) card.memory = *size;
      i += apart ? 1 : 0;
      continue;
    }
    const bool sxm = word.starts_with("sxm");
    if (sxm || word == "nvl" || (word == "pcie" && !is_of_slot(next))) {
      if (card.form.empty()) card.form = sxm ? "sxm" : word;
      continue;
    }
    card.words.emplace_back(word);
  }
  return card;
}

// Before a semicolon stands the card, behind it what it is connected with.
Card card_of(std::string_view text) {
  const std::size_t place = text.find(';');
  Card card = card_in(text.substr(0, place));
  if (place != std::string_view::npos) append(card.words, machine_words_in(text.substr(place)));
  return card;
}

// The words of the catalogue's nodes are few, and compared with every row.
const Card& known_card(const std::string& word) {
  static std::map<std::string, Card> known;
  const auto place = known.find(word);
  return place != known.end() ? place->second : known.emplace(word, card_of(word)).first->second;
}

bool about(double a, double b) {
  return b > 0 && std::abs(a / b - 1) <= near;
}

// These are the words of one node, as cards.
struct NodeCards {
  std::vector<const Card*> cards;
  double memory = 0;  // bytes

  bool of_size(double wanted) const {
    if (wanted <= 0 || about(wanted, memory / giga) || about(wanted, memory / gibi)) return true;
    return std::ranges::any_of(cards,
                               [&](const Card* card) { return about(wanted, card->memory); });
  }
  bool of_form(std::string_view wanted) const {
    const bool board = wanted.empty() || wanted == "sxm";
    return std::ranges::any_of(cards, [&](const Card* card) {
      return board ? card->form.empty() || card->form == "sxm" : card->form == wanted;
    });
  }
};

NodeCards cards_of(const MachineWords& machines, std::size_t node) {
  NodeCards result{{}, machines.of_node[node].memory};
  for (const std::string& word : machines.nodes[node].second)
    result.cards.push_back(&known_card(word));
  return result;
}

// A match says how well a node's words stand in a row: their letters, and then whether they say no
// more.
struct Match {
  std::size_t length = 0;
  bool plain = false;

  friend auto operator<=>(const Match&, const Match&) = default;
};

Match match(const NodeCards& node, const std::vector<std::string>& text, std::size_t hardware) {
  Match best;
  for (const Card* card : node.cards) {
    const auto place =
        std::search(text.begin(), text.end(), card->words.begin(), card->words.end());
    if (card->words.empty() || place == text.end() ||
        static_cast<std::size_t>(place - text.begin()) >= hardware)
      continue;
    Match found{0, card->memory == 0 && card->form.empty()};
    for (const std::string& word : card->words) found.length += word.size();
    best = std::max(best, found);
  }
  return best;
}

std::string no_such_card(std::string_view hardware, const std::vector<std::string>& nodes) {
  const std::string what =
      hardware.empty() ? "the hardware" : fmt::format("the hardware \"{}\"", hardware);
  return nodes.empty() ? what
                       : fmt::format("{}: of that name the catalogue has {}", what, one_of(nodes));
}

bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return contains(text, word); });
}

// Returns how many gigabits "Gb/s", "Gbps", "Gbit", "GbE", "G" and the same with T are; 0: none of
// them. Bytes have a large B.
double unit_of_bits(std::string_view& text) {
  if (text.empty() ||
      (in_small_letters(text.substr(0, 1)) != "g" && in_small_letters(text.substr(0, 1)) != "t"))
    return 0;
  const double factor = text[0] == 'T' || text[0] == 't' ? 1000 : 1;
  std::size_t end = 1;
  while (end < text.size() && is_letter(text[end])) ++end;
  const std::string_view unit = text.substr(1, end - 1);
  if (unit.starts_with('B')) return 0;
  constexpr std::array<std::string_view, 9> units{"",   "b",  "bps", "bit",  "bits",
                                                  "bE", "be", "E",   "bitps"};
  if (!holds(units, unit)) return 0;
  text.remove_prefix(end);
  return factor;
}

std::string_view without_blanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(" -"), text.size()));
}

std::optional<StatedRate> rate_at(std::string_view text) {
  const auto first = take_number(text);
  if (!first) return std::nullopt;
  double rate = *first, last = *first;
  StatedRate stated;
  if (std::string_view after = without_blanks(text); after.starts_with('x')) {
    after = without_blanks(after.substr(1));
    if (const auto each = take_number(after)) {
      rate = *first * *each;
      last = *each;
      stated.of = StatedRate::Of::node;
      text = after;
    }
  }
  if (text.starts_with('/') && text.size() > 1 && is_digit(text[1])) {  // "8x100/200 Gb": either
    text.remove_prefix(1);
    stated.other = take_number(text).value_or(0) * rate / last;
  }
  text = without_blanks(text);
  const double unit = unit_of_bits(text);
  if (unit <= 0) return std::nullopt;
  stated.gigabits = rate * unit;
  stated.other *= unit;
  if (stated.of == StatedRate::Of::node) return stated;
  const std::string behind = in_small_letters(text);
  if (has_any(behind, {"per gpu", "/gpu", "per card", "each"})) stated.of = StatedRate::Of::gpu;
  if (has_any(behind, {"per node", "/node", "total", "per instance"}))
    stated.of = StatedRate::Of::node;
  return stated;
}

// Returns the parts of a cell, each about one kind of link.
std::vector<std::string_view> clauses_of(std::string_view text) {
  std::vector<std::string_view> clauses;
  for (;;) {
    const std::size_t end = text.find_first_of(";,+");
    clauses.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return clauses;
    text.remove_prefix(end + 1);
  }
}

}  // namespace

std::vector<std::string> machine_words_in(std::string_view text) {
  const std::string low = in_small_letters(text);
  std::vector<std::string> words;
  for (std::size_t i = 0; i < low.size();) {
    std::size_t end = i;
    while (end < low.size() && (is_digit(low[end]) || is_letter(low[end]) ||
                                (low[end] == '.' && end > i && is_digit(low[end - 1]) &&
                                 end + 1 < low.size() && is_digit(low[end + 1]))))
      ++end;
    if (end > i) add_word(std::string_view(low).substr(i, end - i), words);
    i = std::max(end, i + 1);
  }
  return words;
}

NamedNode named_node(const RowCatalog& catalog, const CardCells& cells) {
  Card said = card_in(cells.hardware);
  const std::size_t hardware = said.words.size();
  append(said.words, machine_words_in(cells.interconnect));
  const double memory = cells.memory.value_or(said.memory);
  if (said.memory > 0 && cells.memory && !about(said.memory, memory) &&
      !about(said.memory * giga, memory * gibi) && !about(said.memory * gibi, memory * giga))
    return {nullptr, fmt::format("one size of the GPU: {:g} GB in \"{}\", gpu_mem_GB {:g}",
                                 said.memory, cells.hardware, memory)};
  NamedNode result;
  Match best;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < catalog.machines.nodes.size(); ++i) {
    const NodeCards node = cards_of(catalog.machines, i);
    const Match found = match(node, said.words, hardware);
    if (found.length == 0) continue;
    const RowCatalog::NodeSize* place = catalog.node(catalog.machines.nodes[i].first);
    others.push_back(place->name);
    if (!node.of_size(memory) || !node.of_form(said.form) || found <= best) continue;
    best = found;
    result.node = place;
  }
  if (result.node == nullptr) result.why = no_such_card(cells.hardware, others);
  return result;
}

bool in_slots(const RowCatalog& catalog, std::string_view node) {
  for (std::size_t i = 0; i < catalog.machines.nodes.size(); ++i)
    if (catalog.machines.nodes[i].first == node)
      return cards_of(catalog.machines, i).of_form("pcie");
  return false;
}

double gpus_in_a_node(std::string_view text) {
  constexpr std::array<std::string_view, 6> kinds{"gpu", "gpus", "gcd", "gcds", "card", "cards"};
  constexpr double most = 64;
  const std::vector<std::string> words = machine_words_in(text);
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    std::string_view rest = words[i];
    const auto number = take_number(rest);
    if (!number || !rest.empty() || *number < 1 || *number > most) continue;
    const bool kind = holds(kinds, words[i + 1]);
    std::size_t at = i + (kind ? 2 : 1);
    const bool per = words[at] == "per";
    at += per ? 1 : 0;
    if ((kind || per) && at < words.size() && words[at] == "node") return *number;
  }
  return 0;
}

std::optional<StatedRate> stated_rate(std::string_view interconnect) {
  for (const std::string_view clause : clauses_of(interconnect)) {
    if (has_any(in_small_letters(clause),
                {"nvlink", "nvswitch", "xgmi", "infinity fabric", "pcie"}))
      continue;
    for (std::size_t i = 0; i < clause.size(); ++i) {
      const bool inside =
          i > 0 && (is_digit(clause[i - 1]) || is_letter(clause[i - 1]) || clause[i - 1] == '.');
      if (!is_digit(clause[i]) || inside) continue;
      if (const auto rate = rate_at(clause.substr(i))) return rate;
    }
  }
  return std::nullopt;
}

}  // namespace stepsim
