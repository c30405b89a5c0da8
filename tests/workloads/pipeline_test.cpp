// Steps whose ranks are stages of a pipeline: order of turns, what is sent, time and memory.
#include "workloads/pipeline/pipeline.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "analysis/breakdown.hpp"
#include "analysis/memory_timeline.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_pipeline.hpp"
#include "tests/support/worker.hpp"
#include "workloads/pipeline/schedule.hpp"
#include "workloads/pipeline/stages.hpp"

using namespace stepsim;
using enum PipelineSchedule;

namespace {

// Stages, schedule, pieces on each of them.
const std::vector<PipelineParallel> shapes{{2, one_forward_one_backward, 1, {}},
                                           {4, one_forward_one_backward, 1, {}},
                                           {3, gpipe, 1, {}},
                                           {2, interleaved, 3, {}},
                                           {4, interleaved, 2, {}}};

// Seconds of the first stage's passes for one micro-batch, and of all passes from the first to the
// last.
struct Spans {
  double one = 0, all = 0;
};

Spans spans_of(const TinyStep& step) {
  const std::vector<double> numbers = numbers_from_worker([&] {
    const Replayed replayed = play(step);
    double busy = 0, first = 1e30, last = 0;
    for (std::size_t i = 0; i < replayed.program.graph.size(); ++i) {
      const Op& op = replayed.program.graph.ops()[i];
      if (op.kind != OpKind::compute || op.cause != Cause::compute) continue;
      if (op.rank == 0) busy += op.seconds.value;
      first = std::min(first, replayed.trace.start[i]);
      last = std::max(last, replayed.trace.finish[i]);
    }
    return std::vector<double>{busy, last - first};
  });
  return {numbers[0] / static_cast<double>(step.job.accumulation), numbers[1]};
}

// The most activations that each stage holds.
std::vector<double> held(const TinyStep& step) {
  return numbers_from_worker([&] {
    const Replayed replayed = play(step);
    constexpr std::array pools{Pool::device};
    std::vector<double> most;
    for (const StepStage& stage : replayed.program.stages)
      most.push_back(read_timeline(timeline_of(replayed.program.graph, replayed.trace, stage.lane),
                                   pools, 1e30)
                         .highest_of("activations"));
    return most;
  });
}

}  // namespace

TEST_CASE("every stage runs every micro-batch through each of its pieces once in each direction",
          "[workloads]") {
  for (const PipelineParallel& shape : shapes)
    for (const std::int64_t micro_batches : {12, 24})
      for (std::int64_t stage = 0; stage < shape.size; ++stage) {
        std::set<std::array<std::int64_t, 3>> seen;
        for (const Turn& turn : turns_of(shape, stage, micro_batches)) {
          CHECK(seen.insert({goes_back(turn.pass) ? 1 : 0, turn.piece, turn.micro_batch}).second);
          if (goes_back(turn.pass)) CHECK(seen.contains({0, turn.piece, turn.micro_batch}));
        }
        CHECK(static_cast<std::int64_t>(seen.size()) == 2 * micro_batches * shape.virtual_stages);
      }
}

TEST_CASE("turns that run together do not wait for each other", "[workloads]") {
  const PipelineParallel shape{4, interleaved, 2, {}};
  for (std::int64_t stage = 0; stage < shape.size; ++stage) {
    std::set<std::pair<std::int64_t, std::int64_t>> forward;
    std::int64_t together = 0, turns = 0;
    for (const StageAct& act : acts_of(shape, stage, 16, {.stops = false, .paired = true})) {
      if (act.kind != StageAct::Kind::run) continue;
      ++turns;
      if (act.beside) {
        ++together, ++turns;
        CHECK_FALSE(goes_back(act.turn.pass));
        CHECK(goes_back(act.beside->pass));
        CHECK(forward.contains({act.beside->piece, act.beside->micro_batch}));
      }
      if (!goes_back(act.turn.pass)) forward.insert({act.turn.piece, act.turn.micro_batch});
    }
    CHECK(turns == 2 * 16 * 2);
    const std::int64_t ahead = 2 * (shape.size - stage - 1) + shape.size + 1;
    CHECK(together == 16 * 2 - ahead);
  }
}

TEST_CASE("layers are dealt out evenly, or as a list says", "[workloads]") {
  Model model = tiny_model();
  model.layers = 8;
  const std::vector<StageShare> even = share_out(model, {2, interleaved, 2, {}});
  CHECK(even[0].model.part.places == std::vector<std::int64_t>{0, 1, 4, 5});
  CHECK(even[1].model.part.places == std::vector<std::int64_t>{2, 3, 6, 7});
  const std::vector<StageShare> list = share_out(model, {2, gpipe, 1, {5, 3}});
  CHECK(list[0].model.layers == 5);
  CHECK(list[1].model.part.places == std::vector<std::int64_t>{5, 6, 7});
  // Nothing is lost and nothing is there twice, but for a matrix that both ends need.
  for (const bool tied : {false, true}) {
    model.tied_embeddings = tied;
    std::int64_t sum = 0;
    for (const StageShare& share : share_out(model, {4, gpipe, 1, {}}))
      sum += count_parameters(share.model).total();
    CHECK(sum == count_parameters(model).total() + (tied ? model.vocabulary * model.hidden : 0));
  }
}

TEST_CASE("layers that differ by their place are the same ones on a stage", "[workloads]") {
  Model model = tiny_model(4);
  model.layers = 6;
  model.experts->first_dense = 1;
  model.experts->every = 2;
  std::int64_t experts = 0;
  for (const StageShare& share : share_out(model, {3, gpipe, 1, {}}))
    experts += expert_layers(share.model);
  CHECK(experts == expert_layers(model));
}

TEST_CASE("with equal stages and free messages a step is as long as its fill and drain ask for",
          "[workloads]") {
  const auto check = [](const PipelineParallel& shape, std::int64_t micro_batches, bool stops) {
    TinyStep step = even_pipeline(shape, micro_batches);
    step.stack.stops_for_stages = stops;
    const Spans spans = spans_of(step);
    const double p = static_cast<double>(shape.size), v = static_cast<double>(shape.virtual_stages);
    const double m = static_cast<double>(micro_batches);
    CAPTURE(p, v, m, stops);
    CHECK_THAT(spans.all / (m * spans.one), WithinRel((m + (p - 1) / v) / m, 1e-3));
  };
  for (const PipelineParallel& shape : shapes) check(shape, 12, false);
  check({4, one_forward_one_backward, 1, {}}, 2, false);
  check({4, gpipe, 1, {}}, 2, false);
  // A host that waits for each message loses nothing where launching is free.
  check({4, one_forward_one_backward, 1, {}}, 8, true);
}

TEST_CASE("a pass that scores fills the stages and drains them before the next begins",
          "[workloads]") {
  for (const bool stops : {false, true}) {
    const auto more = [&](std::int64_t micro_batches, std::int64_t sweeps) {
      TinyStep step = even_pipeline({4, one_forward_one_backward, 1, {}}, micro_batches);
      step.stack.stops_for_stages = stops;
      const double without = spans_of(step).all;
      step.job.scoring_passes = sweeps;
      return spans_of(step).all - without;
    };
    CAPTURE(stops);
    CHECK_THAT(more(12, 1) / more(4, 1), WithinRel((12 + 3) / (4 + 3.0), 1e-2));
    CHECK_THAT(more(4, 2) / more(4, 1), WithinRel(2.0, 1e-2));
  }
}

TEST_CASE("under 1F1B a stage holds as many micro-batches as there are stages from it on",
          "[workloads]") {
  for (const bool stops : {false, true}) {
    TinyStep one = even_pipeline({4, one_forward_one_backward, 1, {}}, 1);
    TinyStep many = even_pipeline({4, one_forward_one_backward, 1, {}}, 8);
    TinyStep all = even_pipeline({4, gpipe, 1, {}}, 8);
    for (TinyStep* step : {&one, &many, &all}) step->stack.stops_for_stages = stops;
    const std::vector<double> single = held(one), some = held(many), every = held(all);
    for (std::size_t stage = 0; stage < 4; ++stage) {
      CAPTURE(stage, stops);
      CHECK_THAT(some[stage], exactly(static_cast<double>(4 - stage) * single[stage]));
      CHECK_THAT(every[stage], exactly(8 * single[stage]));
    }
  }
}

TEST_CASE("more micro-batches leave a smaller share of a step to waiting", "[workloads]") {
  double before = 1;
  for (const std::int64_t micro_batches : {1, 2, 4, 16, 64}) {
    const std::vector<double> numbers = numbers_from_worker([&] {
      const Replayed replayed =
          play(even_pipeline({4, one_forward_one_backward, 1, {}}, micro_batches));
      double waits = 0;
      for (const StepStage& stage : replayed.program.stages)
        for (const BreakdownRow& row :
             break_down(replayed.program.graph, replayed.trace, stage.lane).rows)
          if (row.cause == Cause::pipeline_bubble) waits += row.exposed.value / 4;
      return std::vector<double>{waits / replayed.trace.makespan.value};
    });
    const double m = static_cast<double>(micro_batches);
    CHECK_THAT(numbers.front(), WithinRel(3 / (m + 3), 1e-2));
    CHECK(numbers.front() < before);
    before = numbers.front();
  }
}

TEST_CASE("at each end of a piece a rank sends its tokens' activations, and their gradients back",
          "[workloads]") {
  for (const std::int64_t tensor : {1, 2}) {
    TinyStep step = tiny_step(Sharding::zero1, tiny_model(), 1, 8);
    step.model.layers = 4;
    step.strategy.pipeline_parallel = {2, interleaved, 2, {}};
    step.strategy.tensor_parallel.size = tensor;
    step.job.accumulation = 6;
    step.job.micro_batch = 3;
    const OpGraph graph = build_step(step.input(), Folding::off).graph;
    std::map<std::string, double> bytes;
    for (const Op& op : graph.ops())
      if (op.kind == OpKind::collective && op.cause == Cause::stage_transfer)
        bytes[graph.names()[index(op.name)]] += op.bytes.value;
    // Tokens between blocks are divided among ranks that share tensors. Four ranks to a stage.
    const double message = 128.0 * 3 * 64 * 2 / static_cast<double>(tensor);
    CHECK(message_bytes(step.input()) == message);
    CHECK(bytes.size() == 2);
    for (const auto& [name, sum] : bytes) CHECK(sum == 3 * 6 * 4 * message);
  }
}

TEST_CASE("the ends of a pipeline add up the gradient of a matrix that they share", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero1, tiny_model(), 1, 8);
  step.model.layers = 4;
  step.strategy.pipeline_parallel = {4, one_forward_one_backward, 1, {}};
  const auto summed = [&] {
    return sum_named(build_step(step.input(), Folding::off).graph, OpKind::collective,
                     "sum_tied_gradients");
  };
  CHECK(summed().count == 0);
  step.model.tied_embeddings = true;
  CHECK(summed().count == 1);
  CHECK(summed().bytes == 2.0 * 2000 * 64);
  step.strategy.gradients = GradientType::fp32;
  CHECK(summed().bytes == 4.0 * 2000 * 64);
}

TEST_CASE("ranks of a stage that are alike are simulated once, and it makes no difference",
          "[workloads]") {
  for (const Variant& variant : tiny_pipelines()) {
    CAPTURE(variant.name);
    CHECK_THAT(seconds_of(variant.step, Folding::automatic),
               WithinRel(seconds_of(variant.step, Folding::off), 1e-6));
  }
  TinyStep step = tiny_pipelines().front().step;
  CHECK(build_step(step.input(), Folding::automatic).traffic.lanes() == 2);
}

TEST_CASE("what stages hold beyond a step's end is what they began with, and rows add up",
          "[workloads]") {
  for (const Variant& variant : tiny_pipelines()) {
    CAPTURE(variant.name);
    const std::vector<double> numbers = numbers_from_worker([&] {
      const Replayed replayed = play(variant.step);
      const OpGraph& graph = replayed.program.graph;
      double most = 0, worst = 0, lowest = 0;
      for (const StepStage& stage : replayed.program.stages) {
        std::map<std::string_view, double> sums;
        for (const MemoryChange& change : timeline_of(graph, replayed.trace, stage.lane)) {
          double& sum = sums[change.tensor_class];
          sum += change.bytes;
          most = std::max(most, sum);
          lowest = std::min(lowest, sum);
        }
        for (const auto& [name, sum] : sums) worst = std::max(worst, std::abs(sum));
        const Breakdown rows = break_down(graph, replayed.trace, stage.lane);
        double sum = rows.idle.value;
        for (const BreakdownRow& row : rows.rows) sum += row.exposed.value;
        worst = std::max(worst, most * std::abs(sum / replayed.trace.makespan.value - 1));
      }
      return std::vector<double>{worst / most, lowest / most};
    });
    CHECK(numbers[0] < 1e-9);
    CHECK(numbers[1] > -1e-9);
  }
}

TEST_CASE("stages that shard reduce all gradients behind their last backward pass", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(), 1, 8);
  step.model.layers = 4;
  step.job.accumulation = 4;
  step.strategy.fsdp.sync_each_batch = false;
  step.strategy.fsdp.reshard_after_forward = false;
  step.strategy.pipeline_parallel = {2, one_forward_one_backward, 1, {}};
  const auto graph_of = [&] { return build_step(step.input(), Folding::automatic).graph; };
  const OpGraph graph = graph_of();
  std::size_t last_pass = 0, first_reduction = graph.size();
  for (std::size_t i = 0; i < graph.size(); ++i) {
    const Op& op = graph.ops()[i];
    if (op.rank != 0) continue;
    if (op.kind == OpKind::compute && op.cause == Cause::compute) last_pass = i;
    if (graph.names()[index(op.name)] == "reduce_group")
      first_reduction = std::min(first_reduction, i);
  }
  CHECK(first_reduction < graph.size());
  CHECK(last_pass < first_reduction);
  // Resharding behind each forward pass, a stage gathers for each backward pass as well.
  const double kept = sum_named(graph, OpKind::collective, "gather_group").bytes;
  step.strategy.fsdp.reshard_after_forward = true;
  CHECK(sum_named(graph_of(), OpKind::collective, "gather_group").bytes > 2 * kept);
}

TEST_CASE("stages can shard gradients of each micro-batch", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(), 1, 8);
  step.model.layers = 4;
  step.job.accumulation = 4;
  step.strategy.fsdp.reshard_after_forward = false;
  step.strategy.pipeline_parallel = {2, one_forward_one_backward, 1, {}};
  struct Reduced {
    Sum sum;
    double gathered = 0, held = 0;
  };
  const auto reduced = [&](bool each) {
    step.strategy.fsdp.sync_each_batch = each;
    const std::vector<double> numbers = numbers_from_worker([&] {
      const Replayed replayed = play(step);
      const OpGraph& graph = replayed.program.graph;
      const Sum sum = sum_named(graph, OpKind::collective, "reduce_group");
      constexpr std::array pools{Pool::device};
      return std::vector<double>{sum.bytes, sum.count,
                                 sum_named(graph, OpKind::collective, "gather_group").bytes,
                                 read_timeline(timeline_of(graph, replayed.trace, 0), pools, 1e30)
                                     .highest_of("gradients")};
    });
    return Reduced{{numbers[0], numbers[1]}, numbers[2], numbers[3]};
  };
  const Reduced once = reduced(false), always = reduced(true);
  CHECK(always.sum.count == 4 * once.sum.count);
  CHECK_THAT(always.sum.bytes, exactly(4 * once.sum.bytes));
  CHECK_THAT(always.gathered, exactly(once.gathered));  // parameters stay all the same
  CHECK(always.held < 0.5 * once.held);
}

TEST_CASE("stages of one rank each hold the model between them", "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0, tiny_model(), 1, 4);
  step.model.layers = 4;
  const double whole = build_step(step.input(), Folding::automatic).resident.in(Pool::device);
  step.strategy.pipeline_parallel = {4, gpipe, 1, {}};
  const StepProgram program = build_step(step.input(), Folding::automatic);
  REQUIRE(program.stages.size() == 4);
  double sum = 0;
  for (const StepStage& stage : program.stages) sum += stage.resident.in(Pool::device);
  CHECK_THAT(sum, exactly(whole));
}
