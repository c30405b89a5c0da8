// `list` and `show` print the catalogue as a person reads it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "cli/command.hpp"
#include "cli/models.hpp"
#include "cli/openapi.hpp"
#include "cli/scenarios.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/keys/key_pages.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/defaults.hpp"
#include "scenarios/read/releases.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "topology/prices.hpp"
#include "topology/processor.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

// These facts are what the document of an entry says that is no constant. Finding them reads every
// key there is.
using EntryFacts = std::vector<std::string>;

std::string parts_text(const Node& node) {
  std::string text;
  for (std::size_t i = 0; i < part_names.size(); ++i)
    if (node.parts[i] > 0)
      text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", node.parts[i], part_names[i]);
  return text;
}

void add_algorithms(EntryFacts& facts, const Communication& communication) {
  for (const auto& [kind, names] : communication.algorithms)
    facts.push_back(fmt::format("{}: {}", kind, fmt::join(names, ", ")));
}

EntryFacts node_facts(const Catalogue&, const Document& document) {
  const Node node = read_node(document.root());
  EntryFacts facts{fmt::format("GPU: {}", node.gpu), fmt::format("parts: {}", parts_text(node)),
                   fmt::format("usual network: {}", node.network)};
  if (!node.processors.empty())
    facts.push_back(
        fmt::format("host: {}, whose range reaches over them", fmt::join(node.processors, " or ")));
  for (const LinkSpec& link : node.links)
    facts.push_back(fmt::format("link {}: {} - {}{}", link.name, to_text(link.from),
                                to_text(link.to),
                                link.wiring == Wiring::mesh ? ", every pair" : ""));
  add_algorithms(facts, node.collectives);
  return facts;
}

EntryFacts network_facts(const Catalogue&, const Document& document) {
  const Network network = read_network(document.root(), 1);
  EntryFacts facts{network.switches
                       ? fmt::format("{} switches, places for {} nodes",
                                     network.switches->switches.size(), network.switches->nodes)
                       : fmt::format("{} nodes under one leaf switch or group{}",
                                     network.leaf.nodes,
                                     network.leaf.per_rail ? ", one per rail" : "")};
  add_algorithms(facts, network.collectives);
  return facts;
}

EntryFacts cluster_facts(const Catalogue& data, const Document& document) {
  const Table root = document.root();
  load_cluster(data, {.name = root.text("name"), .nodes = {}, .network = ""});
  EntryFacts facts{fmt::format("node: {}", root.text("node")),
                   fmt::format("network: {}", root.text("network")),
                   fmt::format("nodes: {}", root.integer("nodes", 1, 1 << 20))};
  if (const std::string note = root.text_or("note", ""); !note.empty()) facts.push_back(note);
  return facts;
}

EntryFacts price_facts(const Catalogue&, const Document& document) {
  const Provider provider = read_provider(document.root());
  EntryFacts facts{fmt::format("{} for a GPU and hour; no price is older than {}",
                               provider.currency, provider.oldest)};
  for (const Price& price : provider.prices)
    facts.push_back(fmt::format("{}{}: {:.4g} {}, {}", price.gpu,
                                price.gpus > 1 ? fmt::format(" ({} together)", price.gpus) : "",
                                price.rate, price.kind, price.date));
  return facts;
}

// Says what a stack or a recipe fills in: "strategy: {zero: 1}, where strategy.offload: absent".
EntryFacts default_facts(const Document& document) {
  EntryFacts facts;
  if (read_defaults(document.root(), "").empty()) return facts;
  for (const Table& entry : document.root().tables("defaults")) {
    std::string fact = "unless told otherwise: " + entry.one_line("set");
    if (entry.has("when")) fact += ", where " + entry.one_line("when");
    facts.push_back(std::move(fact));
  }
  return facts;
}

EntryFacts stack_facts(const Catalogue& data, const Document& document) {
  const Stack stack = read_stack(document.root());
  const Stack::Fusion& fused = stack.fused;
  EntryFacts facts;
  for (const auto& [name, is] : {std::pair{"norm", fused.norm}, std::pair{"rope", fused.rope},
                                 std::pair{"activation", fused.activation}})
    facts.push_back(fmt::format("{}: {}", name, is ? "one kernel" : "one kernel per operator"));
  facts.push_back(fmt::format("cross_entropy: {}",
                              cross_entropy_names[static_cast<std::size_t>(stack.cross_entropy)]));
  if (stack.holds_logits) facts.emplace_back("logits are held until the next forward pass");
  if (stack.joins_projections) facts.emplace_back("queries, keys and values are one product");
  if (stack.unties_head) facts.emplace_back("the head is a matrix of its own");
  if (stack.adapters.packs_head) facts.emplace_back("the head is quantised like other matrices");
  if (!stack.reentrant) facts.emplace_back("recomputation stops where all that is needed is there");
  if (stack.fp32_frozen)
    facts.emplace_back("under FSDP frozen parameters are kept in fp32 like trained ones");
  facts.push_back(fmt::format("tensor_layers: {}",
                              tensor_layers_names[static_cast<std::size_t>(stack.tensor_layers)]));
  append(facts, default_facts(document));
  for (const std::string& program : document.root().texts_or("releases"))
    for (const std::string& line : release_lines(open_entry(data, release_shelf, program).root()))
      facts.push_back(fmt::format("{} {}", program, line));
  return facts;
}

EntryFacts optimizer_facts(const Catalogue&, const Document& document) {
  const Optimizer optimizer = read_optimizer(document.root());
  EntryFacts facts{fmt::format("keeps {} numbers for each that it updates", optimizer.moments)};
  if (optimizer.kernels.empty())
    facts.push_back(fmt::format("kernels of its own: {} for each tensor", optimizer.own_launches));
  for (const UpdateKernels each : optimizer.kernels)
    facts.push_back(
        fmt::format("kernels: {}", update_kernels_names[static_cast<std::size_t>(each)]));
  if (optimizer.stops_behind_tensor)
    facts.emplace_back("the host waits behind each tensor until the device is done");
  return facts;
}

EntryFacts precision_facts(const Catalogue&, const Document& document) {
  const Precision precision = read_precision(document.root());
  if (precision.whole())
    return {fmt::format("all numbers have 32 bits; products run in {}",
                        product_type_names[static_cast<std::size_t>(precision.type)])};
  if (!precision.narrow()) return {"products run in 16 bits"};
  std::vector<std::string_view> multiplied;
  for (std::size_t i = 0; i < products_names.size(); ++i)
    if (precision.products[i]) multiplied.push_back(products_names[i]);
  EntryFacts facts{fmt::format("products of {} run in {}", fmt::join(multiplied, ", "),
                               product_type_names[static_cast<std::size_t>(precision.type)])};
  facts.emplace_back("attention's own kernels, routers and embeddings stay in 16 bits");
  facts.push_back(fmt::format("weights are cast {}", precision.once
                                                         ? "once for all micro-batches of a step"
                                                         : "in each pass"));
  facts.push_back(
      fmt::format("{:g} bytes of a product's input wait for the backward pass", precision.saved));
  if (precision.gathers) facts.emplace_back("fsdp can gather weights in this type");
  return facts;
}

EntryFacts format_facts(const Catalogue&, const Document& document) {
  const WeightFormat format = read_format(document.root());
  EntryFacts facts{fmt::format("{:.3g} bytes of a weight as it is stored", format.bytes)};
  if (format.copy > 0)
    facts.emplace_back("what was unpacked waits for the backward pass in 16 bits");
  if (format.keeps_input) facts.emplace_back("its function saves what it multiplied");
  return facts;
}

EntryFacts adapter_facts(const Catalogue&, const Document& document) {
  const AdapterMethod method = read_adapter_method(document.root());
  return {fmt::format("trains {} tensors beside a matrix, in {} products of a forward pass",
                      method.tensors.size(), method.products.size())};
}

struct Kind {
  std::string_view name;  // as the user says it
  Shelf shelf;
  EntryFacts (*facts)(const Catalogue& data,
                      const Document&) = nullptr;  // else it has its own page
};
// Of some entries there is nothing to say but constants; what they are is read all the same.
constexpr std::array shelves{
    Kind{"gpus", gpu_shelf,
         [](const Catalogue&, const Document& document) -> EntryFacts {
           const Gpu gpu = read_gpu(document.root());
           return {fmt::format("{} compute units", gpu.units)};
         }},
    Kind{"nodes", node_shelf, node_facts},
    Kind{"networks", network_shelf, network_facts},
    Kind{"processors", processor_shelf,
         [](const Catalogue&, const Document& document) {
           read_processor(document.root());
           return EntryFacts();
         }},
    Kind{"clusters", cluster_shelf, cluster_facts},
    Kind{"prices", price_shelf, price_facts},
    Kind{"models", model_shelf},
    Kind{"stacks", stack_shelf, stack_facts},
    Kind{"optimizers", optimizer_shelf, optimizer_facts},
    Kind{"precisions", precision_shelf, precision_facts},
    Kind{"formats", format_shelf, format_facts},
    Kind{"adapters", adapter_shelf, adapter_facts},
    Kind{"recipes", recipe_shelf,
         [](const Catalogue&, const Document& document) {
           read_recipe(document.root());
           return default_facts(document);
         }},
    Kind{"releases", release_shelf,
         [](const Catalogue&, const Document& document) { return release_lines(document.root()); }},
    Kind{"engines", engine_shelf, [](const Catalogue&, const Document& document) {
           read_engine_stack(document.root());
           return EntryFacts();
         }}};
constexpr std::string_view scenarios_word = "scenarios", keys_word = "keys";
// The program brings these along itself.
constexpr std::string_view algorithms_word = "algorithms", architectures_word = "architectures";

// These are name and title of each.
using Entries = std::vector<std::pair<std::string, std::string>>;

Entries entries(const Catalogue& data, const Kind& kind) {
  return mapped(names_on(data, kind.shelf), [&](const std::string& name) {
    return std::pair(name, heading_in(file_of(data, kind.shelf, name), "title"));
  });
}

Entries entries(const Catalogue& data, std::string_view list) {
  const auto summary = [](const auto& each) {
    return std::pair(std::string(each.name), std::string(each.summary));
  };
  if (list == scenarios_word) return list_scenarios(data);
  if (list == algorithms_word) return mapped(algorithms(), summary);
  if (list == architectures_word) return mapped(architectures(), summary);
  return entries(data, *std::ranges::find(shelves, list, &Kind::name));
}

Entries matching(Entries rows, const std::string& text) {
  const std::string small = in_small_letters(text);
  std::erase_if(rows, [&](const auto& row) {
    return in_small_letters(row.first + ' ' + row.second).find(small) == std::string::npos;
  });
  return rows;
}

void print_rows(std::string_view heading, const Entries& rows) {
  say("{}\n", heading);
  std::size_t widest = 0;
  for (const auto& [name, title] : rows) widest = std::max(widest, name.size());
  for (const auto& [name, title] : rows) say("  {:<{}}  {}\n", name, widest, title);
}

Records list_records(const Catalogue& data, std::span<const std::string> lists,
                     const std::string& text) {
  const auto entry = [](const auto& each) -> Records {
    return {{"name", "of the entry", each.first}, {"title", "what it is", each.second}};
  };
  return mapped(lists, [&](const std::string& list) {
    return Record(list, "entries", list_of(matching(entries(data, list), text), entry));
  });
}

struct Shown {
  std::string_view kind;
  std::string title;
  EntryFacts facts;
  std::vector<NamedConstant> constants;
};

// Shows constants that all stacks share.
std::optional<Shown> show_shared(const Catalogue& data, const std::string& name) {
  constexpr std::array<std::string_view, 4> shared{"operators", "attention", "experts", "mixers"};
  if (std::find(shared.begin(), shared.end(), name) == shared.end()) return std::nullopt;
  const Document document = read_document(data.file(fmt::format("workloads/{}.yaml", name)));
  if (name == "operators") read_operators(document.root());
  if (name == "attention") read_attention_shares(document.root());
  if (name == "experts") read_expert_shares(document.root());
  if (name == "mixers") read_mixers(document.root());
  document.finish();
  return Shown{"constants", "the same for all stacks", {}, document.constants()};
}

bool is_model(const Catalogue& data, const std::string& name) {
  const bool config = is_config_path(name) && !is_scenario(data, name);
  return config || holds(names_on(data, model_shelf), name);
}

std::optional<Shown> look_up(const Catalogue& data, const std::string& name) {
  for (const Kind& kind : shelves) {
    if (kind.facts == nullptr || !holds(names_on(data, kind.shelf), name)) continue;
    const Document document = open_entry(data, kind.shelf, name);
    Shown shown{
        kind.shelf.singular, document.root().text_or("title", ""), kind.facts(data, document), {}};
    document.finish();
    shown.constants = document.constants();
    if (const auto files = overlay_files(data, kind.shelf, name); !files.empty())
      shown.facts.push_back(overlay_note(files));
    return shown;
  }
  return show_shared(data, name);
}

void print(const std::string& name, const Shown& shown) {
  say("{} ({}): {}\n", name, shown.kind, shown.title);
  for (const std::string& fact : shown.facts) say("  {}\n", wrap(fact, 100, 2));
  if (shown.constants.empty()) return;
  TextTable table{{"constant", " value", " low", " high", "grade"}};
  for (const NamedConstant& c : shown.constants)
    table.rows.push_back({c.name, to_text(c.value, c.dimension), to_text(c.low, c.dimension),
                          to_text(c.high, c.dimension), std::string(to_text(c.grade))});
  say("\n{}\nsources\n", render(table));
  for (const NamedConstant& c : shown.constants)
    say("  {}\n      {}\n", c.name, wrap(c.source, 100, 6));
}

Records records_of(const std::string& name, const Shown& shown) {
  const auto constant = [](const NamedConstant& c) {
    return joined({constant_records(c), {{"source", "where it is from", c.source}}});
  };
  return {{"name", "of the entry", name},
          {"kind", "GPU, node, network, cluster, stack, optimizer or engine", shown.kind},
          {"title", "what it is", shown.title},
          {"facts", "what is no constant", list_of(shown.facts)},
          {"constants", "with range, grade and source", list_of(shown.constants, constant)}};
}

std::string keys_text() {
  constexpr std::size_t indent = 6, width = 100;
  std::string text;
  for (const KeyGroup& group : key_groups()) {
    text += fmt::format("{}{}\n", text.empty() ? "" : "\n",
                        group.block.empty() ? "top of the file" : group.block);
    if (!group.sentence.empty()) text += fmt::format("  {}\n", wrap(group.sentence, width, 2));
    for (const KeyRow& row : group.rows) {
      std::string said =
          fmt::format("{}: {}", row.name, row.allowed.empty() ? row.kind : row.allowed);
      said += row.usual == "required" ? "; required" : fmt::format("; default: {}", row.usual);
      text += fmt::format("  {}\n      {}\n", wrap(said, width, indent),
                          wrap(row.sentence, width, indent));
    }
  }
  return text;
}

Records keys_records() {
  Records keys;
  for (const KeyGroup& group : key_groups())
    for (const KeyRow& row : group.rows)
      keys.emplace_back("", "",
                        Records{{"block", "of the file; empty: its top", group.block},
                                {"key", "its name", row.name},
                                {"kind", "of its value", row.kind},
                                {"allowed", "words or limits", row.allowed},
                                {"default", "when nobody says it", row.usual},
                                {"sentence", "what it is", row.sentence}});
  return {{"keys", "of a scenario", RecordList{keys}}};
}

std::string keys_listed(const Options& options) {
  const int forms = static_cast<int>(options.has("json")) +
                    static_cast<int>(options.has("markdown")) +
                    static_cast<int>(options.has("template"));
  if (forms > 1)
    throw UserError("--json, --markdown and --template: only one of them can be printed");
  if (options.has("template")) {
    const std::string method = word_of(options, "template", "sft", {"sft", "grpo"});
    return template_text(method == "grpo" ? Method::grpo : Method::sft);
  }
  if (options.has("markdown")) return key_page();
  return options.has("json") ? to_json(joined({head_of(keys_kind), keys_records()})) : keys_text();
}

void refuse_scenario_options(const Options& options, const std::string& name,
                             std::string_view kind) {
  for (const std::string_view option : {"set", "all", "yaml"})
    if (options.has(option))
      throw UserError(fmt::format("--{}: {} is a {}, and no scenario", option, name, kind));
}

void print_scenario(const Catalogue& data, const std::string& name, const Options& options) {
  require_one_form(options, {"json", "yaml"});
  const std::string file = find_scenario(data, name);
  const Scenario scenario = load_scenario(data, file, settings_of(options));
  if (options.has("json"))
    print_result(scenario_kind, {}, scenario_records(name, file, scenario));
  else
    say("{}{}", options.has("yaml") ? "" : assumptions_text(scenario.assumptions),
        options.has("yaml") ? scenario_yaml(scenario)
                            : scenario_text(name, file, scenario, options.has("all")));
}

}  // namespace

std::vector<std::string> catalogue_lists() {
  std::vector<std::string> names = texts_of(shelves, &Kind::name);
  append(names, std::array{scenarios_word, algorithms_word, architectures_word});
  return names;
}

Records list_sample() {
  const Records entry{{"name", "of the entry", ""}, {"title", "what it is", ""}};
  return {{"KIND", "entries; one key for each kind", list_of(std::array{entry}, std::identity())}};
}

Records entry_sample() {
  Shown shown;
  shown.constants.emplace_back();
  return records_of("", shown);
}

Records keys_sample() {
  return keys_records();
}

int list_command(const CommandLine& line) {
  const auto options = parse("list", line.words);
  if (!options) return exit_code::yes;
  if (options->has("json-schemas")) {
    say("{}", json_document());
    return exit_code::yes;
  }
  if (options->has("openapi")) {
    say("{}", openapi_document());
    return exit_code::yes;
  }
  const std::string only = options->words.empty() ? "" : options->words.front();
  std::vector<std::string> lists = catalogue_lists();
  std::vector<std::string> known = lists;
  known.emplace_back(keys_word);
  if (!only.empty() && !holds(known, only))
    throw UserError(fmt::format("no list \"{}\"{}; expected {}", only, did_you_mean(only, known),
                                one_of(known)));
  if (only == keys_word) {
    say("{}", keys_listed(*options));
    return exit_code::yes;
  }
  for (const std::string_view option : {"template", "markdown"})
    if (options->has(option)) throw UserError(fmt::format("--{}: goes with `list keys`", option));
  if (!only.empty()) lists = {only};
  const std::string text = options->get("matching").value_or("");
  if (options->has("json")) {
    print_result(list_kind, {}, list_records(line.data, lists, text));
    return exit_code::yes;
  }
  for (const std::string& list : lists)
    if (const Entries rows = matching(entries(line.data, list), text); !rows.empty())
      print_rows(list, rows);
  return exit_code::yes;
}

int show_command(const CommandLine& line) {
  const auto options = parse("show", line.words);
  if (!options) return exit_code::yes;
  const std::string& name = options->words.front();
  const auto show_model = [&] {
    refuse_scenario_options(*options, name, "model");
    const ModelEntry entry = find_model(line.data, name);
    if (options->has("json"))
      print_result(model_kind, {}, model_records(entry));
    else
      say("{}", model_text(entry));
    return exit_code::yes;
  };
  if (is_model(line.data, name)) return show_model();
  const auto shown = look_up(line.data, name);
  if (!shown && is_scenario(line.data, name)) {
    print_scenario(line.data, name, *options);
    return exit_code::yes;
  }
  if (shown) refuse_scenario_options(*options, name, shown->kind);
  // This may be another name of a model: gpt2.
  if (!shown && resolve_model(line.data, name) != name) return show_model();
  if (!shown) {
    std::vector<std::string> all;
    for (const Kind& kind : shelves) append(all, names_on(line.data, kind.shelf));
    append(all, scenario_names(line.data));
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
