#include "scenarios/rows/machine_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>

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

// Returns letters and digits that stand together, in small letters: "8xH100-SXM5" is {"h100",
// "sxm5"}.
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
struct KnownCards {
  std::map<std::string, Card> by_word;
};

const Card& known_card(const Catalogue& data, const std::string& word) {
  auto& known = data.kept<KnownCards>().by_word;
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
  NodeCards result{{}, machines.gpus[node].memory};
  for (const std::string& word : machines.nodes[node].second)
    result.cards.push_back(&known_card(machines.data, word));
  return result;
}

// A match says how well a node's words stand in a row: their letters, and then whether they say no
// more.
struct Match {
  std::size_t length = 0;
  bool plain = false;

  friend auto operator<=>(const Match&, const Match&) = default;
};

Match match(const NodeCards& node, const std::vector<std::string>& text) {
  Match best;
  for (const Card* card : node.cards) {
    const auto place =
        std::search(text.begin(), text.end(), card->words.begin(), card->words.end());
    if (card->words.empty() || place == text.end()) continue;
    Match found{0, card->memory == 0 && card->form.empty()};
    for (const std::string& word : card->words) found.length += word.size();
    best = std::max(best, found);
  }
  return best;
}

}  // namespace

std::optional<std::size_t> named_node(const MachineWords& machines, std::string_view hardware) {
  const Card said = card_in(hardware);
  std::optional<std::size_t> found;
  Match best;
  for (std::size_t i = 0; i < machines.nodes.size(); ++i) {
    const NodeCards node = cards_of(machines, i);
    const Match here = match(node, said.words);
    if (here.length == 0 || !node.of_size(said.memory) || !node.of_form(said.form) || here <= best)
      continue;
    best = here;
    found = i;
  }
  return found;
}

}  // namespace stepsim
