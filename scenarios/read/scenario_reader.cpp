#include "scenarios/read/scenario_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "scenarios/foreign/deepspeed/deepspeed.hpp"
#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/defaults.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/grpo.hpp"
#include "scenarios/read/job_reader.hpp"
#include "scenarios/read/lacks.hpp"
#include "scenarios/read/releases.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/run_length.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/program/used_operators.hpp"
#include "workloads/strategy/mesh.hpp"
#include "workloads/strategy/row_lengths.hpp"

namespace stepsim {
namespace {

std::vector<std::string> names_of(std::span<const UpdateKernels> kernels) {
  return texts_of(kernels, [](UpdateKernels each) {
    return update_kernels_names[static_cast<std::size_t>(each)];
  });
}

// A micro-batch of GRPO holds many responses, whose own lengths are looked at elsewhere.
bool outgrows_positions(const Scenario& scenario) {
  const std::int64_t longest = scenario.model.longest_sequence;
  return longest > 0 && !scenario.grpo && scenario.job.sequence > longest;
}

void check_optimizer(const Table& strategy, const Strategy& s) {
  const Optimizer& optimizer = s.optimizer;
  constexpr std::string_view kernels = "optimizer_kernels";
  if (strategy.has(kernels) && optimizer.kernels.empty())
    strategy.problem(kernels, fmt::format("{} has kernels of its own", optimizer.name));
  else if (strategy.has(kernels) && !optimizer.runs(s.update_kernels))
    strategy.problem(kernels, fmt::format("expected what {} has: {}", optimizer.name,
                                          one_of(names_of(optimizer.kernels))));
  if (s.optimizer_place == Offload::cpu && !optimizer.places.host)
    strategy.problem("optimizer",
                     fmt::format("{} is not modelled with its states on the host", optimizer.name));
  const bool everywhere = s.matrix_updates == MatrixUpdates::everywhere;
  if (everywhere && !(optimizer.orthogonal && is_fsdp(s.sharding)))
    strategy.problem("matrix_updates", "everywhere is a choice of muon with zero: fsdp or hsdp");
  if (optimizer.orthogonal) {
    const auto whole = [&](std::string_view what) {
      strategy.problem("optimizer",
                       fmt::format("{} updates whole matrices, {}", optimizer.name, what));
    };
    if (is_fsdp(s.sharding) && s.fsdp.version == 1) whole("and version 1 of fsdp has flat ones");
    if (s.zero.quantized_gradients) whole("whose gradients are not modelled in 4 bits");
    if (s.update_in_backward) whole("not tensors in the backward pass");
  }
  if (s.moments != MomentType::bf16) return;
  if (!optimizer.keeps_in(s.moments))
    strategy.problem("moment_dtype", fmt::format("{} has no moments in bf16", optimizer.name));
  else if (!s.master_weights || s.optimizer_place != Offload::none)
    strategy.problem("moment_dtype", "bf16 is modelled with fp32 copies and no offload");
}

void check_precision(const Table& strategy, const Strategy& s) {
  const Precision& precision = s.precision;
  if (precision.type != ProductType::bf16 && s.lora.quantised.packs() && !s.lora.quantised.narrow)
    strategy.problem("precision",
                     fmt::format("{} multiplies 16-bit weights, and lora.quantised stores them in "
                                 "4 bits",
                                 precision.name));
  if (s.fsdp.gather == FsdpDtype::fp32 && !s.master_weights)
    strategy.problem("fsdp", "gather_dtype: fp32 needs master_weights: true");
  if (!s.fsdp.narrow_gather) return;
  if (!is_fsdp(s.sharding) || s.fsdp.version == 1)
    strategy.problem("fsdp", "narrow_gather: is what version 2 of fsdp does");
  else if (!precision.gathers)
    strategy.problem("fsdp", fmt::format("narrow_gather: weights of precision {} are gathered in "
                                         "16 bits",
                                         precision.name));
}

void check_images(const Table& job, const Table& strategy, const Scenario& scenario) {
  const double images = scenario.job.images;
  if (images <= 0) return;
  if (!scenario.model.tower)
    return job.problem(
        "images", fmt::format("{} has no tower for images that is modelled", scenario.model.name));
  if (scenario.grpo) return job.problem("images", "is not modelled for method: grpo");
  const double tokens = images * picture_of(*scenario.model.tower, scenario.job.pixels).tokens;
  if (tokens > static_cast<double>(scenario.job.sequence))
    job.problem("images",
                fmt::format("{:.0f} tokens of {:g} image{} do not fit into a row of {}", tokens,
                            images, images == 1 ? "" : "s", scenario.job.sequence));
  const Strategy& s = scenario.strategy;
  for (const auto& [key, size] : {std::pair("tensor_parallel", s.tensor_parallel.size),
                                  std::pair("pipeline_parallel", s.pipeline_parallel.size)})
    if (size > 1) strategy.problem(key, "is not modelled with a tower for images (job.images)");
}

// An encoder writes no answers, and a decoder has no masked words.
void check_method(const Table& table, const Scenario& scenario) {
  const Method method = scenario.job.method;
  const bool encoder = scenario.model.encoder.has_value();
  if (encoder && method <= Method::grpo)
    table.problem("method",
                  fmt::format("{}: {} is an encoder, which writes no answers; expected "
                              "mlm, embed, classify, classify_tokens or reward",
                              method_names[static_cast<std::size_t>(method)], scenario.model.name));
  if (!encoder && method == Method::mlm)
    table.problem("method",
                  fmt::format("mlm: {} is no encoder; expected sft", scenario.model.name));
}

void check(const Table& job, const Table& strategy, const Scenario& scenario, const Found& found) {
  const Strategy& s = scenario.strategy;
  if (s.update_in_backward && (s.sharding != Sharding::zero0 || scenario.job.accumulation > 1 ||
                               s.optimizer_place != Offload::none))
    strategy.problem("update_in_backward",
                     "is modelled with zero: 0, one micro-batch and no offload of the optimizer");
  if (s.update_in_backward && scenario.job.only_update)
    job.problem("only_update",
                "nothing is left of a step: update_in_backward has the optimizer in the backward "
                "pass");
  if (s.distributed.used && (s.sharding != Sharding::zero1 || s.optimizer_place != Offload::none))
    strategy.problem("distributed_optimizer", "is modelled with zero: 1 and no offload");
  if (s.distributed.shard > 0 && found.cluster) {
    const std::int64_t ranks =
        scenario.cluster.ranks() / s.tensor_parallel.size / s.pipeline_parallel.size;
    if (ranks % s.distributed.shard != 0 || s.experts.parallel > 1)
      strategy.problem("distributed_optimizer",
                       fmt::format("shard: {} has to divide {} ranks, without expert_parallel",
                                   s.distributed.shard, ranks));
  }
  if (found.model) check_method(job, scenario);
  if (found.model) check_images(job, strategy, scenario);
  check_optimizer(strategy, s);
  check_precision(strategy, s);
  if (const auto moe = strategy.table_if("moe"))
    check_experts(
        *moe, {scenario.model, scenario.cluster, scenario.strategy, scenario.job, scenario.stack},
        {found.cluster, found.model});
  if (const auto offload = strategy.table_if("offload"))
    check_offload(*offload, scenario, found.cluster && found.model);
  if (found.cluster && found.model) {
    const bool placed = scenario.grpo && job.sound();
    const Cluster ranks =
        placed ? learner_cluster(scenario.cluster, *scenario.grpo) : scenario.cluster;
    if (!scenario.grpo || placed)
      check_parallel(strategy,
                     {scenario.model, ranks, scenario.strategy, scenario.job, scenario.stack});
  }
  if (found.cluster && found.model) check_adapters(strategy, scenario);
  if (found.model && outgrows_positions(scenario) && scenario.model.positions == Positions::learned)
    job.problem("sequence", fmt::format("{} is longer than {} allows ({})", scenario.job.sequence,
                                        scenario.model.name, scenario.model.longest_sequence));
}

void read_engine(const Catalogue& data, const Table& root, const Readings& readings,
                 Scenario& scenario) {
  const std::string name = root.text_or("engine", "vllm");
  if (!known(root, "engine", "engine", name, data, {engine_shelf})) return;
  const Document engine = under(open_entry(data, engine_shelf, name), readings, "engine");
  scenario.engine = read_engine_stack(engine.root());
  engine.finish();
  keep_constants(engine, "engine", scenario);
  if (!scenario.model.mixer) return;
  scenario.engine->mixers.rates = scenario.stack.mixers;
  scenario.engine->mixers.operators = scenario.stack.operators;
}

void load_grpo(const Table& job, const Found& found, Scenario& scenario) {
  Grpo& grpo = scenario.grpo.emplace(read_grpo(job));
  Strategy laid;  // under the strategy block, before that was read
  read_block(std::optional(job), grpo_switches(), laid);
  scenario.job.sequence = whole_rows(scenario.strategy, grpo.pack_length);
  // This takes as many of the micro-batches that a step will have as fill a pipeline.
  scenario.job.accumulation = scenario.strategy.pipeline_parallel.size;
  if (!found.cluster || !found.model) return;
  place_learners(job, scenario.cluster, grpo);
  fit_default_partition(job, scenario);
  check_grpo(job, scenario);
  for (std::string& note : grpo_notes(job)) scenario.notes.push_back(std::move(note));
}

// Returns whether the scenario says this itself; it does not say what recipes and stacks fill in.
bool says_itself(const Table& table, std::string_view path) {
  const std::size_t dot = path.find('.');
  if (dot == std::string_view::npos) {
    const auto origin = table.origin(path);
    return origin && origin->source.empty();
  }
  const std::string_view block = path.substr(0, dot);
  return table.is_mapping(block) && says_itself(table.table(block), path.substr(dot + 1));
}

// `strategy.deepspeed` names DeepSpeed's own file, beside the scenario.
void apply_deepspeed(const Catalogue& data, const Table& root, const std::string& name,
                     const std::string& scenario_file, Scenario& scenario) {
  const std::string file = beside(scenario_file, name);
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed))
    return root.table("strategy")
        .problem("deepspeed", fmt::format("no file \"{}\", beside the scenario or here", name));
  DeepSpeedQuestion question{data, scenario.strategy, scenario.job, scenario.model,
                             mesh_of(scenario.strategy, scenario.cluster).data()};
  question.some_learn = scenario.job.method == Method::grpo;
  question.optimizers = names_on(data, optimizer_shelf);
  for (const DeepSpeedRival& rival : deepspeed_rivals(data))
    if (says_itself(root, rival.key)) question.said.emplace_back(rival.key);
  question.set = root.table("strategy").texts_or(deepspeed_except);
  DeepSpeedImport read = read_deepspeed(file, question);
  scenario.files.push_back(file);
  if (says_itself(root, "strategy.precision"))
    read.strategy.precision = scenario.strategy.precision;
  scenario.strategy = read.strategy;
  scenario.job = read.job;
  for (auto& [key, line] : read.told)
    scenario.said.push_back({std::move(key), "", {.source = name, .line = line}});
  std::move(read.notes.begin(), read.notes.end(), std::back_inserter(scenario.notes));
}

std::string family_of(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const bool offloaded = s.optimizer_place != Offload::none || s.parameter_place != Offload::none;
  return fmt::format("{} {}{}", scenario.model.experts ? "moe" : "dense",
                     method_names[static_cast<std::size_t>(scenario.job.method)],
                     offloaded ? " offload" : "");
}

// Ends the reading, and names the recipe or stack that filled in what is wrong: it is no fault of
// the file that it went into.
void finish(const Document& document) {
  try {
    document.finish();
  } catch (const UserError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems)
      if (const std::string origin = document.origin_of(problem.key); !origin.empty())
        problem.message += fmt::format(" (from {})", origin);
    throw UserError(problems);
  }
}

// Drops the constants that stand behind no prediction of this step. Operators that are counted in
// data stay if the step runs them or the user set them; what engines do without attention goes if
// all layers attend.
void drop_unused_constants(Scenario& scenario) {
  Job job = scenario.job;  // of GRPO the rows are not known here
  job.sequence = std::max<std::int64_t>(job.sequence, 1);
  job.micro_batch = std::max<std::int64_t>(job.micro_batch, 1);
  const UsedOperators used(
      {scenario.cluster, scenario.model, scenario.stack, scenario.strategy, job});
  constexpr std::string_view scope = "operators.";
  std::erase_if(scenario.constants, [&](const NamedConstant& constant) {
    return constant.name.starts_with(scope) && constant.grade != Grade::given &&
           !used.has(std::string_view(constant.name).substr(scope.size()));
  });
  if (scenario.model.mixer) return;
  std::erase_if(scenario.constants, [](const NamedConstant& constant) {
    return constant.name.starts_with("engine.mixers.") && constant.grade != Grade::given;
  });
}

void read_title(const Table& root, Scenario& scenario) {
  scenario.name = root.text("name");
  if (std::ranges::any_of(scenario.name, [](unsigned char c) { return std::iscntrl(c) != 0; }))
    root.problem("name", "holds a control character");
  root.text_or("note", "");
}

// Each is the full name of one.
bool are_names_of(std::span<const std::string> names, std::span<const NamedConstant> constants) {
  return std::ranges::all_of(
      names, [&](const std::string& name) { return holds(constants, name, &NamedConstant::name); });
}

// A study gives one constant after the other of the same scenario, by its full name: those that the
// last one had are looked at first, which saves reading everything twice.
struct LastConstants {
  std::vector<NamedConstant> list;
};

// Loads model, machine, stack and engine; once more where the scenario gives constants of theirs.
void load_named(const Catalogue& data, const Table& root, const Names& names, const Found& found,
                Readings readings, Scenario& scenario) {
  const auto load = [&] {
    load_entries(data, names, found, readings, scenario);
    if (root.is_mapping("strategy")) {  // what is missing is noted already
      load_optimizer(data, root.table("strategy"), readings, scenario);
      load_adapters(data, root.table("strategy"), readings, scenario);
      load_precision(data, root.table("strategy"), readings, found.cluster, scenario);
    }
    if (found.cluster) load_faults(data, root.table("cluster"), readings, scenario);
    if (scenario.job.method == Method::grpo) read_engine(data, root, readings, scenario);
  };
  const auto given = root.table_if("constants");
  if (!given || !found.cluster || !found.stack) return load();
  std::vector<NamedConstant>& last = data.kept<LastConstants>().list;
  if (are_names_of(given->keys(), last)) {
    readings.given = given_constants(*given, last);
    load();
    if (!given->sound() || are_names_of(given->keys(), scenario.constants)) return;
    readings.given.clear();
  }
  load();
  last = scenario.constants;
  readings.given = given_constants(*given, scenario.constants);
  if (given->sound()) load();
}

// Notes files of the user's own that something came from.
void note_overlays(const Catalogue& data, const Table& root, const Names& names, const Found& found,
                   Scenario& scenario) {
  auto overlays = overlay_files(data, names, found, scenario);
  if (scenario.engine)
    append(overlays, overlay_files(data, engine_shelf, root.text_or("engine", "vllm")));
  if (!overlays.empty()) scenario.notes.push_back(overlay_note(overlays));
}

void note_usual_rows(Scenario& scenario) {
  const Job& job = scenario.job;
  const std::int64_t usual = usual_rows(job, scenario.strategy, scenario.cluster).sequence;
  if (usual == job.sequence) return;
  scenario.notes.push_back(fmt::format(
      "times are those of a usual step: rows hold {:.0f} tokens on average, and "
      "take {} slots on the GPU that others wait for; memory is that of rows of {}{}",
      job.fill * static_cast<double>(job.sequence), usual, job.sequence,
      scenario.strategy.expandable_segments
          ? ""
          : ", and the allocator keeps beside it what rows of other lengths have left"));
}

void note_oddities(Scenario& scenario) {
  note_usual_rows(scenario);
  for (std::string& note : mismatches(scenario)) scenario.notes.push_back(std::move(note));
  if (outgrows_positions(scenario))
    scenario.notes.push_back(fmt::format(
        "rows of {} tokens are longer than {} states ({}): its positions have to be stretched",
        scenario.job.sequence, scenario.model.name, scenario.model.longest_sequence));
}

// Puts the head behind the model that the job asks for. What was tied to the embedding goes away
// with the head over the vocabulary.
void set_head(const Job& job, Model& model) {
  using Makes = ModelHead::Makes;
  const bool labels = job.has_labels();
  model.head = {.makes = job.method == Method::classify_tokens ? Makes::labels_of_tokens
                         : labels                              ? Makes::labels
                         : job.method == Method::embed         ? Makes::nothing
                                                               : Makes::words,
                .labels = job.labels,
                .bias = labels && (job.label_bias || model.encoder),
                .beside_words = labels && job.word_head};
  model.tied_embeddings = model.tied_embeddings && model.head.has_words();
  if (job.images <= 0) model.tower.reset();
}

}  // namespace

void let_settings_stand(const Catalogue& data, Document& document,
                        std::span<const Setting> settings) {
  if (!document.peek("strategy.deepspeed")) return;
  std::vector<std::string> keys;
  for (const auto& [key, value] : settings)
    for (const auto& [rival, theirs] : deepspeed_rivals(data))
      if (rival == key || (rival.starts_with(key + ".") && says_itself(document.root(), rival)))
        keys.emplace_back(rival);
  if (keys.empty()) return;
  append(keys, document.root().table("strategy").texts_or(deepspeed_except));
  document.set(fmt::format("strategy.{}", deepspeed_except),
               fmt::format("[{}]", fmt::join(keys, ", ")));
}

void check_size(const Table& table, const Found& found, const Cluster& cluster) {
  constexpr std::uint32_t most_gpus = 1 << 17;  // what is kept of so many ranks takes 6 GB
  if (found.cluster && cluster.ranks() > most_gpus)
    table.problem("nodes",
                  fmt::format("makes {} GPUs; expected at most {}", cluster.ranks(), most_gpus));
}

Scenario read_scenario(const Catalogue& data, Document document, const MaybeDraw& draw,
                       std::span<const Setting> stack) {
  Scenario scenario;
  scenario.data = data;
  take_length_file(document);
  scenario.text = document.canonical();
  if (document.peek("job.method") == "grpo") lay_switches(document);
  if (document.peek("strategy")) lay_defaults(data, document);  // one without is refused below
  if (draw) document.draw_constants(*draw, "scenario");
  for (const std::string_view block : {"job", "strategy"}) document.settle_unknown(block);
  const Table root = document.root();
  read_title(root, scenario);
  read_recipe_names(data, root);
  check_offers(data, document);
  check_releases(data, root);
  const Table cluster = root.table("cluster");
  const Names names = read_names(data, root, cluster, document.file());
  const Table job = root.table("job"), strategy = root.table("strategy");
  scenario.job = read_job(job);
  const RenameNotes renames{"strategy", scenario.notes};
  read_blocks(strategy, strategy_blocks(), scenario.strategy, &renames);
  if (const auto table = root.table_if("measured")) scenario.measured = read_observation(*table);
  if (const auto table = root.table_if("estimated")) scenario.estimated = read_observation(*table);
  const Found found = find_entries(data, root, cluster, names);
  if (names.model.empty() && found.model)
    scenario.model =
        read_hf_config(root.table("model"), root.table("model").text_or("name", "the model above"));
  load_named(data, root, names, found, {draw, {}, stack}, scenario);
  check_size(cluster, found, scenario.cluster);
  set_head(scenario.job, scenario.model);
  const bool grpo = scenario.job.method == Method::grpo;
  const std::string optimizer = scenario.strategy.optimizer.name;
  const std::string precision = scenario.strategy.precision.name;
  const std::string deepspeed = strategy.text_or("deepspeed", "");
  if (!deepspeed.empty()) strategy.has(deepspeed_except);
  if (!deepspeed.empty() && found.model && found.cluster)
    apply_deepspeed(data, root, deepspeed, document.file(), scenario);
  if (scenario.strategy.optimizer.name != optimizer) {  // DeepSpeed's file has another one
    std::erase_if(scenario.constants, [&](const NamedConstant& constant) {
      return constant.name.starts_with(fmt::format("operators.{}.", optimizer));
    });
    load_optimizer(data, strategy, {draw, {}, stack}, scenario);
  }
  if (scenario.strategy.precision.name != precision)
    load_precision(data, strategy, {draw, {}, stack}, found.cluster, scenario);
  if (found.cluster) lay_what_lacks(data, scenario);
  if (grpo) load_grpo(job, found, scenario);
  keep_constants(document, "scenario", scenario);
  scenario.family = root.text_or("family", family_of(scenario));
  if (found.cluster) finish_job(job, scenario);
  check(job, strategy, scenario, found);
  note_overlays(data, root, names, found, scenario);
  append(scenario.notes, pipeline_notes(scenario.strategy.pipeline_parallel, scenario.job));
  finish(document);
  drop_unused_constants(scenario);
  for (SaidKey& said : said_keys(root, grpo)) scenario.said.push_back(std::move(said));
  note_oddities(scenario);
  return scenario;
}

Scenario parse_scenario(const Catalogue& data, std::string_view text, std::string_view file,
                        const MaybeDraw& draw, std::span<const Setting> stack) {
  return read_scenario(data, parse_document(text, file), draw, stack);
}

}  // namespace stepsim
