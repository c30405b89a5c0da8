// A training step small enough to reckon with symbols: models of a few layers, a machine and a
// stack whose every constant is made up.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "sim/trace.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {

// Dense: q, k, v, o, gate, up, down and two norms a layer; its embedding and head are larger than
// two layers. With experts all layers have them instead of gate, up, down.
Model tiny_model(std::int64_t experts = 0);

// Returns an optimizer of the catalogue.
Optimizer optimizer_called(std::string_view name);
// Formats of frozen weights, and methods of adapters, as the files of workloads/ have them.
WeightFormat format_called(std::string_view name);
AdapterMethod adapter_called(std::string_view name);

struct TinyStep {
  Cluster cluster;
  Model model;
  Stack stack;
  Strategy strategy;
  Job job;

  StepInput input() const { return {cluster, model, stack, strategy, job}; }
  RankPart rank() const { return rank_part(input()); }
};
// On `nodes` x `gpus`, with thresholds and buckets of the model's size.
TinyStep tiny_step(Sharding sharding, const Model& model = tiny_model(), std::uint32_t nodes = 1,
                   std::uint32_t gpus = 8);

struct Variant {
  std::string_view name;
  TinyStep step;
};
// One of every way to shard, offload and run experts.
std::vector<Variant> tiny_variants(std::uint32_t nodes, std::uint32_t gpus);

struct Elements {
  double total = 0;
  double inner = 0, outer = 0;  // above the persistence threshold, in layers and outside them
  double small = 0;             // up to it
  double experts = 0;
};
Elements elements_of(const TinyStep& step);

// Bytes of all operations of this cause and kind that rank 0 takes part in, and their number.
struct Sum {
  double bytes = 0;
  double count = 0;
  double seconds = 0;
};
Sum sum_of(const OpGraph& graph, OpKind kind, Cause cause);
Sum sum_named(const OpGraph& graph, OpKind kind, std::string_view name);

struct Replayed {
  StepProgram program;
  Trace trace;
};
// Replays, so once per process.
Replayed play(const TinyStep& step, Folding folding = Folding::automatic);
// The step's time, from a process of its own.
double seconds_of(const TinyStep& step, Folding folding = Folding::automatic);

}  // namespace stepsim
