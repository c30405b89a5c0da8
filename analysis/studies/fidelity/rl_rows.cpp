#include "analysis/studies/fidelity/rl_rows.hpp"

#include <fmt/format.h>

#include <cmath>

#include "analysis/studies/fidelity/row_tasks.hpp"
#include "analysis/studies/grpo/grpo_prediction.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/error.hpp"
#include "workloads/grpo/decode.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/serving.hpp"
#include "workloads/model/model.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/step/model_flops.hpp"

namespace stepsim {
namespace {

void add(PredictedRow& result, std::string_view metric, const Cell& measured, double predicted) {
  if (measured && *measured > 0 && predicted > 0)
    result.figures.push_back({std::string(metric), *measured, predicted});
}

// ---- GRPO steps

struct StepAnswer {
  double step = 0, rate = 0, waiting = 0, training = 0, sync = 0, memory = 0, capacity = 0;
  double utilisation = 0;  // of the learners' peak while they update the policy, in percent
  bool fits = true;
};

// Returns the seconds of learners without what they score: the update of the policy alone.
double update_seconds(Scenario scenario) {
  scenario.grpo->reference_model = scenario.grpo->park_reference = false;
  scenario.grpo->swap_reference = scenario.grpo->always_scores = false;
  scenario.grpo->engine_logprobs = true;
  return predict_grpo(scenario).training;
}

// Model FLOP of an update over what the learners could do meanwhile.
double utilisation_of(const Scenario& scenario, double tokens) {
  Scenario learner = learners_of(scenario);
  learner.job.micro_batch = learner.job.accumulation = 1;
  learner.job.reference_model = false;
  learner.job.scoring_passes = 0;
  const double rows =
      static_cast<double>(packers_of(scenario)) * static_cast<double>(learner.job.sequence);
  const double each = model_flops(step_input(learner)).total() * learner.cluster.ranks() / rows;
  return 100 * each * tokens / update_seconds(scenario) /
         (learner.cluster.ranks() * learner.cluster.gpu.peak.bf16.number());
}

// Returns the part of the sync that was measured: what engines wait for, or without engines what
// learners do before they go on. A benchmark that no engine waits for may write no file.
double sync_seconds(const Scenario& scenario, SyncOf of) {
  const SyncReplay sync = replay_sync(scenario, place(scenario.cluster, *scenario.grpo));
  if (of == SyncOf::engines) return sync.cost.send.value;
  return sync.cost.gather.value - (of == SyncOf::unsaved ? sync.written : 0);
}

StepAnswer step_answer(const Catalogue& data, const StepRow& row, const MaybeDraw& draw) {
  const Scenario scenario = parse_scenario(data, row.scenario, row.id, draw);
  if (!scenario.grpo) throw UserError("job.method: expected grpo");
  if (row.sync_of != SyncOf::none) return {.sync = sync_seconds(scenario, row.sync_of)};
  const GrpoPrediction p = predict_grpo(scenario);
  if (!p.ran) throw UserError(p.memory.failure.value_or("nothing could be predicted"));
  return {.step = p.step_time.value,
          .rate = p.trained_per_second / scenario.cluster.ranks(),
          .waiting = p.phases.wait,
          .training = p.training,
          .sync = p.sync,
          .memory = p.memory.learner.most(),
          .capacity = p.memory.learner_capacity,
          .utilisation =
              row.mfu ? utilisation_of(scenario, p.trained_per_second * p.step_time.value) : 0,
          .fits = !p.memory.failure};
}

void compare(const StepRow& row, const StepAnswer& a, PredictedRow& result) {
  add(result, "step_s", row.step, a.step);
  add(result, "tok_s_gpu", row.tokens_per_gpu, a.rate);
  add(result, "gen_s", row.generation, a.waiting);
  add(result, "train_s", row.training, a.training);
  add(result, "mfu_pct", row.mfu, a.utilisation);
  add(result, "sync_s", row.sync, a.sync);
  result.scenario = row.scenario;
  result.needed = a.memory;
  result.capacity = a.capacity;
  result.fit = a.fits ? Fit::fits : Fit::oom;
  if (row.memory) {
    result.figures.push_back({"mem_GB", *row.memory, a.memory / 1e9});
    result.memory_error = result.figures.back().error();
  }
  result.timed =
      row.step || row.tokens_per_gpu || row.mfu || row.generation || row.sync_of != SyncOf::none;
  if (row.sync_of != SyncOf::none) {
    result.judged = false;  // of memory nothing is asked
    result.step_error = a.sync / *row.sync - 1;
  } else if (row.step)
    result.step_error = a.step / *row.step - 1;
  else if (row.tokens_per_gpu)
    result.step_error = *row.tokens_per_gpu / a.rate - 1;
  else if (row.mfu)
    result.step_error = *row.mfu / a.utilisation - 1;
  else if (row.generation) {  // alone: whatever the learner beside it needs
    result.judged = false;
    result.step_error = a.waiting / *row.generation - 1;
  }
}

// ---- engines

Served engine_answer(const Catalogue& data, EngineLoad load, const MaybeDraw& draw) {
  const Cluster cluster = load_cluster(data, load.cluster, draw);
  Document document = open_entry(data, engine_shelf, load.stack);
  if (draw) document.draw_constants(*draw, "engine");
  EngineStack stack = read_engine_stack(document.root());
  if (load.benchmark) stack.graphs.answers = stack.benchmark_graphs;
  const EngineStack::Limits served = stack.served_on(cluster.gpu);
  load.engine.batched_tokens = served.tokens;
  load.engine.batched_sequences = load.sequences > 0 ? load.sequences : served.sequences;
  load.engine.memory_utilization = served.share;
  const Model model = load_model(data, load.model);
  for (const std::string& problem : unshared(model, load.engine.tensor_parallel))
    throw UserError(fmt::format("tp: {}", problem));
  if (model.mixer && attention_layers(model) == 0)
    throw UserError(
        fmt::format("an engine of {}, none of whose layers attend, is not modelled", model.name));
  if (model.mixer) load_mixers(data, draw, stack);
  const DecodeModel decode(cluster, model, stack, load.engine);
  const double needed = decode.taken_by(load.input + load.output);
  if (decode.capacity() < needed)
    throw UserError(fmt::format("an engine's cache holds {:.0f} tokens, a request needs {:.0f}",
                                decode.capacity(), needed));
  EngineLimits limits = limits_of(decode, stack, load.engine);
  limits.admitted = load.requests;
  const auto tokens = [](const Grpo& of) {
    return [&of](std::uint64_t n) { return response_tokens(of, n, 0); };
  };
  return serve(decode, limits,
               {.count = load.requests,
                .at_once = load.at_once,
                .prompt = tokens(load.prompts),
                .answer = tokens(load.engine),
                .asked = std::llround(load.asked),
                .front = load.chat ? stack.host.request.number() : 0});
}

void compare(const EngineRow& row, const Served& s, PredictedRow& result) {
  const double requests = static_cast<double>(row.load.requests);
  const double all = s.prompted + s.generated;
  add(result, "output_tok_s", row.output_rate, s.generated / s.seconds);
  add(result, "total_tok_s", row.total_rate, all / s.seconds);
  add(result, "request_s", row.request_rate, requests / s.seconds);
  if (row.prompts) add(result, "duration_s", row.duration, s.seconds);
  add(result, "mean_ttft_ms", row.first_token_ms, 1e3 * s.first_token);
  add(result, "mean_tpot_ms", row.per_token_ms, 1e3 * s.per_token);
  add(result, "latency_s", row.latency, s.latency);
  // The first figure that a row prints says how long it took: rates come before times of single
  // requests.
  for (const RowFigure& figure : result.figures) {
    const bool rate = figure.metric.ends_with("_tok_s") || figure.metric == "request_s";
    result.timed = true;
    result.step_error = rate ? figure.measured / figure.predicted - 1 : figure.error();
    return;
  }
}

}  // namespace

std::vector<PredictedRow> predict_grpo_rows(const Catalogue& data, std::span<const StepRow> rows,
                                            const RowSampling& sampling) {
  std::vector<RowTask<StepAnswer>> tasks;
  for (const StepRow& row : rows) {
    RowTask<StepAnswer>& task = tasks.emplace_back(task_of<StepAnswer>(row));
    task.ask = [&](const MaybeDraw& draw) { return step_answer(data, row, draw); };
    task.compare = [&row](const StepAnswer& answer, PredictedRow& result) {
      compare(row, answer, result);
    };
  }
  return predict_all(tasks, sampling.samples, sampling.seed);
}

std::vector<PredictedRow> predict_rows(const Catalogue& data, std::span<const EngineRow> rows,
                                       const RowSampling& sampling) {
  std::vector<RowTask<Served>> tasks;
  for (const EngineRow& row : rows) {
    RowTask<Served>& task = tasks.emplace_back(task_of<Served>(row));
    task.ask = [&](const MaybeDraw& draw) { return engine_answer(data, row.load, draw); };
    task.compare = [&row](const Served& answer, PredictedRow& result) {
      compare(row, answer, result);
    };
  }
  return predict_all(tasks, sampling.samples, sampling.seed);
}

}  // namespace stepsim
