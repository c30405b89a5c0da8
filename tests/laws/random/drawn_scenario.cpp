#include "tests/laws/random/drawn_scenario.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>

#include "scenarios/keys/key_pages.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/constants.hpp"
#include "scenarios/read/defaults.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

using Words = std::vector<std::string>;

std::uint32_t below(Dice& dice, std::size_t sides) {
  return dice.roll(static_cast<std::uint32_t>(sides));
}
bool one_in(Dice& dice, std::uint32_t sides) {
  return dice.roll(sides) == 0;
}
double share(Dice& dice) {
  constexpr std::uint32_t parts = 1 << 20;
  return dice.roll(parts) / static_cast<double>(parts);
}
template <class Choices>
const auto& any_of(const Choices& choices, Dice& dice) {
  return choices[below(dice, choices.size())];
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

// ---- models of few layers

// Returns the value of a model cut to `kept` layers: a list of all layers is cut like their number,
// and a rhythm of layers is made shorter.
std::optional<std::string> cut_value(const Table& config, const std::string& key,
                                     std::size_t layers, std::size_t kept, std::size_t from) {
  const auto says = [&](std::string_view part) { return key.find(part) != key.npos; };
  if (config.is_mapping(key)) return std::nullopt;
  const std::string text = config.one_line(key);
  if (text.starts_with('[')) {
    Words values = config.values(key);
    if (values.size() == layers)
      values = Words(values.begin() + static_cast<std::ptrdiff_t>(from),
                     values.begin() + static_cast<std::ptrdiff_t>(from + kept));
    else if (says("idxs"))
      std::erase_if(values, [&](const std::string& value) {
        return number_in(value).value_or(0) >= static_cast<double>(kept);
      });
    else
      return std::nullopt;
    return fmt::format("[{}]", fmt::join(values, ", "));
  }
  const auto value = number_in(text);
  if (!value) {
    const std::string word = config.text(key);
    return word.size() == layers ? std::optional(fmt::format("\"{}\"", word.substr(from, kept)))
                                 : std::nullopt;
  }
  if (says("dense_replace") || says("dense_layers") || says("start_index") || says("layer_offset"))
    return number_text(std::min(*value, 1.0));
  if (says("period") || says("interval") || says("window_pattern"))
    return number_text(std::min(*value, 2.0));
  return std::nullopt;
}

constexpr std::array<std::string_view, 4> depth_keys{"num_hidden_layers", "n_layer", "n_layers",
                                                     "num_layers"};
constexpr std::uint32_t most_layers = 4;

// Returns the keys of a cut model that its reader complains about, as it does of those that it does
// not ask for.
Words unread_keys(Document& document) {
  try {
    const Table model = document.root().table("model");
    read_hf_config(model, model.text_or("name", ""));
    document.finish();
    return {};
  } catch (const UserError& error) {
    return mapped(error.problems(), [](const Problem& problem) { return problem.key; });
  }
}

// Returns a model of few layers in one line of YAML.
std::string cut_model(const Catalogue& data, const std::string& name, Dice& dice) {
  const Document entry = open_entry(data, model_shelf, name);
  const Table model = entry.root().table("config");
  const std::string inner = model.is_mapping("text_config") ? "text_config" : "";
  const Table config = inner.empty() ? model : model.table(inner);
  const auto known = std::ranges::find_if(depth_keys, [&](auto key) { return config.has(key); });
  const std::string depth(known == depth_keys.end() ? "" : *known);
  const auto layers =
      depth.empty() ? std::size_t{0} : static_cast<std::size_t>(config.integer(depth, 1, 1 << 16));
  const std::size_t left = std::min<std::size_t>(1 + below(dice, most_layers), layers);
  const std::size_t from = below(dice, layers - left + 1);
  Words unread;
  const auto cut = [&] {
    Document document = parse_document(fmt::format("model: {{name: {}}}\n", name), name);
    const auto put = [&](const Table& table, Words path) {
      for (const std::string& key : table.keys()) {
        path.push_back(key);
        const auto value = key == depth ? std::optional(std::to_string(left))
                                        : cut_value(table, key, layers, left, from);
        if (key != inner && !holds(unread, fmt::format("{}", fmt::join(path, "."))))
          document.set(path, value.value_or(table.one_line(key)));
        path.pop_back();
      }
    };
    put(model, {"model"});
    if (!inner.empty()) put(config, {"model", inner});
    return document;
  };
  Document first = cut();
  unread = unread_keys(first);
  return cut().root().one_line("model");
}

// ---- values

std::string whole_text(double value) {
  return fmt::format("{:.0f}", std::floor(value));
}

// Draws a number mostly near to what is usual; now and then anywhere in its range, at an end or
// beyond.
double draw_number(const KeyFacts& facts, std::optional<double> usual, Dice& dice) {
  const bool whole = facts.kind == KeyKind::whole;
  const double high = std::max(facts.high, facts.low + 1), low = facts.low;
  if (one_in(dice, 64)) return whole ? high + 1 : 2 * high;
  if (one_in(dice, 32)) return one_in(dice, 2) ? low : high;
  if (one_in(dice, 32)) {
    const double least = std::max(low, std::min(1e-3, high));
    return least * std::pow(high / least, share(dice));
  }
  if (whole && one_in(dice, 2)) {
    constexpr std::array usual_wholes{1.0, 2.0, 2.0, 4.0, 4.0, 8.0, 3.0, 16.0};
    return std::clamp(any_of(usual_wholes, dice), low, high);
  }
  if (high <= 1 || !usual || *usual <= 0) {
    const double most = std::min(high, whole ? low + 16 : std::max(low + 1, 1.0));
    return low + (most - low) * share(dice);
  }
  const double octaves = static_cast<double>(below(dice, 9)) - 6;
  const double odd = one_in(dice, 2) ? 1 : 0.7 + 0.6 * share(dice);
  return std::clamp(*usual * std::pow(2.0, octaves) * odd, low, high);
}

// A vocabulary holds words of keys whose table does not list them.
using Vocabulary = std::map<std::string, Words, std::less<>>;

Vocabulary vocabulary_of(const Catalogue& data) {
  Words nodes = names_on(data, node_shelf);
  append(nodes, names_on(data, cluster_shelf));
  Words modules;
  for (const auto& each : module_names) modules.push_back(fmt::format("[{}]", each));
  for (std::size_t i = 1; i < module_names.size(); ++i)
    modules.push_back(fmt::format("[{}, {}]", module_names[i - 1], module_names[i]));
  return {{"cluster.node", std::move(nodes)},
          {"cluster.network", names_on(data, network_shelf)},
          {"cluster.processor", names_on(data, processor_shelf)},
          {"cluster.slow_gpus", {"[{rank: 0, speed: 0.5}]", "[{rank: 1, speed: 0.9}]"}},
          {"strategy.optimizer", names_on(data, optimizer_shelf)},
          {"strategy.precision", names_on(data, precision_shelf)},
          {"strategy.lora.quantised", names_on(data, format_shelf)},
          {"strategy.lora.method", names_on(data, adapter_shelf)},
          {"strategy.recompute_modules", std::move(modules)},
          {"strategy.lora.modules", {"[q_proj, v_proj]", "[o_proj]", "[gate_proj]", "[nowhere]"}},
          {"releases.deepspeed", {"0.5.10", "0.16.0", "0.17.6", "0.18.6", "0.19.7"}},
          {"strategy.pipeline_parallel.layers", {"[1, 1]", "[1, 2]", "[2, 2]", "[1, 1, 1, 1]"}},
          {"recipe", names_on(data, recipe_shelf)},
          {"job.method",
           {"sft", "dpo", "kto", "reward", "classify", "classify_tokens", "embed", "mlm"}},
          {"job.num_learners_per_node", {"[1]", "[2]", "[4]", "[1, 1]"}}};
}

std::string draw_value(const KeyFacts& facts, const std::string& usual, const std::string& example,
                       Dice& dice) {
  switch (facts.kind) {
    case KeyKind::flag:
      return one_in(dice, 2) ? "true" : "false";
    case KeyKind::word:
      return std::string(any_of(facts.words, dice));
    case KeyKind::whole:
      return whole_text(draw_number(facts, number_in(usual), dice));
    case KeyKind::number:
      return number_text(draw_number(facts, number_in(usual), dice));
    default:
      return example;
  }
}

// Returns whether the key names files of other programs, or speaks of them: these are not drawn.
bool speaks_of_files(const KeyFacts& facts, std::string_view example) {
  return example.ends_with(".json") || example.ends_with(".xml") ||
         facts.name == "deepspeed_except";
}

template <class Subject>
void draw_block(const Block<Subject>& block, std::string_view subject, const Vocabulary& words,
                Dice& dice, std::vector<Setting>& settings) {
  const bool own = block.name.empty();
  if (!own && !one_in(dice, 5)) return;
  for (const Key<Subject>& key : block.keys) {
    const KeyFacts& facts = key.facts;
    const std::string example =
        key_texts(fmt::format("{}{}{}", subject, own ? "" : ".", block.name), facts.name).example;
    if (speaks_of_files(facts, example) || (!facts.required && !one_in(dice, own ? 8 : 3)))
      continue;
    const std::string path =
        fmt::format("{}{}{}.{}", subject, own ? "" : ".", block.name, facts.name);
    if (const auto known = words.find(path); known != words.end()) {
      settings.emplace_back(path, any_of(known->second, dice));
      continue;
    }
    const std::string said = key.text == nullptr ? "" : key.text(facts, Subject{});
    settings.emplace_back(
        path, draw_value(facts, said.empty() || facts.required ? example : said, example, dice));
  }
}

bool says(const std::vector<Setting>& settings, std::string_view key) {
  return holds(settings, key, &Setting::first);
}

void replace(std::vector<Setting>& settings, const std::string& key, const std::string& value) {
  std::erase_if(settings, [&](const Setting& setting) { return setting.first == key; });
  settings.emplace_back(key, value);
}

// Draws a GRPO job of a few responses.
void draw_grpo(const Vocabulary& words, Dice& dice, std::vector<Setting>& settings) {
  for (const auto& block : grpo_blocks()) draw_block(block, "job", words, dice, settings);
  draw_block(grpo_switches(), "job", words, dice, settings);
  for (const Setting& usual :
       {Setting{"job.num_learners_per_node", "[1]"}, Setting{"job.response_length", "512"},
        Setting{"job.pack_length", "1024"}, Setting{"job.response_lengths.mean", "256"}})
    if (!says(settings, usual.first)) settings.push_back(usual);
  replace(settings, "job.num_unique_prompts_rollout", std::to_string(1 + below(dice, 12)));
  replace(settings, "job.num_samples_per_prompt_rollout", std::to_string(1 + below(dice, 6)));
  replace(settings, "job.measured_steps", std::to_string(2 + below(dice, 3)));
  replace(settings, "job.method", "grpo");
}

// Draws a step whose budget of operations takes a second.
void draw_step(const Vocabulary& words, Dice& dice, std::vector<Setting>& settings) {
  if (one_in(dice, 4)) draw_block(method_block(), "job", words, dice, settings);
  for (const auto& block : job_blocks()) draw_block(block, "job", words, dice, settings);
  replace(settings, "job.budget", "2e5");
}

bool stands_in(std::string_view path, std::string_view block) {
  return path == block || (path.starts_with(block) && path[block.size()] == '.');
}

}  // namespace

bool has_to_stand(std::string_view key) {
  constexpr std::array<std::string_view, 7> kept{
      "name", "model", "cluster.node", "stack", "job.sequence", "job.budget", "job.method"};
  return std::ranges::find(kept, key) != kept.end();
}

std::vector<Setting> draw_settings(const Catalogue& data, Dice& dice) {
  static const Vocabulary words = vocabulary_of(data);
  static const Words models = names_on(data, model_shelf), stacks = names_on(data, stack_shelf);
  std::vector<Setting> settings{{"name", "drawn"},
                                {"model", cut_model(data, any_of(models, dice), dice)},
                                {"stack", any_of(stacks, dice)}};
  if (one_in(dice, 8)) settings.emplace_back("recipe", any_of(words.at("recipe"), dice));
  for (const auto& block : cluster_blocks()) draw_block(block, "cluster", words, dice, settings);
  if (one_in(dice, 16))
    draw_grpo(words, dice, settings);
  else
    draw_step(words, dice, settings);
  for (const auto& block : strategy_blocks()) draw_block(block, "strategy", words, dice, settings);
  return settings;
}

std::vector<std::string> keys_that_are_drawn() {
  std::vector<std::string> keys;
  const auto add = [&](std::string_view subject, const auto& block) {
    for (const auto& key : block.keys)
      if (const std::string path =
              fmt::format("{}{}{}", subject, block.name.empty() ? "" : ".", block.name);
          !speaks_of_files(key.facts, key_texts(path, key.facts.name).example))
        keys.push_back(fmt::format("{}{}{}.{}", subject, block.name.empty() ? "" : ".", block.name,
                                   key.facts.name));
  };
  for (const auto& block : cluster_blocks()) add("cluster", block);
  for (const auto& block : job_blocks()) add("job", block);
  for (const auto& block : grpo_blocks()) add("job", block);
  add("job", grpo_switches());
  for (const auto& block : strategy_blocks()) add("strategy", block);
  return keys;
}

bool mend(std::vector<Setting>& settings, const std::vector<Problem>& problems, Dice& dice) {
  const auto drop = [&](const auto& about) {
    return std::erase_if(settings, [&](const Setting& setting) {
             return !has_to_stand(setting.first) && about(setting.first);
           }) > 0;
  };
  bool any = false;
  for (const Problem& problem : problems) {
    if (problem.key.empty()) continue;
    const std::string& key = problem.key;
    any |=
        drop([&](const std::string& path) { return stands_in(path, key) || stands_in(key, path); });
    if (key == "job.sequence")
      for (auto& [path, value] : settings)
        if (path == key) value = "64";
  }
  if (any) return true;
  std::vector<std::string> others;
  for (const auto& [path, value] : settings)
    if (!has_to_stand(path)) others.push_back(path);
  if (others.empty()) return false;
  const std::string other = any_of(others, dice);
  return drop([&](const std::string& path) { return path == other; });
}

std::string yaml_of(std::span<const Setting> settings) {
  Document document = parse_document("name: drawn\nstrategy: {}\n", "drawn.yaml");
  for (const auto& [key, value] : settings) {
    if (names_constant(key))
      document.set(std::array<std::string, 2>{"constants", key}, value);
    else
      document.set(key, value);
  }
  return document.canonical();
}

}  // namespace stepsim
