#include "analysis/studies/grpo/grpo_trace.hpp"

#include <fmt/format.h>

#include "sim/engine/own/replay.hpp"

namespace stepsim {
namespace {

// A row of operations that follow each other, with pauses where the scheduled times leave some.
class Row {
 public:
  Row(OpGraph& graph, Rank rank) : graph_(graph), rank_(rank) {}

  void idle_until(double time) {
    if (time <= now_) return;
    add({.kind = OpKind::delay, .phase = Phase::other, .cause = Cause::other}, "wait", time - now_);
  }
  void compute(double seconds, Phase phase, Cause cause, std::string_view name, double flops = 0) {
    if (seconds <= 0) return;
    Op op{.kind = OpKind::compute, .stream = Stream::compute, .phase = phase, .cause = cause};
    op.flops = {flops};
    add(op, name, seconds);
  }
  void delay(double seconds, std::string_view name) {
    if (seconds <= 0) return;
    add({.kind = OpKind::delay, .phase = Phase::sync, .cause = Cause::weight_sync}, name, seconds);
  }

 private:
  void add(Op op, std::string_view name, double seconds) {
    op.rank = rank_;
    op.name = graph_.name(name);
    op.seconds = {seconds};
    last_ = started_ ? graph_.add(op, {last_}) : graph_.add(op, {});
    started_ = true;
    now_ += seconds;
  }

  OpGraph& graph_;
  Rank rank_;
  OpId last_{};
  bool started_ = false;
  double now_ = 0;
};

// The parts of training one after the other, each as long as it was exposed.
void write_training(Row& row, const TrainingParts& all, double seconds) {
  if (all.seconds <= 0) return;
  const double scale = seconds / all.seconds;
  for (std::size_t c = 0; c < cause_names.size(); ++c) {
    const auto cause = static_cast<Cause>(c);
    row.compute(scale * all.exposed[c], Phase::other, cause,
                fmt::format("training {}", to_text(cause)));
  }
  row.compute(scale * all.idle, Phase::other, Cause::other, "training idle");
}

void write_learners(OpGraph& graph, const GrpoPrediction& p) {
  Row row(graph, 0);
  row.delay(p.run.first_sync.end, "first sync");
  for (std::size_t i = 0; i + 1 < p.run.steps.size(); ++i) {
    const StepRecord& s = p.run.steps[i];
    row.idle_until(s.start);
    row.delay(s.rewards, "rewards");
    row.delay(s.reference, "reference model from the host");
    write_training(row, p.training_parts, s.train);
    row.delay(s.drain, "drain");
    row.delay(s.gather, "gather");
    row.delay(s.send, "send");
    row.delay(s.calls, "iterations under way");
    row.delay(s.pause, "pause");
  }
}

void write_engine(OpGraph& graph, Rank rank, const Engine& engine) {
  Row row(graph, rank);
  for (const StepBlock& block : engine.log()) {
    row.idle_until(block.start);
    row.compute(block.end - block.start, Phase::generate, Cause::generation,
                block.prefilled > 0 ? "prefill and decode" : "decode");
  }
}

Platform rows_of(std::size_t engines) {
  Platform platform;
  platform.devices.push_back({.name = "learners"});
  for (std::size_t e = 0; e < engines; ++e)
    platform.devices.push_back({.name = fmt::format("engine{}", e)});
  return platform;
}

}  // namespace

Run grpo_trace(const Scenario& scenario, const GrpoPrediction& p) {
  Run run;
  run.scenario = scenario.text;
  run.platform = rows_of(p.run.engines.size());
  run.constants = scenario.constants;
  write_learners(run.graph, p);
  for (std::size_t e = 0; e < p.run.engines.size(); ++e)
    write_engine(run.graph, static_cast<Rank>(e + 1), p.run.engines[e]);
  run.trace = replay(run.platform, run.graph);
  for (GrpoMetric& metric : grpo_metrics(p)) {
    if (metric.dimension == Dimension::seconds) metric.name.resize(metric.name.size() - 2);
    run.summary.push_back({std::move(metric.name), metric.value, metric.dimension});
  }
  return run;
}

}  // namespace stepsim
