#include "scenarios/foreign/table/assumed.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "scenarios/foreign/table/named_machines.hpp"
#include "scenarios/foreign/table/named_models.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/error.hpp"
#include "topology/called.hpp"
#include "workloads/model/other_models.hpp"

namespace stepsim {
namespace {

constexpr std::string_view usual_node = "h100-8";
constexpr std::uint32_t gpus_of_usual_node = 8;

void take_node(const NamedMachine& machine, const std::string& remark, Translation& translation) {
  translation.lines.push_back({"cluster.node", machine.node, "", 0, remark});
  if (machine.nodes > 1)
    translation.lines.push_back({"cluster.nodes", std::to_string(machine.nodes), "", 0, remark});
  if (!machine.whole)
    translation.lines.push_back(
        {"cluster.gpus_per_node", std::to_string(machine.gpus), "", 0, remark});
}

std::string nodes_text(const NamedMachine& machine) {
  if (machine.nodes > 1 && machine.whole)
    return fmt::format("{} x {}", machine.nodes, machine.node);
  if (machine.nodes > 1)
    return fmt::format("{} x {} of {}", machine.nodes, machine.gpus, machine.node);
  return machine.whole ? machine.node : fmt::format("{} of {}", machine.gpus, machine.node);
}

// Full nodes, as far as that goes up; a node of more GPUs than the usual one has is taken for
// several.
NamedMachine usual_machine(const GpusOfSource& said) {
  NamedMachine machine{.words = "", .node = std::string(usual_node), .gpus = gpus_of_usual_node};
  if (said.gpus <= 0) return machine;
  const auto gpus = static_cast<std::uint32_t>(said.gpus);
  machine.nodes = said.nodes > 0 ? static_cast<std::uint32_t>(said.nodes)
                                 : (gpus + gpus_of_usual_node - 1) / gpus_of_usual_node;
  while (gpus % machine.nodes != 0 || gpus / machine.nodes > gpus_of_usual_node) ++machine.nodes;
  machine.gpus = std::max(gpus / machine.nodes, 1u);
  machine.whole = machine.gpus == gpus_of_usual_node;
  return machine;
}

Document file_of_machines(const SourceQuestion& question) {
  return read_document(question.data.file("scenarios/foreign/table/machines.yaml"));
}

// Returns whether nothing in the file says that several processes run.
bool is_alone(const SourceQuestion& question, const Table& source) {
  const Document file = file_of_machines(question);
  const std::vector<std::string> keys = file.root().texts("sharding");
  return question.launch == nullptr &&
         std::ranges::none_of(keys, [&](const std::string& key) { return source.has(key); });
}

NamedMachine machine_alone(const SourceQuestion& question) {
  return {.words = "", .node = file_of_machines(question).root().text("alone"), .gpus = 1};
}

// The launcher may leave some of the node's GPUs alone.
void fewer_gpus(const GpusOfSource& said, NamedMachine& machine, std::string& why) {
  if (said.gpus <= 0 || said.nodes > 1 || machine.nodes > 1 || said.gpus >= machine.gpus) return;
  machine.gpus = static_cast<std::uint32_t>(said.gpus);
  machine.whole = false;
  why = fmt::format("{}, and {}", why, said.why);
}

// Returns the word of the file's or its folder's name that is a GPU which is known and not
// modelled; "": there is none.
std::string unknown_card(const SourceQuestion& question) {
  const std::filesystem::path file(question.file);
  std::string word;
  for (const char c : file.parent_path().filename().string() + "." + file.filename().string()) {
    if (is_letter_or_digit(c)) {
      word += c;
      continue;
    }
    if (const auto called = word.empty() ? std::nullopt : called_gpu(question.data, word);
        called && !called->is_modelled)
      return word;
    word.clear();
  }
  return "";
}

// Finds the GPU in "sft.mi300x.sh", or for any file in a folder "mi300x".
std::optional<NamedMachine> gpu_of_path(const SourceQuestion& question, const GpusOfSource& said,
                                        std::string& why) {
  const std::filesystem::path file(question.file);
  const auto gpus = static_cast<std::uint32_t>(std::max<std::int64_t>(said.gpus, 0));
  if (question.launch != nullptr && !question.launch->gpu.empty()) {
    const Launch& launch = *question.launch;
    const auto nodes = static_cast<std::uint32_t>(std::max<std::int64_t>(said.nodes, 1));
    auto machine = machine_called(question.data, launch.gpu, gpus / nodes);
    const std::string asked = launch.why_gpu.empty()
                                  ? fmt::format("the queue is asked for {}", launch.gpu)
                                  : launch.why_gpu;
    why = fmt::format("{}{}{}{}", asked, machine ? "" : ", which the catalogue does not have",
                      said.why.empty() || said.why == asked ? "" : ", and ",
                      said.why == asked ? "" : said.why);
    if (machine && nodes > 1) machine->nodes = nodes;
    return machine;
  }
  std::vector<std::string> names;
  if (question.launch != nullptr && !question.launch->queue.empty())
    names.push_back(question.launch->queue);
  if (!question.script.empty())
    names.push_back(std::filesystem::path(question.script).filename().string());
  for (const std::string& name : names) {
    const bool queue = question.launch != nullptr && name == question.launch->queue;
    auto machine =
        queue ? machine_called(question.data, name, gpus) : gpu_in_name(question.data, name, gpus);
    if (!machine || (said.nodes > 1 && machine->nodes <= 1)) continue;
    machine->nodes = static_cast<std::uint32_t>(std::max<std::int64_t>(said.nodes, 1));
    why = fmt::format("the {} is called {}{}{}", queue ? "queue" : "script", machine->words,
                      said.gpus > 0 ? ", and " : "", said.gpus > 0 ? said.why : "");
    return machine;
  }
  for (const bool folder : {false, true}) {
    const std::string name = (folder ? file.parent_path() : file).filename().string();
    auto machine = gpu_in_name(question.data, name, gpus);
    if (!machine) continue;
    if (said.nodes > 1 && machine->nodes == 1) return std::nullopt;
    const std::string called =
        fmt::format("the {} is called {}", folder ? "folder" : "file", machine->words);
    why = said.gpus > 0 ? fmt::format("{}, and {}", called, said.why) : called;
    return machine;
  }
  return std::nullopt;
}

// Takes from the launcher how many GPUs each node has, where the source itself does not say it.
GpusOfSource with_launcher(const SourceQuestion& question, GpusOfSource said) {
  const GpusOfSource launched = gpus_of(question);
  if (said.each > 0 || said.learners_alone || launched.each == 0) return said;
  return {.gpus = said.gpus,
          .nodes = said.nodes > 0 ? said.nodes : launched.nodes,
          .why = launched.why,
          .each = launched.each};
}

// Returns whether the command line says it, by itself or within {node: h100-8, nodes: 2}.
bool options_say(const SourceQuestion& question, std::string_view path) {
  Document told = parse_document("{}", question.file);
  for (const auto& [key, value] : question.settings)
    if (key == "cluster" || key == path) told.set(key, value);
  return told.peek(path).has_value();
}

// Returns whether the machine is named as a card that leaves open how many: "h100".
bool is_card_alone(const SourceQuestion& question, const Translation& translation) {
  Document told = parse_document(document_of(translation).canonical(), question.file);
  for (const auto& [key, value] : question.settings)
    if (key == "cluster" || key == "cluster.node") told.set(key, value);
  const std::string name = told.peek("cluster.node").value_or("");
  if (is_on(question.data, node_shelf, name) || is_on(question.data, cluster_shelf, name))
    return false;
  const auto card = card_called(question.data, name);
  return card && card->count == 0;
}

// Returns how many GPUs of each node are used: those that the source asks for, as far as the node
// has them and the command line says nothing else.
std::int64_t kept_gpus(const SourceQuestion& question, std::int64_t each, const Node& named,
                       bool card, Translation& translation) {
  const auto there = static_cast<std::int64_t>(named.count(PartKind::gpu));
  if (each <= 0 || each == there || options_say(question, "cluster.gpus_per_node") ||
      options_say(question, "cluster.gpus"))
    return there;
  if (each > there && !card)
    throw UserError(fmt::format(
        "{} asks for {} GPUs of a node, and {} has {}: name a machine that has them, or say "
        "--gpus {}",
        question.launch != nullptr && question.launch->gpus == each ? "the launcher" : "the file",
        each, named.name, there, there));
  translation.lines.push_back({"cluster.gpus_per_node", std::to_string(each), "", 0,
                               "as many as it is told to take; --set cluster.gpus_per_node=N",
                               true});
  return each;
}

// A launcher's nodes are trays where a node of the catalogue is a rack of these: as few racks as
// can have the same number of them.
GpusOfSource in_racks(GpusOfSource said, const Node& node) {
  const std::int64_t trays = node.trays, nodes = std::max<std::int64_t>(said.nodes, 1);
  if (trays < 2 || said.each * trays != node.count(PartKind::gpu)) return said;
  std::int64_t racks = (nodes + trays - 1) / trays;
  while (nodes % racks != 0) ++racks;
  said.each *= nodes / racks;
  said.nodes = racks;
  said.why += fmt::format("; {} of the {} trays of {}{}", nodes / racks, trays,
                          racks > 1 ? "each of so many racks " : "", node.name);
  return said;
}

// Shares GPUs of a card that has no node of its own out among as few nodes of eight as can have the
// same number of them.
void on_nodes(GpusOfSource& said) {
  constexpr std::int64_t most = 8;
  std::int64_t nodes = std::max((said.gpus + most - 1) / most, said.nodes);
  while (said.gpus % nodes != 0) ++nodes;
  said.nodes = nodes;
  said.each = said.gpus / nodes;
}

// Keeps as many nodes and GPUs of the named machine as the source says, unless the command line
// does.
void keep_counts(const SourceQuestion& question, const GpusOfSource& told,
                 Translation& translation) {
  GpusOfSource said = with_launcher(question, told);
  if (said.each <= 0 && said.gpus > 1 && is_card_alone(question, translation)) on_nodes(said);
  if (said.each <= 0 && said.nodes <= 1) return;
  const auto named = surroundings_of(question, document_of(translation)).cluster;
  if (!named) return;  // refused, with its nearest name, when the scenario is read
  if (!options_say(question, "cluster.nodes")) said = in_racks(said, named->node);
  const auto there = static_cast<std::int64_t>(named->node.count(PartKind::gpu)),
             gpus = kept_gpus(question, said.each, named->node,
                              is_card_alone(question, translation), translation);
  const bool nodes = said.nodes > 1 && !options_say(question, "cluster.nodes") &&
                     !options_say(question, "cluster.gpus");
  if (nodes)
    translation.lines.push_back({"cluster.nodes", std::to_string(said.nodes), "", 0,
                                 fmt::format("{}; --nodes N", said.why), true});
  if (!nodes && gpus == there) return;
  NamedMachine machine{
      .words = "", .node = named->node.name, .gpus = static_cast<std::uint32_t>(gpus)};
  machine.nodes = nodes ? static_cast<std::uint32_t>(said.nodes) : named->nodes;
  machine.whole = gpus == there;
  translation.assumptions.push_back(
      {"nodes and GPUs of each", nodes_text(machine), said.why,
       gpus == there ? "--nodes N" : "--nodes N, --set cluster.gpus_per_node=N"});
}

// The folder that a launch before this one writes is the model that that one began with.
std::optional<NamedModel> model_called(const SourceQuestion& question, const std::string& said,
                                       const std::string& kind) {
  const EarlierLaunch* wrote = nullptr;
  for (const EarlierLaunch& each : question.earlier)
    if (same_run(each.output, said) && !same_run(each.model, said)) wrote = &each;
  auto model = find_named_model(question.data, wrote ? wrote->model : said, question.file);
  if (model && wrote)
    model->how = fmt::format("the launch of line {} writes it, from {}", wrote->line, wrote->model);
  if (!model)
    model = model_of_size(question.data, {wrote ? wrote->model : said, question.file}, kind);
  return model;
}

// Returns the mean length of documents that the command line says; 0: it does not.
double mean_length(const SourceQuestion& question) {
  for (const auto& [key, value] : question.settings)
    if (key == "job.document_length.mean") return std::strtod(value.c_str(), nullptr);
  return 0;
}

}  // namespace

void assume_machine(const SourceQuestion& question, const Table& source, Translation& translation,
                    const GpusOfSource& said) {
  if (question.decides("cluster.node")) return keep_counts(question, said, translation);
  const std::string name = std::filesystem::path(question.file).filename().string();
  auto machine = machine_in_name(question.data, name);
  if (machine && machine->node.empty()) {
    source.problem("", fmt::format("is called for {}, and the catalogue has no such node: name one "
                                   "with --cluster; `stepsim list nodes` names them",
                                   machine->words));
    return;
  }
  std::string why = machine          ? fmt::format("the file is called {}", machine->words)
                    : said.gpus <= 0 ? std::string("the file does not say")
                                     : said.why;
  if (machine) fewer_gpus(said, *machine, why);
  if (!machine) machine = gpu_of_path(question, said, why);
  if (!machine && said.alone && said.gpus <= 0 && !options_say(question, "cluster.gpus") &&
      is_alone(question, source)) {
    machine = machine_alone(question);
    why = "the file names neither a launcher nor sharding, so one process";
  }
  const std::string card = machine && machine->words != "" ? "" : unknown_card(question);
  if (!machine) machine = usual_machine(said);
  if (!card.empty()) why += fmt::format(", and the catalogue has no {}, which it is called", card);
  take_node(*machine, fmt::format("taken: {}; --cluster", why), translation);
  translation.assumptions.push_back(
      {"machine", nodes_text(*machine) + (card.empty() ? "" : " in place of " + card), why,
       "--cluster NAME --nodes N"});
}

void assume_model(const SourceQuestion& question, const Table& source, const std::string& key,
                  Translation& translation) {
  const std::string said = source.text_or(key, "");
  if (question.decides("model")) return;
  constexpr std::string_view way =
      "name one with --model: `stepsim list models` names them, and the path of a config.json will "
      "do";
  if (said.empty()) {
    source.problem(key, fmt::format("says no model: {}", way));
    return;
  }
  constexpr std::string_view kind = "model_type";
  const auto model =
      model_called(question, said, source.has(kind) ? source.one_line(kind) : std::string());
  const bool stands_in = model && model->how.starts_with("a stand-in");
  if (const std::string why = model && !stands_in ? "" : why_not_modelled(question.data, said);
      !why.empty()) {
    source.problem(key, fmt::format("\"{}\" is {}", said, why));
    return;
  }
  if (!model) {
    source.problem(
        key, fmt::format("\"{}\" is neither in the catalogue, nor in the local cache of Hugging "
                         "Face, nor a folder here: {}",
                         said, way));
    return;
  }
  const auto origin = source.origin(key);
  translation.lines.push_back({"model", yaml_quoted(model->name), key, origin ? origin->line : 0,
                               model->how.empty() ? "" : said});
  for (const std::string& file : model->files) translation.files.push_back(file);
  if (model->how.empty()) return;
  if (model->how.starts_with("a stand-in of another family"))
    translation.notes.push_back(
        fmt::format("{} stands in, of another family and about the same size: memory of such runs "
                    "was off by a quarter and time by a tenth; --model takes the path of its "
                    "config.json",
                    model->name));
  translation.assumptions.push_back(
      {"model", fmt::format("{} for {}", model->name, said), model->how, "--model NAME"});
}

void assume_data(const SourceQuestion& question, const DataOfSource& data,
                 Translation& translation) {
  const auto put = [&](std::string_view path, std::string value, std::string key,
                       std::string remark) {
    translation.lines.push_back(
        {std::string(path), std::move(value), std::move(key), 0, std::move(remark)});
  };
  const bool unpacked = !data.packed && !question.decides("job.packing");
  if (unpacked && data.padding != Padding::row && !question.decides("job.padding"))
    put("job.padding", std::string(to_text(data.padding)), std::string(data.padding_key),
        data.padding_key.empty() ? "as its collator does" : "");
  if (unpacked && data.padding != Padding::row && question.decides("job.document_length.mean") &&
      !question.decides("job.document_length.spread"))
    put("job.document_length.spread",
        "{value: 0.8, low: 0.3, high: 1.5, source: how much rows differ is not in the file}", "",
        "taken");
  if (!data.fill_said && !question.decides("job.fill") &&
      !question.decides("job.document_length.mean")) {
    put("job.fill",
        data.packed
            ? "{value: 0.95, low: 0.6, high: 1, source: how full packed rows are is not in the "
              "file}"
            : "{value: 1, low: 0.1, high: 1, source: how long the rows are is not in the file}",
        "", "taken");
    translation.assumptions.push_back(
        {std::string(length_of_rows),
         data.packed ? "95 % full (60 to 100 %), a document to a row" : "all full (10 to 100 %)",
         "the file does not say; rates leave padding out",
         data.packed ? "--set job.fill=0.7" : "--set job.document_length.mean=TOKENS"});
  }
  if (data.steps_said || question.decides("job.tokens") || question.decides("job.samples") ||
      question.decides("job.optimizer_steps") || question.decides("job.iterations"))
    return;
  const double mean = question.set_samples > 0 && data.packed ? mean_length(question) : 0;
  if (question.set_samples > 0 && data.packed && mean <= 0)
    throw UserError(
        "--samples-in-set: rows are packed, so the number of documents does not say how many rows "
        "there are; --set job.document_length.mean=TOKENS beside it does, or --tokens");
  if (mean > 0)
    put("job.tokens", fmt::format("{}", question.set_samples * mean * data.epochs),
        "--samples-in-set", fmt::format("{:.4g} times {:.4g} tokens", data.epochs, mean));
  else if (question.set_samples > 0)
    put("job.samples", fmt::format("{}", question.set_samples), "--samples-in-set", "");
  else if (question.set_tokens > 0)
    put("job.tokens", fmt::format("{}", question.set_tokens * data.epochs), "--tokens",
        data.epochs == 1 ? "" : fmt::format("{:.4g} times", data.epochs));
  else
    translation.assumptions.push_back(
        {"size of the data set", "not known: no time of the whole job", "the file does not say",
         data.packed ? "--tokens N" : "--samples-in-set N or --tokens N"});
}

}  // namespace stepsim
