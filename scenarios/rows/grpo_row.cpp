#include "scenarios/rows/grpo_row.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "scenarios/rows/machine_cells.hpp"
#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "workloads/grpo/lengths.hpp"

namespace stepsim {
namespace {

constexpr std::array grpo_texts{
    std::pair{"source", &GrpoRow::source},
    std::pair{"hardware", &GrpoRow::hardware},
    std::pair{"framework", &GrpoRow::framework},
    std::pair{"model", &GrpoRow::model},
    std::pair{"algorithm", &GrpoRow::algorithm},
    std::pair{"policy_mode", &GrpoRow::policy_mode},
    std::pair{"train_strategy", &GrpoRow::train_strategy},
    std::pair{"offload", &GrpoRow::offload},
    std::pair{"precision", &GrpoRow::precision},
    std::pair{"notes", &GrpoRow::notes},
};

constexpr std::array grpo_numbers{
    std::pair{"nodes", &GrpoRow::nodes},
    std::pair{"gpus", &GrpoRow::gpus},
    std::pair{"train_gpus", &GrpoRow::train_gpus},
    std::pair{"gen_gpus", &GrpoRow::gen_gpus},
    std::pair{"max_seq", &GrpoRow::max_sequence},
    std::pair{"avg_seq", &GrpoRow::mean_sequence},
    std::pair{"gen_batch", &GrpoRow::generation_batch},
    std::pair{"train_batch", &GrpoRow::train_batch},
    std::pair{"samples_per_prompt", &GrpoRow::samples},
    std::pair{"gen_tp", &GrpoRow::gen_tensor},
    std::pair{"gen_pp", &GrpoRow::gen_pipeline},
    std::pair{"train_tp", &GrpoRow::train_tensor},
    std::pair{"train_cp", &GrpoRow::train_context},
    std::pair{"train_ep", &GrpoRow::train_expert},
    std::pair{"train_pp", &GrpoRow::train_pipeline},
    std::pair{"tok_s_gpu", &GrpoRow::tokens_per_gpu},
    std::pair{"step_s", &GrpoRow::step},
    std::pair{"gen_s", &GrpoRow::generation},
    std::pair{"train_s", &GrpoRow::training},
    std::pair{"mfu_pct", &GrpoRow::utilisation},
    std::pair{"sync_s", &GrpoRow::sync},
    std::pair{"mem_GB", &GrpoRow::memory},
};

// Returns whether rows are on the policy: nothing is generated ahead.
bool in_turn(const GrpoRow& row) {
  return row.policy_mode.empty() || in_small_letters(row.policy_mode).starts_with("on");
}

// "[1,1,1,1,1,2,n/a]", as NeMo-RL prints it: tensor and pipeline of engines, then tensor, context,
// experts, pipeline and pieces of learners.
void read_printed_list(GrpoRow& row) {
  constexpr std::size_t printed = 7, experts = 4, pipeline = 5;
  const std::size_t begin = row.train_strategy.find('['), end = row.train_strategy.find(']');
  if (begin == std::string::npos || end == std::string::npos || end < begin) return;
  std::vector<Cell> numbers;
  for (const std::string_view part :
       split(std::string_view(row.train_strategy).substr(begin + 1, end - begin - 1), ',')) {
    std::vector<std::string> none;
    numbers.push_back(number_in(std::string(part), "", none));
  }
  if (numbers.size() != printed) return;
  if (!row.train_expert) row.train_expert = numbers[experts];
  if (!row.train_pipeline) row.train_pipeline = numbers[pipeline];
}

// Returns the learners as a training job of their own.
StepRow learners_of_row(const GrpoRow& row) {
  StepRow step;
  step.id = row.id;
  step.source = row.source;
  step.hardware = row.hardware;
  step.framework = row.framework;
  step.model = row.model;
  step.strategy = row.train_strategy;
  step.precision = row.precision;
  step.task = row.algorithm;
  step.nodes = row.nodes;
  step.gpus = row.gpus;
  step.tensor_parallel = row.train_tensor;
  step.pipeline = row.train_pipeline;
  step.context_parallel = row.train_context;
  if (row.train_expert.value_or(1) > 1) step.expert_parallel = row.train_expert;
  return step;
}

// Settles what follows once recipes have filled in what the row leaves open.
void settle_learners(const GrpoRow& row, const RowCatalog& catalog, StepRow& step,
                     RowScenario& made) {
  if (step.expert_parallel.value_or(1) > 1) step.experts = step.expert_parallel;
  if (step.pipeline.value_or(1) > 1)  // to be dealt out
    if (const double layers = known_of(catalog.models, same_model(catalog, row.model)).layers;
        layers > 0)
      step.layers = layers;
  const Document recipes = made.resolved(catalog);
  const std::string usual = recipes.peek("strategy.zero").value_or("3");
  if (contains(in_small_letters(row.train_strategy + " " + row.framework), "fsdp")) {
    step.strategy = "fsdp2";
  } else if (usual == "1" || step.tensor_parallel.value_or(1) > 1) {
    step.stage = 1;
    made.assume("learners keep parameters and gradients whole (zero: 1)");
  } else {
    std::vector<std::string> none;
    step.stage = number_in(usual, "", none);
    if (!recipes.peek("strategy.zero")) made.assume("learners share parameters (zero: 3)");
  }
  if (!step.checkpointing.empty()) return;
  step.checkpointing = "full";
  made.assume("learners recompute their layers");
}

// Finds the learners' stack by the framework's name, or by how it shares out learners.
void write_learner_stack(const GrpoRow& row, const RowCatalog& catalog, RowScenario& made) {
  constexpr std::string_view anything_else = "anything else";
  made.stack = first_name(catalog.stacks, row.framework);
  if (made.stack.empty())
    made.stack = best_name(catalog.learners, row.train_strategy + " " + row.framework);
  if (made.stack.empty()) {
    made.stack = best_name(catalog.learners, anything_else);
    made.assume(fmt::format("learners run {}", known_of(catalog.titles, made.stack)));
  }
  made.set("stack", made.stack);
}

// The framework's words name its engine, where it is not the usual one.
void write_engine(const GrpoRow& row, const RowCatalog& catalog, RowScenario& made) {
  for (const RowCatalog::EngineName& engine : catalog.engines)
    if (engine.name != "vllm" && contains(in_small_letters(row.framework), engine.name))
      made.set("engine", engine.name);
}

// Returns the tokens of a prompt and its response; 0: the row does not print enough of rate, time
// and batch.
double sequence_by_rate(const GrpoRow& row) {
  if (!row.tokens_per_gpu || !row.step || !row.generation_batch) return 0;
  return *row.tokens_per_gpu * row.gpus.value_or(1) * *row.step / *row.generation_batch;
}

// Returns the tokens of a mean sequence, as said or as rate, time and batch give it.
double mean_sequence(const GrpoRow& row, RowScenario& made) {
  if (row.mean_sequence) return *row.mean_sequence;
  const double by_rate = sequence_by_rate(row);
  if (by_rate > 0) made.assume("sequences as long as rate, time and batch give");
  return by_rate;
}

// Returns whether recipes fix this key of the job.
bool fixed(const Document& recipes, std::string_view key) {
  return recipes.peek(key).has_value();
}

void find_gaps(const GrpoRow& row, const Document& recipes, RowScenario& made) {
  if (contains(in_small_letters(row.algorithm), "ppo") && !fixed(recipes, "job.critic"))
    made.lack("a critic and a reward model (PPO)");
  const bool measured =
      row.step || row.tokens_per_gpu || row.generation || row.training || row.utilisation;
  if (!measured) made.lack("the time of a step");
  if (!row.generation_batch && !fixed(recipes, "job.num_unique_prompts_rollout"))
    made.lack("responses of a step");
  if (row.gen_pipeline.value_or(1) > 1) made.lack("engines with pipeline parallelism");
}

struct Lengths {
  std::int64_t prompt = 0, longest = 0;
  std::int64_t limit = 0;  // of prompts; 0: that of all
  double response = 0;
  bool assumed = false;   // nobody says how long they are
  bool together = false;  // the row has prompts and responses in one figure
  bool prompts_guessed = true;

  std::int64_t prompt_limit() const { return limit > 0 ? limit : prompt; }
};

double number_of(const Document& recipes, std::string_view key) {
  std::vector<std::string> none;
  return number_in(recipes.peek(key).value_or(""), "", none).value_or(0);
}

Lengths lengths_of(const GrpoRow& row, const Document& recipes, RowScenario& made) {
  Lengths lengths;
  const double response_limit = number_of(recipes, "job.response_length"),
               prompt_limit = number_of(recipes, "job.max_prompt_token_length");
  double mean = mean_sequence(row, made);
  double longest = row.max_sequence.value_or(response_limit + prompt_limit);
  if (mean <= 0 && response_limit > 0) {
    lengths.response = guessed_lengths.mean * response_limit;
    lengths.assumed = true;
    mean = longest;
    made.assume("responses of a third of their limit");
  }
  if (mean <= 0) {
    made.lack("the mean sequence");
    return lengths;
  }
  const bool responses_only = contains(in_small_letters(row.notes), "mean response length");
  if (longest <= 0) {
    longest = 4 * mean;
    made.assume("a limit of four mean sequences");
  }
  lengths.longest = std::llround(longest);
  lengths.prompt = std::clamp<std::int64_t>(lengths.longest / 4, 1, 256);
  // Learners train on more than responses: on prompts, too.
  const double beside = responses_only ? std::round(sequence_by_rate(row) - mean) : 0;
  if (beside >= 1 && beside < longest / 2) {
    lengths.prompt = std::llround(beside);
    lengths.prompts_guessed = false;
  }
  if (prompt_limit > 0) lengths.limit = std::llround(prompt_limit);
  const double prompt = static_cast<double>(lengths.prompt);
  if (!lengths.assumed) lengths.response = std::max(1.0, responses_only ? mean : mean - prompt);
  lengths.together = !responses_only;
  made.assume(fmt::format("prompts of {} tokens{}", lengths.prompt,
                          lengths.prompts_guessed ? "" : ", by rate, time and batch"));
  made.assume("response lengths with a long tail, sigma 0.9");
  return lengths;
}

// Puts learners on the first nodes, engines on the others.
void write_layout(const GrpoRow& row, const RowCatalog& catalog, const std::string& node,
                  RowScenario& made) {
  const Document resolved = made.resolved(catalog);
  const auto usual = [&](std::string_view key, std::string_view value, std::string_view words) {
    if (resolved.peek(key)) return;
    made.set(key, value);
    if (!words.empty()) made.assume(std::string(words));
  };
  usual("job.batching", "shares", "");
  if (resolved.peek("job.load_ref_policy") != "false")
    usual("job.park_reference", "true", "a reference model waits in host memory");
  usual("job.sync_protocol", "buckets", "weights are sent in buckets");
  usual("job.vllm_enable_prefix_caching", "true", "the samples of a group share their prompt");
  const std::string offload = in_small_letters(row.offload);
  const bool colocated = resolved.peek("job.layout") == "colocated";
  if (!offload.empty() && !contains(offload, "none") && colocated)
    made.set("job.park_learners", true);
  if (colocated) {
    usual("job.park_learners", "true",
          "learners' states wait in host memory while engines generate");
    usual("job.vllm_gpu_memory_utilization", "0.7", "engines take 0.7 of their GPU");
    return;
  }
  made.set("job.async_steps", in_turn(row) ? 0.0 : 1.0);
  usual("job.inflight_updates", "false", "");
  made.set("job.drop_stale_results", false);
  if (!row.train_gpus && !row.gen_gpus && resolved.peek("job.learner_gpus")) return;
  const RowCatalog::NodeSize* size = catalog.node(node);
  const double gpus = row.gpus.value_or(0), each = size != nullptr ? size->gpus : 8;
  double learners = row.train_gpus.value_or(0);
  if (learners <= 0 && row.gen_gpus) learners = gpus - *row.gen_gpus;
  if (learners <= 0) {
    learners = gpus / 2;
    made.assume("half of the GPUs learn");
  }
  if (learners < 1 || learners >= gpus) return made.lack("GPUs that only generate");
  std::string list;
  const auto full = static_cast<std::int64_t>(learners / each);
  for (std::int64_t i = 0; i < full; ++i) list += fmt::format("{:.0f}, ", each);
  if (const double rest = learners - static_cast<double>(full) * each; rest > 0)
    list += fmt::format("{:.0f}, ", rest);
  made.set("job.num_learners_per_node", fmt::format("[{}0]", list));
}

void write_batch(const GrpoRow& row, const Document& recipes, RowScenario& made) {
  const auto set = [&](const std::string& key, double value) {
    if (!fixed(recipes, "job." + key)) made.set("job." + key, std::max(1.0, value));
  };
  const double said = number_of(recipes, "job.num_samples_per_prompt_rollout"),
               samples = row.samples.value_or(said > 0 ? said : 16);
  if (!row.samples && said <= 0) made.assume("16 responses to a prompt");
  const double batch = row.generation_batch.value_or(1);
  const double updates = std::max(1.0, batch / std::max(1.0, row.train_batch.value_or(batch)));
  set("vllm_tensor_parallel_size", row.gen_tensor.value_or(1));
  set("num_unique_prompts_rollout", batch / samples);
  set("num_samples_per_prompt_rollout", samples);
  set("num_mini_batches", updates);
  set("deepspeed_zpg", 1);
  if (contains(in_small_letters(row.precision + row.notes), "fp8 gen"))
    made.set("job.vllm_quantization", "fp8");
}

void write_lengths(const Lengths& lengths, const Document& recipes, RowScenario& made) {
  const auto set = [&](const std::string& key, double value) {
    if (!fixed(recipes, "job." + key)) made.set("job." + key, std::max(1.0, value));
  };
  const double limit = static_cast<double>(lengths.longest - lengths.prompt_limit());
  set("max_prompt_token_length", static_cast<double>(lengths.prompt_limit()));
  set("response_length", limit);
  set("pack_length", static_cast<double>(lengths.longest));
  constexpr std::int64_t longest_usual = 400;
  if (!lengths.prompts_guessed)
    set("prompt_length", static_cast<double>(lengths.prompt));
  else if (!(lengths.together && !lengths.assumed) && lengths.prompt_limit() >= longest_usual)
    made.set(
        "job.prompt_length",
        fmt::format("{{value: {}, low: 100, high: {}, grade: guess, source: \"the row does not "
                    "say how long prompts are\"}}",
                    lengths.prompt, longest_usual));
  made.set("job.response_lengths.type", "lognormal");
  const double mean = std::max(1.0, std::min(lengths.response, limit - 1));
  if (lengths.assumed)
    made.set("job.response_lengths.mean",
             fmt::format("{{value: {:.0f}, low: {:.0f}, high: {:.0f}, grade: guess, source: \"the "
                         "row does not say how long responses are\"}}",
                         mean, guessed_lengths.low / guessed_lengths.mean * mean,
                         guessed_lengths.high * limit));
  else if (lengths.together && mean > 300 && mean + 156 < limit)
    made.set("job.response_lengths.mean",
             fmt::format("{{value: {:.0f}, low: {:.0f}, high: {:.0f}, grade: guess, source: \"the "
                         "row has prompts and responses together; prompts of 100 to 400 tokens\"}}",
                         mean, mean - 144, mean + 156));
  else
    made.set("job.response_lengths.mean", mean);
  made.set("job.response_lengths.sigma",
           "{value: 0.9, low: 0.5, high: 1.2, grade: guess, source: \"the row prints the mean "
           "alone\"}");
  made.set("job.response_lengths.behind_limit", true);
}

// A table of weight syncs says who sends what to whom, and nothing of steps.
void write_sync(const GrpoRow& row, RowScenario& made) {
  if (!row.sync) made.lack("the time of a sync");
  made.set("job.layout", "colocated");
  made.set("job.vllm_tensor_parallel_size", row.gen_tensor.value_or(1));
  made.set("job.num_unique_prompts_rollout", row.gpus.value_or(1));  // one for each learner
  made.set("job.load_ref_policy", false);
  made.set("job.deepspeed_zpg", 1.0);
  if (contains(in_small_letters(row.model), "fp8")) made.set("job.sync_dtype", "fp8");
}

// Experts of the catalogue's sparse models that every learner has all of.
void write_whole_experts(const StepRow& learners, RowScenario& made) {
  if (learners.expert_parallel.value_or(1) <= 1) made.set("strategy.moe.kernel", "grouped");
}

}  // namespace

bool only_sync(const GrpoRow& row) {
  return contains(in_small_letters(row.algorithm), "sync");
}

bool has_engines(const GrpoRow& row) {
  return row.gen_tensor || row.gen_gpus || !only_sync(row);
}

bool saves_nothing(const GrpoRow& row) {
  return contains(in_small_letters(row.notes), "nothing is saved");
}

bool holds_grpo_rows(const CsvTable& table) {
  return table.column("gen_batch") || table.column("samples_per_prompt") ||
         table.column("policy_mode");
}

std::vector<std::string> grpo_columns() {
  return columns_of(grpo_texts, grpo_numbers);
}

std::vector<GrpoRow> grpo_rows(const CsvTable& table) {
  return rows_from<GrpoRow>(table, grpo_texts, grpo_numbers);
}

ExpressedRow express(const GrpoRow& said, const RowCatalog& catalog) {
  GrpoRow row = said;
  read_printed_list(row);
  RowScenario made(row.id);
  made.missing = row.unreadable;
  write_learner_stack(row, catalog, made);
  write_engine(row, catalog, made);
  StepRow learners = learners_of_row(row);
  find_recipes(learners, catalog, made);
  write_recipes(made);
  settle_learners(row, catalog, learners, made);
  write_model(learners, catalog, made);
  write_cluster(learners, catalog, made);
  made.set("job.method", "grpo");
  const bool sync = only_sync(row);
  if (sync) {
    write_sync(row, made);
  } else {
    if (!fixed(made.resolved(catalog), "job.layout"))
      made.set("job.layout", in_turn(row) ? "colocated" : "separate");
    const Document recipes = made.resolved(catalog);
    find_gaps(row, recipes, made);
    write_lengths(lengths_of(row, recipes, made), recipes, made);
    const NamedNode node = named_node(catalog, {row.hardware, "", {}});
    write_layout(row, catalog, node.node == nullptr ? "" : node.node->name, made);
    write_batch(row, recipes, made);
  }
  write_strategy(learners, catalog, made);
  write_whole_experts(learners, made);
  const std::string_view way = sync ? "sync" : in_turn(row) ? "in turn" : "ahead";
  const std::string family =
      fmt::format("grpo {} {}", way, made.gpu.empty() ? row.hardware : made.gpu);
  return expressed(std::move(made), family);
}

}  // namespace stepsim
