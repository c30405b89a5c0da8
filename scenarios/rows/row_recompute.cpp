// This writes what a row keeps of its activations, where, and what else it sent to the host.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <vector>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Returns the number behind a word: "every 2", "every 3rd layer", "block 4"; 0: there is none.
double number_behind(std::string_view text, std::string_view word) {
  const std::size_t place = text.find(word);
  if (place == std::string_view::npos) return 0;
  std::string_view rest = text.substr(place + word.size());
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  double number = 0;
  std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return number;
}

// Reads one layer in so many: "every second layer", "every 3rd", "selective 1/3"; 0: not said.
double one_layer_in(std::string_view word) {
  if (contains(word, "every second") || contains(word, "every other")) return 2;
  if (const double every = number_behind(word, "every"); every > 0) return every;
  return number_behind(word, "1/");
}

// Writes how many layers ran forward twice: what a row counts of its products with recomputation,
// over what it counts without, says so, since all of them would make four thirds of it.
void write_layers_recomputed(const StepRow& row, RowScenario& made) {
  if (const double every = one_layer_in(in_small_letters(row.checkpointing)); every > 0) {
    if (every > 1) made.set("strategy.checkpoint_every", fmt::format("{:.3g}", every));
    return;
  }
  const double extra = row.hfu && row.mfu && *row.mfu > 0 ? 3 * (*row.hfu / *row.mfu - 1) : 0;
  const double share = extra > 0.1 ? std::min(1.0, extra) : 0.5;
  if (extra <= 0.1) made.assume("every second layer recomputed");
  if (share < 1) made.set("strategy.checkpoint_every", fmt::format("{:.3g}", 1 / share));
}

// Returns those of Megatron's modules that the word names: "selective: moe_act, layernorm".
std::vector<std::string_view> modules_in(std::string_view word) {
  std::vector<std::string_view> found;
  const auto in_name = [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; };
  for (std::size_t begin = 0; begin < word.size();) {
    std::size_t end = begin;
    while (end < word.size() && in_name(word[end])) ++end;
    const std::string_view name = word.substr(begin, end - begin);
    if (holds(module_names, name)) found.push_back(name);
    begin = end + 1;
  }
  return found;
}

// Frameworks mean modules, single operators or whole layers by "selective".
void write_selective(const StepRow& row, const RowWords& words, const RowCatalog& catalog,
                     RowScenario& made) {
  const std::string& word = words.checkpointing;
  const std::vector<std::string_view> modules = modules_in(word);
  const std::string meant = known_of(catalog.vocabularies, made.stack).selective_is;
  const bool layers = contains(word, "layer") || one_layer_in(word) > 0;
  if ((layers && modules.empty()) || meant == "layers") {
    made.set("strategy.checkpointing", "full");
    write_layers_recomputed(row, made);
  } else if ((contains(word, "op") && modules.empty()) || meant == "operators") {
    made.set("strategy.checkpointing", "operators");
  } else {
    made.set("strategy.checkpointing", "selective");
    if (!modules.empty())
      made.set("strategy.recompute_modules", fmt::format("[{}]", fmt::join(modules, ", ")));
    else if (meant.empty())
      made.assume(fmt::format("the core of attention recomputed (\"{}\")", row.checkpointing));
  }
}

// Writes "full, block 4": so many layers of each stage run again, and the others not at all.
void write_full(const StepRow& row, std::string_view word, RowScenario& made) {
  made.set("strategy.checkpointing", "full");
  const double layers = number_behind(word, "block");
  if (layers <= 0 || !row.layers) return;
  const double every = *row.layers / std::max(1.0, row.pipeline.value_or(1)) / layers;
  if (every > 1) made.set("strategy.checkpoint_every", fmt::format("{:.3g}", every));
}

bool says_full(std::string_view word) {
  constexpr std::array<std::string_view, 7> words{"yes", "on",  "true",         "recompute",
                                                  "ac",  "all", "checkpointing"};
  return word.starts_with("full") || contains(word, "gradient checkpointing") ||
         contains(word, "block ") || holds(words, word);
}

// Returns the number before the sign, "optimizer states 50 %"; without one everything.
double share_in(std::string_view word) {
  std::size_t end = word.find('%');
  if (end == std::string_view::npos) return 1;
  const auto is_number = [](char c) { return (c >= '0' && c <= '9') || c == '.'; };
  while (end > 0 && word[end - 1] == ' ') --end;
  std::size_t begin = end;
  while (begin > 0 && is_number(word[begin - 1])) --begin;
  double percent = 100;
  std::from_chars(word.data() + begin, word.data() + end, percent);
  return percent / 100;
}

// Returns whether checkpoints leave the device; their own column may say it.
bool sends_activations(const RowWords& words) {
  if (says(words.checkpointing, "offload") || contains(words.checkpointing, "on cpu") ||
      contains(words.checkpointing, "to cpu"))
    return true;
  return !says_no(words.offload) &&
         (contains(words.offload, "activation") || contains(words.offload, "checkpoint"));
}

// Returns whether the states go to the host: by the column, by the strategy's name, or by an
// optimizer that runs there.
bool sends_states(const RowWords& words) {
  for (const std::string_view name : {"zero-offload", "superoffload", "zero-infinity"})
    if (contains(words.strategy, name)) return true;
  if (contains(words.task, "cpu adam")) return true;
  if (words.offload.empty())
    return contains(words.optimizer, "cpu adam") || contains(words.optimizer, "cpu-adam");
  if (says_no(words.offload)) return false;
  return contains(words.offload, "optimizer") || contains(words.offload, "states") ||
         contains(words.offload, "param") || !sends_activations(words);
}

}  // namespace

bool offloads(const StepRow& row) {
  const RowWords words = words_of(row);
  return sends_states(words) || sends_activations(words);
}

void write_checkpointing(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const RowWords words = words_of(row);
  const std::string& word = words.checkpointing;
  if (says_full(word)) {
    write_full(row, word, made);
  } else if (says_no(word) || contains(word, "selective: none")) {
    made.set("strategy.checkpointing", "none");
  } else if (contains(word, "selective") || one_layer_in(word) > 0) {
    write_selective(row, words, catalog, made);
  } else if (!word.empty()) {
    made.lack(fmt::format("checkpointing \"{}\"", row.checkpointing));
  } else if (const Document resolved = made.resolved(catalog);
             const auto usual = resolved.peek("strategy.checkpointing")) {
    if (resolved.origin_of("strategy.checkpointing").starts_with("stack"))
      made.assume(*usual == "none" ? "no checkpointing" : *usual + " checkpointing");
  } else {
    const bool full = row.stage.value_or(0) == 3 && !has_adapter(row);  // adapters leave room
    made.set("strategy.checkpointing", full ? "full" : "none");
    made.assume(full ? "full checkpointing" : "no checkpointing");
  }
}

void write_offload(const StepRow& row, RowScenario& made) {
  if (!offloads(row)) return;
  const RowWords words = words_of(row);
  const std::string& word = words.offload;
  const bool drives = contains(word, "nvme") || contains(words.strategy, "zero-infinity");
  const std::string_view place = drives ? "nvme" : "cpu";
  if (const double share = share_in(word); share < 1)
    made.set("strategy.offload.ratio", fmt::format("{:g}", share));
  if (sends_activations(words)) made.set("strategy.offload.activations", "cpu");
  if (sends_states(words)) made.set("strategy.offload.optimizer", place);
  if (contains(word, "param") || contains(words.strategy, "zero-infinity"))
    made.set("strategy.offload.parameters", place);
}

}  // namespace stepsim
