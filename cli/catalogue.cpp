// `list` and `show`: the catalogue as a person reads it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "cli/command.hpp"
#include "cli/keys.hpp"
#include "cli/models.hpp"
#include "cli/options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/scenarios.hpp"
#include "cli/source_options.hpp"
#include "scenarios/recipes.hpp"
#include "scenarios/scenario.hpp"
#include "scenarios/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "topology/catalog.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/strategy/defaults.hpp"

namespace stepsim {
namespace {

struct Kind {
  std::string_view name;  // as the user says it
  Shelf shelf;
};
constexpr std::array kinds{Kind{"gpus", gpu_shelf},
                           Kind{"nodes", node_shelf},
                           Kind{"networks", network_shelf},
                           Kind{"clusters", cluster_shelf},
                           Kind{"models", model_shelf},
                           Kind{"stacks", stack_shelf},
                           Kind{"recipes", recipe_shelf},
                           Kind{"engines", engine_shelf},
                           Kind{"scenarios", {"scenarios", "scenario"}}};

constexpr std::array list_options{
    OptionSpec{"json", "", "print JSON"},
    OptionSpec{"json-schemas", "", "instead: what --json of all commands prints (docs/json.md)"},
    OptionSpec{"template", "METHOD",
               "keys: a scenario with every key, sft, or with those of GRPO, grpo"},
    OptionSpec{"markdown", "", "keys: the page docs/keys.md"}};
constexpr Usage list_usage{
    "stepsim list "
    "[gpus|nodes|networks|clusters|models|stacks|recipes|engines|scenarios|algorithms|"
    "architectures|keys]",
    "Names what the catalogue holds. Each entry is one data file. `keys` are those of a scenario: "
    "what each may say and what leaving it out means.",
    list_options, "  stepsim list\n  stepsim list nodes\n  stepsim list keys\n", 1};
constexpr std::array show_options = with_source_options(
    std::array{OptionSpec{"set", "KEY=VALUE",
                          "change the scenario, such as strategy.zero=2; repeats", 0, true},
               OptionSpec{"all", "", "of a scenario also the keys that change nothing in it"},
               OptionSpec{"yaml", "", "of a scenario one file that says all it rests on"},
               OptionSpec{"json", "", "print JSON"}});
constexpr Usage show_usage{
    "stepsim show NAME",
    "Prints an entry of the catalogue: every constant with its range, grade and source; of a model "
    "its dimensions and exact counts; of a scenario every key with its value and where that "
    "comes from. `operators`, `attention` and `experts` are the constants that all stacks share. "
    "NAME may be the path of a config.json or of a scenario.",
    show_options,
    "  stepsim show mi300x-8\n  stepsim show slingshot-11 --json\n"
    "  stepsim show qwen3-30b-sft-zero3 --set strategy.zero=2\n",
    1};

std::string title_of(const std::string& data, const Kind& kind, const std::string& name) {
  return open_entry(data, kind.shelf, name).root().text_or("title", "");
}

// Name and title of each.
std::vector<std::pair<std::string, std::string>> entries(const std::string& data,
                                                         const Kind& kind) {
  if (kind.name == "scenarios") return list_scenarios(data);
  std::vector<std::pair<std::string, std::string>> rows;
  for (const std::string& name : names_on(data, kind.shelf))
    rows.emplace_back(name, title_of(data, kind, name));
  return rows;
}

// What the program brings along itself: a name and a summary each.
using Rows = std::vector<std::pair<std::string_view, std::string_view>>;

Rows algorithm_rows() {
  Rows rows;
  rows.reserve(algorithms().size());
  for (const Algorithm& each : algorithms()) rows.emplace_back(each.name, each.summary);
  return rows;
}

Rows architecture_rows() {
  Rows rows;
  rows.reserve(architectures().size());
  for (const Architecture& each : architectures()) rows.emplace_back(each.name, each.summary);
  return rows;
}

struct Listing {
  std::string_view name;
  Rows (*rows)();
};
constexpr std::array listings{Listing{"algorithms", algorithm_rows},
                              Listing{"architectures", architecture_rows}};

constexpr std::string_view keys_word = "keys";

std::vector<std::string> list_names() {
  std::vector<std::string> names;
  names.reserve(kinds.size() + listings.size());
  for (const Kind& kind : kinds) names.emplace_back(kind.name);
  for (const Listing& listing : listings) names.emplace_back(listing.name);
  names.emplace_back(keys_word);
  return names;
}

template <class Rows>
void print_rows(std::string_view heading, const Rows& rows) {
  fmt::print("{}\n", heading);
  std::size_t widest = 0;
  for (const auto& [name, title] : rows) widest = std::max(widest, name.size());
  for (const auto& [name, title] : rows) fmt::print("  {:<{}}  {}\n", name, widest, title);
}

Records list_records(const std::string& data, std::string_view only) {
  const auto entry = [](const auto& each) -> Records {
    return {{"name", "of the entry", each.first}, {"title", "what it is", each.second}};
  };
  Records records;
  for (const Kind& kind : kinds)
    if (only.empty() || only == kind.name)
      records.emplace_back(kind.name, "entries", list_of(entries(data, kind), entry));
  for (const Listing& listing : listings)
    if (only.empty() || only == listing.name)
      records.emplace_back(listing.name, "entries", list_of(listing.rows(), entry));
  return records;
}

struct Shown {
  std::string kind;
  std::string title;
  std::vector<std::string> facts;  // what is no constant
  std::vector<NamedConstant> constants;
};

std::string parts_text(const Node& node) {
  std::string text;
  for (std::size_t i = 0; i < part_names.size(); ++i)
    if (node.parts[i] > 0)
      text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", node.parts[i], part_names[i]);
  return text;
}

void add_algorithms(Shown& shown, const Communication& communication) {
  for (const auto& [kind, names] : communication.algorithms)
    shown.facts.push_back(fmt::format("{}: {}", kind, fmt::join(names, ", ")));
}

Shown show_gpu(const Document& document) {
  const Gpu gpu = read_gpu(document.root());
  document.finish();
  return {"GPU", gpu.title, {fmt::format("{} compute units", gpu.units)}, document.constants()};
}

Shown show_node(const Document& document) {
  const Node node = read_node(document.root());
  document.finish();
  Shown shown{"node", node.title, {}, document.constants()};
  shown.facts = {fmt::format("GPU: {}", node.gpu), fmt::format("parts: {}", parts_text(node)),
                 fmt::format("usual network: {}", node.network)};
  for (const LinkSpec& link : node.links)
    shown.facts.push_back(fmt::format("link {}: {} - {}{}", link.name, to_text(link.from),
                                      to_text(link.to),
                                      link.wiring == Wiring::mesh ? ", every pair" : ""));
  add_algorithms(shown, node.collectives);
  return shown;
}

Shown show_network(const Document& document) {
  const Network network = read_network(document.root());
  document.finish();
  Shown shown{"network", network.title, {}, document.constants()};
  shown.facts = {fmt::format("{} nodes under one leaf switch or group{}", network.leaf.nodes,
                             network.leaf.per_rail ? ", one per rail" : "")};
  add_algorithms(shown, network.collectives);
  return shown;
}

// What a stack or a recipe fills in: "strategy: {zero: 1}, where strategy.offload: absent".
std::vector<std::string> default_facts(const Document& document) {
  std::vector<std::string> facts;
  if (read_defaults(document.root(), "").empty()) return facts;
  for (const Table& entry : document.root().tables("defaults")) {
    std::string fact = "unless told otherwise: " + entry.one_line("set");
    if (entry.has("when")) fact += ", where " + entry.one_line("when");
    facts.push_back(std::move(fact));
  }
  return facts;
}

Shown show_stack(const Document& document) {
  const Stack stack = read_stack(document.root());
  document.finish();
  Shown shown{"stack", stack.title, {}, document.constants()};
  const Stack::Fusion& fused = stack.fused;
  for (const auto& [name, is] : {std::pair{"norm", fused.norm}, std::pair{"rope", fused.rope},
                                 std::pair{"activation", fused.activation}})
    shown.facts.push_back(
        fmt::format("{}: {}", name, is ? "one kernel" : "one kernel per operator"));
  shown.facts.push_back(fmt::format(
      "cross_entropy: {}", cross_entropy_names[static_cast<std::size_t>(stack.cross_entropy)]));
  if (stack.holds_logits) shown.facts.emplace_back("logits are held until the next forward pass");
  if (stack.recompute_stops_early)
    shown.facts.emplace_back("recomputation stops where all that is needed is there");
  if (stack.fp32_frozen)
    shown.facts.emplace_back("under FSDP frozen parameters are kept in fp32 like trained ones");
  shown.facts.push_back(fmt::format(
      "tensor_layers: {}", tensor_layers_names[static_cast<std::size_t>(stack.tensor_layers)]));
  for (std::string& fact : default_facts(document)) shown.facts.push_back(std::move(fact));
  return shown;
}

Shown show_recipe(const Document& document) {
  const Recipe recipe = read_recipe(document.root());
  Shown shown{"recipe", recipe.title, default_facts(document), {}};
  document.finish();
  return shown;
}

Shown show_engine(const Document& document) {
  const EngineStack engine = read_engine_stack(document.root());
  document.finish();
  return {"engine", engine.title, {}, document.constants()};
}

Shown show_cluster(const std::string& data, const std::string& name, const Document& document) {
  const Cluster cluster = load_cluster(data, {.name = name, .nodes = {}, .network = ""});
  const Table root = document.root();
  Shown shown{"cluster", root.text("title"), {}, {}};
  shown.facts = {fmt::format("node: {}", root.text("node")),
                 fmt::format("network: {}", root.text("network")),
                 fmt::format("nodes: {}", root.integer("nodes", 1, 1 << 20))};
  if (const std::string note = root.text_or("note", ""); !note.empty()) shown.facts.push_back(note);
  return shown;
}

// Constants that all stacks share.
std::optional<Shown> show_shared(const std::string& data, const std::string& name) {
  constexpr std::array<std::string_view, 4> shared{"operators", "attention", "experts", "mixers"};
  if (std::find(shared.begin(), shared.end(), name) == shared.end()) return std::nullopt;
  const Document document = read_document(data_file(data, fmt::format("workloads/{}.yaml", name)));
  if (name == "operators") read_operators(document.root());
  if (name == "attention") read_attention_shares(document.root());
  if (name == "experts") read_expert_shares(document.root());
  if (name == "mixers") read_mixers(document.root());
  document.finish();
  return Shown{"constants", "the same for all stacks", {}, document.constants()};
}

bool is_model(const std::string& data, const std::string& name) {
  const std::vector<std::string> names = names_on(data, model_shelf);
  const bool config = is_config_path(name) && !is_scenario(data, name);
  return config || std::find(names.begin(), names.end(), name) != names.end();
}

Shown shown_of(const std::string& data, const Kind& kind, const std::string& name) {
  const Document document = open_entry(data, kind.shelf, name);
  if (kind.name == "gpus") return show_gpu(document);
  if (kind.name == "nodes") return show_node(document);
  if (kind.name == "networks") return show_network(document);
  if (kind.name == "stacks") return show_stack(document);
  if (kind.name == "recipes") return show_recipe(document);
  if (kind.name == "engines") return show_engine(document);
  return show_cluster(data, name, document);
}

std::optional<Shown> look_up(const std::string& data, const std::string& name) {
  for (const Kind& kind : kinds) {
    const std::vector<std::string> names = names_on(data, kind.shelf);
    if (kind.name == "scenarios" || std::find(names.begin(), names.end(), name) == names.end())
      continue;
    Shown shown = shown_of(data, kind, name);
    if (const auto files = overlay_files(data, kind.shelf, name); !files.empty())
      shown.facts.push_back(overlay_note(files));
    return shown;
  }
  return show_shared(data, name);
}

void print(const std::string& name, const Shown& shown) {
  fmt::print("{} ({}): {}\n", name, shown.kind, shown.title);
  for (const std::string& fact : shown.facts) fmt::print("  {}\n", wrap(fact, 100, 2));
  if (shown.constants.empty()) return;
  TextTable table{{"constant", "value", "low", "high", "grade"},
                  {Align::left, Align::right, Align::right, Align::right, Align::left},
                  {}};
  for (const NamedConstant& c : shown.constants)
    table.rows.push_back({c.name, to_text(c.value, c.dimension), to_text(c.low, c.dimension),
                          to_text(c.high, c.dimension), std::string(to_text(c.grade))});
  fmt::print("\n{}\nsources\n", render(table));
  for (const NamedConstant& c : shown.constants)
    fmt::print("  {}\n      {}\n", c.name, wrap(c.source, 100, 6));
}

Records records_of(const std::string& name, const Shown& shown) {
  const auto constant = [](const NamedConstant& c) {
    return joined({constant_records(c), {{"source", "where it is from", c.source}}});
  };
  return {{"name", "of the entry", name},
          {"kind", "GPU, node, network, cluster, stack or engine", shown.kind},
          {"title", "what it is", shown.title},
          {"facts", "what is no constant", list_of(shown.facts)},
          {"constants", "with range, grade and source", list_of(shown.constants, constant)}};
}

}  // namespace

Records list_sample() {
  const Records entry{{"name", "of the entry", ""}, {"title", "what it is", ""}};
  return {{"KIND", "entries; one key for each kind", list_of(std::array{entry}, std::identity())}};
}

Records entry_sample() {
  Shown shown;
  shown.constants.emplace_back();
  return records_of("", shown);
}

namespace {

void refuse_scenario_options(const Options& options, const std::string& name,
                             std::string_view kind) {
  for (const std::string_view option : {"set", "all", "yaml"})
    if (options.has(option))
      throw UserError(fmt::format("--{}: {} is a {}, and no scenario", option, name, kind));
}

void print_scenario(const std::string& data, const std::string& name, const Options& options) {
  if (options.has("json") && options.has("yaml"))
    throw UserError("--json and --yaml: only one of them can be printed");
  const std::string file = find_scenario(data, name);
  const Scenario scenario = load_scenario(data, file, settings_of(options));
  if (options.has("json"))
    print_result(scenario_kind, {}, scenario_records(name, file, scenario));
  else
    fmt::print("{}", options.has("yaml") ? scenario_yaml(scenario)
                                         : scenario_text(name, file, scenario, options.has("all")));
}

}  // namespace

int list_command(const CommandLine& line) {
  const auto options = parse(list_usage, line.words);
  if (!options) return exit_code::yes;
  if (options->has("json-schemas")) {
    fmt::print("{}", json_document());
    return exit_code::yes;
  }
  const std::string only = options->words.empty() ? "" : options->words.front();
  const std::vector<std::string> known = list_names();
  if (!only.empty() && std::find(known.begin(), known.end(), only) == known.end())
    throw UserError(fmt::format("no list \"{}\"{}; expected {}", only, did_you_mean(only, known),
                                one_of(known)));
  if (only == keys_word) {
    fmt::print("{}", keys_listed(*options));
    return exit_code::yes;
  }
  for (const std::string_view option : {"template", "markdown"})
    if (options->has(option)) throw UserError(fmt::format("--{}: goes with `list keys`", option));
  if (options->has("json")) {
    print_result(list_kind, {}, list_records(line.data, only));
    return exit_code::yes;
  }
  for (const Kind& kind : kinds)
    if (only.empty() || only == kind.name) print_rows(kind.name, entries(line.data, kind));
  for (const Listing& listing : listings)
    if (only.empty() || only == listing.name) print_rows(listing.name, listing.rows());
  return exit_code::yes;
}

int show_command(const CommandLine& line) {
  const auto options = parse(show_usage, line.words);
  if (!options) return exit_code::yes;
  if (options->words.empty())
    throw UserError(fmt::format("which entry? usage: {}", show_usage.call));
  const std::string& name = options->words.front();
  if (is_model(line.data, name)) {
    refuse_scenario_options(*options, name, "model");
    const ModelEntry entry = find_model(line.data, name);
    if (options->has("json"))
      print_result(model_kind, {}, model_records(entry));
    else
      fmt::print("{}", model_text(entry));
    return exit_code::yes;
  }
  const auto shown = look_up(line.data, name);
  if (!shown && is_scenario(line.data, name)) {
    if (!options->has("json") && !options->has("yaml"))
      fmt::print("{}", assumptions_text(line, name, settings_of(*options)));
    print_scenario(line.data, name, *options);
    return exit_code::yes;
  }
  if (shown) refuse_scenario_options(*options, name, shown->kind);
  if (!shown) {
    std::vector<std::string> all;
    for (const Kind& kind : kinds)
      for (auto& [each, title] : entries(line.data, kind)) all.push_back(std::move(each));
    throw UserError(
        fmt::format("nothing called \"{}\" in the catalogue{}; `stepsim list` names all", name,
                    did_you_mean(name, all)));
  }
  if (options->has("json"))
    print_result(entry_kind, {}, records_of(name, *shown));
  else
    print(name, *shown);
  return exit_code::yes;
}

}  // namespace stepsim
