// Schedules that make gradients of weights later than those of inputs: their time and memory are
// what their papers state.
#include <algorithm>
#include <map>

#include "analysis/memory_timeline.hpp"
#include "sim/engine/own/replay.hpp"
#include "tests/support/exactly.hpp"
#include "tests/support/tiny_pipeline.hpp"
#include "tests/support/worker.hpp"
#include "workloads/pipeline/schedule.hpp"
#include "workloads/pipeline/stages.hpp"

using namespace stepsim;
using enum PipelineSchedule;

namespace {

PipelineParallel shape(PipelineSchedule schedule, std::int64_t size, std::int64_t pieces = 2) {
  PipelineParallel p{size, schedule, 1, {}};
  if (p.way() == PipelineWay::there_and_back || schedule == zb_h1) p.virtual_stages = pieces;
  return p;
}

std::vector<PipelineParallel> split_shapes() {
  std::vector<PipelineParallel> shapes;
  for (const std::int64_t size : {2, 3, 4, 6, 8}) {
    shapes.push_back(shape(zb_h1, size, 1));
    for (const PipelineSchedule schedule : {zb_h1, zbv, v_half, v_min, dualpipe_v})
      shapes.push_back(shape(schedule, size));
    if (size % 2 == 0) shapes.push_back(shape(dualpipe, size));
  }
  return shapes;
}

bool makes_weights(Pass pass) {
  return pass == Pass::weights || pass == Pass::backward;
}

// The most passes that have gone forward and whose weights have no gradient yet.
std::int64_t most_held(const PipelineParallel& p, std::int64_t stage, std::int64_t micro_batches) {
  std::int64_t held = 0, most = 0;
  for (const Turn& turn : turns_of(p, stage, micro_batches)) {
    if (turn.pass == Pass::forward) most = std::max(most, ++held);
    if (makes_weights(turn.pass)) --held;
  }
  return most;
}
std::int64_t most_held(const PipelineParallel& p, std::int64_t micro_batches) {
  std::int64_t most = 0;
  for (std::int64_t stage = 0; stage < p.size; ++stage)
    most = std::max(most, most_held(p, stage, micro_batches));
  return most;
}

// Seconds of one micro-batch through one piece. Attention makes none for weights.
struct PieceCosts {
  double forward = 0, inputs = 0, weights = 0;
};

TinyStep even_split(const PipelineParallel& p, std::int64_t micro_batches, double attention,
                    double attention_back) {
  TinyStep step = even_pipeline(p, micro_batches);
  if (attention > 0) step.cluster.gpu.attention.flash.forward.value = {attention};
  if (attention_back > 0) step.cluster.gpu.attention.flash.backward.value = {attention_back};
  return step;
}

bool in_head(const Op& op, const TinyStep& step) {
  return op.layer >= step.model.layers;
}

PieceCosts costs_of(const TinyStep& step) {
  const PipelineParallel& p = step.strategy.pipeline_parallel;
  const auto seconds_of = [&](const TinyStep& tiny, Phase phase) {
    double sum = 0;
    const OpGraph graph = build_step(tiny.input(), Folding::off).graph;
    for (const Op& op : graph.ops())
      if (op.rank == 0 && op.kind == OpKind::compute && op.cause == Cause::compute &&
          op.phase == phase && !in_head(op, tiny))
        sum += op.seconds.value;
    return sum / static_cast<double>(p.micro_batches_of_piece(tiny.job.accumulation) *
                                     p.pieces_of_stage());
  };
  const double products = seconds_of(even_split(p, step.job.accumulation, 0, 0), Phase::forward);
  return {seconds_of(step, Phase::forward), seconds_of(step, Phase::backward) - products, products};
}

// With a head that costs nothing all stages are alike.
struct SplitSpans {
  double all = 0;              // from the first pass to the last
  std::vector<double> idle{};  // [stage]: between its own first and last
};

SplitSpans split_spans(const TinyStep& step) {
  const std::vector<double> numbers = numbers_from_worker([&] {
    StepProgram program = build_step(step.input(), Folding::automatic);
    for (std::uint32_t i = 0; i < program.graph.size(); ++i)
      if (in_head(program.graph[OpId{i}], step)) program.graph.make_free(OpId{i});
    const Trace trace = replay(program.traffic.folded.platform, program.graph);
    double first = 1e30, last = 0;
    std::vector<double> idle;
    for (const StepStage& stage : program.stages) {
      double busy = 0, begin = 1e30, end = 0;
      for (std::size_t i = 0; i < program.graph.size(); ++i) {
        const Op& op = program.graph.ops()[i];
        if (op.rank != stage.lane || op.kind != OpKind::compute || op.cause != Cause::compute)
          continue;
        busy += op.seconds.value;
        begin = std::min(begin, trace.start[i]);
        end = std::max(end, trace.finish[i]);
      }
      idle.push_back(end - begin - busy);
      first = std::min(first, begin);
      last = std::max(last, end);
    }
    idle.insert(idle.begin(), last - first);
    return idle;
  });
  return {numbers.front(), {numbers.begin() + 1, numbers.end()}};
}

// What a stage waits, beyond what it computes.
double waiting(const SplitSpans& spans, const TinyStep& step, const PieceCosts& costs) {
  const PipelineParallel& p = step.strategy.pipeline_parallel;
  const auto passes =
      static_cast<double>(p.micro_batches_of_piece(step.job.accumulation) * p.pieces_of_stage());
  return spans.all - passes * (costs.forward + costs.inputs + costs.weights);
}

constexpr double rate = 2e8;  // of attention, at which it takes about as long as products

}  // namespace

TEST_CASE("with split passes each piece runs forward, then back, then for its weights",
          "[workloads]") {
  for (const PipelineParallel& p : split_shapes())
    for (const std::int64_t micro_batches : {2 * p.size, 4 * p.size})
      for (std::int64_t stage = 0; stage < p.size; ++stage) {
        CAPTURE(p.size, static_cast<int>(p.schedule), p.virtual_stages, stage, micro_batches);
        std::map<std::pair<std::int64_t, std::int64_t>, Pass> last;
        std::int64_t weights = 0;
        for (const Turn& turn : turns_of(p, stage, micro_batches)) {
          const auto [place, fresh] = last.try_emplace({turn.piece, turn.micro_batch}, turn.pass);
          CHECK(fresh == (turn.pass == Pass::forward));
          if (goes_back(turn.pass))
            CHECK(place->second == (turn.pass == Pass::weights ? Pass::inputs : Pass::forward));
          place->second = turn.pass;
          if (makes_weights(turn.pass)) ++weights;
        }
        const std::int64_t passes = p.micro_batches_of_piece(micro_batches) * p.pieces_of_stage();
        CHECK(weights == passes);
        CHECK(static_cast<std::int64_t>(last.size()) == passes);
      }
  // With fewer micro-batches than fill the stages too.
  for (const PipelineSchedule schedule : {zb_h1, zbv, v_half, v_min})
    CHECK(turns_of(shape(schedule, 4, schedule == zb_h1 ? 1 : 2), 1, 1).size() ==
          (schedule == zb_h1 ? 3 : 6));
}

TEST_CASE("every message has one sender and one receiver", "[workloads]") {
  for (const PipelineParallel& p : split_shapes()) {
    std::map<Message, int> sent, received;
    for (std::int64_t stage = 0; stage < p.size; ++stage)
      for (const StageAct& act : acts_of(p, stage, 2 * p.size, {})) {
        if (act.kind == StageAct::Kind::send) ++sent[*output_of(p, stage, act.turn)];
        if (act.kind != StageAct::Kind::expect) continue;
        ++received[*input_of(p, stage, act.turn)];
        CHECK(target_of(p, *input_of(p, stage, act.turn)) == stage);
      }
    CAPTURE(p.size, static_cast<int>(p.schedule));
    CHECK(sent == received);
    for (const auto& [message, times] : sent) CHECK(times == 1);
  }
}

TEST_CASE("stages hold as many passes as the papers state", "[workloads]") {
  for (const std::int64_t size : {2, 3, 4, 6, 8, 16}) {
    const std::int64_t many = 4 * size;
    CAPTURE(size);
    for (std::int64_t stage = 0; stage < size; ++stage) {
      CHECK(most_held(shape(zb_h1, size, 1), stage, many) == size);
      CHECK(most_held(shape(zb_h1, size, 3), stage, many) == 3 * size);
      // Half a stage's layers each.
      CHECK(most_held(shape(zbv, size), stage, many) == 2 * size);
      CHECK(most_held(shape(dualpipe_v, size), stage, many) == 2 * size + 1);
      if (size % 2 == 0) CHECK(most_held(shape(dualpipe, size), stage, many) == size + 1);
    }
    CHECK(most_held(shape(v_half, size), many) == 2 * ((size + 2) / 2));
    CHECK(most_held(shape(v_min, size), many) == 2 * ((size + 4) / 3));
  }
}

TEST_CASE("ZB-H1 waits for a forward pass and one for inputs, less one for weights, of each stage",
          "[workloads]") {
  for (const double attention : {0.0, rate, 2 * rate})
    for (const std::int64_t pieces : {1, 2, 3})
      for (const std::int64_t size : {2, 4})
        for (const std::int64_t micro_batches : {size, 3 * size}) {
          CAPTURE(size, pieces, micro_batches, attention);
          const TinyStep step =
              even_split(shape(zb_h1, size, pieces), micro_batches, attention, 1.3 * attention);
          const PieceCosts costs = costs_of(step);
          CHECK((costs.forward > costs.weights * (1 + 1e-9)) == (attention > 0));
          CHECK_THAT(waiting(split_spans(step), step, costs),
                     WithinRel(static_cast<double>(size - 1) *
                                   (costs.forward + costs.inputs - costs.weights),
                               1e-9));
        }
}

TEST_CASE("where all turns are as long, stages of ZBV never wait once they have begun",
          "[workloads]") {
  for (const std::int64_t size : {2, 3, 4, 8})
    for (const std::int64_t micro_batches : {2 * size - 1, 3 * size}) {
      CAPTURE(size, micro_batches);
      const TinyStep step = even_split(shape(zbv, size), micro_batches, 0, 0);
      const PieceCosts costs = costs_of(step);
      const SplitSpans spans = split_spans(step);
      for (const double idle : spans.idle) CHECK(std::abs(idle) < 1e-9 * spans.all);
      CHECK_THAT(waiting(spans, step, costs),
                 WithinRel(static_cast<double>(size - 1) * costs.forward, 1e-9));
    }
}

// About p / 2 and 2 p / 3 micro-batches of three turns of two pieces each, as their authors state.
TEST_CASE("V-half and V-min wait for as long as their blocks are", "[workloads]") {
  for (const std::int64_t size : {2, 3, 4, 5, 6, 8})
    for (const std::int64_t micro_batches : {2 * size, 3 * size}) {
      CAPTURE(size, micro_batches);
      const auto waits = [&](PipelineSchedule schedule) {
        const TinyStep step = even_split(shape(schedule, size), micro_batches, 0, 0);
        const PieceCosts costs = costs_of(step);
        return waiting(split_spans(step), step, costs) / costs.forward;
      };
      const auto p = static_cast<double>(size);
      CHECK_THAT(waits(v_half), WithinRel(size % 2 == 0 ? 3.5 * p - 2 : 3.5 * (p - 1), 1e-9));
      CHECK_THAT(waits(v_min), WithinRel(4 * p - (size % 3 == 0 ? 3 : 5), 1e-9));
    }
}

TEST_CASE("DualPipe waits as DeepSeek states it", "[workloads]") {
  for (const double attention : {0.0, rate, 2 * rate})
    for (const std::int64_t size : {2, 4, 8})
      for (const std::int64_t micro_batches : {2 * size, 2 * size + 2, 4 * size}) {
        for (const PipelineSchedule schedule : {dualpipe, dualpipe_v}) {
          CAPTURE(size, micro_batches, attention, static_cast<int>(schedule));
          TinyStep step =
              even_split(shape(schedule, size), micro_batches, attention, 2.5 * attention);
          const PieceCosts costs = costs_of(step);
          CHECK_THAT(costs.inputs, WithinRel(costs.forward, 1e-9));
          const double back = costs.inputs + costs.weights, both = costs.forward + back;
          const auto hops = static_cast<double>((schedule == dualpipe ? size / 2 : size) - 1);
          const double waits = waiting(split_spans(step), step, costs);
          const double stated = hops * (both + back - 3 * costs.weights);
          CHECK(std::abs(waits - stated) < 1e-9 * (stated + costs.forward));
        }
      }
}

TEST_CASE("what products keep waits for their weights, all else goes with the inputs",
          "[workloads]") {
  for (const PipelineParallel& p :
       {shape(zb_h1, 4, 1), shape(zb_h1, 2), shape(zbv, 4), shape(v_half, 4), shape(v_min, 3),
        shape(dualpipe, 4), shape(dualpipe_v, 2)}) {
    const TinyStep step = even_split(p, 4 * p.size, 0, 0);
    const std::vector<double> peaks = numbers_from_worker([&] {
      const Replayed replayed = play(step);
      std::vector<double> most;
      for (const StepStage& stage : replayed.program.stages) {
        constexpr std::array pools{Pool::device};
        most.push_back(
            read_timeline(timeline_of(replayed.program.graph, replayed.trace, stage.lane), pools,
                          1e30)
                .highest_of("activations"));
      }
      return most;
    });
    const std::vector<StageShare> shares = share_out(step.model, p);
    for (std::int64_t stage = 0; stage < p.size; ++stage) {
      const StageShare& share = shares[static_cast<std::size_t>(stage)];
      const RankPart rank =
          rank_part({step.cluster, share.model, step.stack, step.strategy, step.job});
      // One layer is one piece; the last one has the head.
      std::vector<double> kept(share.ends.size()), waits(share.ends.size());
      const auto count = [&](const Unit& unit, std::size_t piece) {
        kept[piece] += unit.memory.kept;
        waits[piece] += unit.parts ? unit.memory.kept : 0;
      };
      if (rank.units.embeds) count(rank.units.embedding, 0);
      for (std::size_t layer = 0; layer < rank.units.layers.size(); ++layer)
        for (const Unit& unit : rank.units.layers[layer]) count(unit, layer);
      for (const Unit& unit : rank.units.head) count(unit, share.ends.size() - 1);
      double held = 0, most = 0;
      for (const Turn& turn : turns_of(p, stage, step.job.accumulation)) {
        const auto piece = static_cast<std::size_t>(turn.piece);
        if (turn.pass == Pass::forward) held += kept[piece];
        if (turn.pass == Pass::inputs) held -= kept[piece] - waits[piece];
        if (turn.pass == Pass::weights) held -= waits[piece];
        if (turn.pass == Pass::backward) held -= kept[piece];
        most = std::max(most, held);
      }
      CAPTURE(static_cast<int>(p.schedule), p.size, stage);
      CHECK(waits.front() > 0);
      CHECK(waits.front() < kept.front());
      CHECK_THAT(peaks[static_cast<std::size_t>(stage)], WithinRel(most, 1e-9));
      if (p.schedule == zb_h1 && p.virtual_stages == 1) {
        const double of_1f1b = static_cast<double>(p.size) * kept.front();
        if (stage == 0) CHECK_THAT(most, WithinRel(of_1f1b, 1e-9));
        if (stage > 0 && stage + 1 < p.size) CHECK(most < of_1f1b);
      }
    }
  }
}

TEST_CASE("pieces lie there and back, or from both ends", "[workloads]") {
  Model model = tiny_model();
  model.layers = 8;
  model.tied_embeddings = true;
  using Places = std::vector<std::int64_t>;
  const std::vector<StageShare> fold = share_out(model, shape(zbv, 2));
  CHECK(fold[0].model.part.places == Places{0, 1, 6, 7});
  CHECK(fold[1].model.part.places == Places{2, 3, 4, 5});
  // Embedding and head are on the first stage, and stay one matrix.
  CHECK((fold[0].model.part.embeds && fold[0].model.part.predicts));
  CHECK(fold[0].model.tied_embeddings);
  CHECK_FALSE((fold[1].model.part.embeds || fold[1].model.part.predicts));
  const std::vector<StageShare> both = share_out(model, shape(dualpipe, 4));
  for (const std::size_t stage : {0U, 3U}) {
    CHECK(both[stage].model.part.places == Places{0, 1, 6, 7});
    CHECK(both[stage].model.tied_embeddings);
  }
  for (const std::size_t stage : {1U, 2U})
    CHECK(both[stage].model.part.places == Places{2, 3, 4, 5});
}

TEST_CASE("from both ends the model is there twice, and gradients of both are added up",
          "[workloads]") {
  TinyStep step = tiny_step(Sharding::zero0, tiny_model(), 1, 4);
  step.model.layers = 4;
  step.job.accumulation = 8;
  step.strategy.pipeline_parallel = shape(dualpipe, 4);
  const auto held = [&] {
    const StepProgram program = build_step(step.input(), Folding::automatic);
    double sum = 0;
    for (const StepStage& stage : program.stages) sum += stage.resident.in(Pool::device);
    return sum;
  };
  const double twice = held();
  const OpGraph graph = build_step(step.input(), Folding::off).graph;
  std::map<std::string, Sum> sums;
  for (const Op& op : graph.ops()) {
    Sum& sum = sums[graph.names()[index(op.name)]];
    sum.bytes += op.bytes.value;
    ++sum.count;
  }
  CHECK(sums["gradients_to_copy"].count == 4);
  const auto elements = static_cast<double>(count_parameters(step.model).total());
  CHECK_THAT(sums["gradients_to_copy"].bytes, exactly(2 * 2 * elements));
  for (const char* way : {"activations_to_next_stage", "activations_to_previous_stage",
                          "gradients_to_next_stage", "gradients_to_previous_stage"})
    CHECK(sums[way].count == 3 * 4);
  step.strategy.pipeline_parallel = {4, one_forward_one_backward, 1, {}};
  CHECK_THAT(twice, exactly(2 * held()));
}
