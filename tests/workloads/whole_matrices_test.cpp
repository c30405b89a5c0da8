// Optimizers that take a matrix as a whole: what is kept, multiplied and sent.
#include "workloads/sharding/whole_matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/support/exactly.hpp"
#include "tests/support/tiny_step.hpp"
#include "workloads/sharding/resident.hpp"

using namespace stepsim;

namespace {

// Of a layer of the tiny model: q, k, v, o, gate, up, down.
constexpr double layers = 3, width = 64, vocabulary = 2000;
constexpr std::array<std::pair<double, double>, 7> shapes{{{width, width},
                                                           {32, width},
                                                           {32, width},
                                                           {width, width},
                                                           {192, width},
                                                           {192, width},
                                                           {width, 192}}};

double sum_of_shapes(double (*each)(double rows, double columns)) {
  double sum = 0;
  for (const auto& [rows, columns] : shapes) sum += layers * each(rows, columns);
  return sum;
}
double in_matrices() {
  return sum_of_shapes([](double rows, double columns) { return rows * columns; });
}
// Five iterations: X X', its square, and the square times X.
double products() {
  return sum_of_shapes([](double rows, double columns) {
    const double m = std::min(rows, columns), n = std::max(rows, columns);
    return 5 * (4 * m * m * n + 2 * m * m * m);
  });
}

TinyStep step_of(Sharding sharding, std::string_view optimizer, std::uint32_t gpus = 8) {
  TinyStep step = tiny_step(sharding, tiny_model(), 1, gpus);
  step.strategy.optimizer = optimizer_called(optimizer);
  if (!step.strategy.optimizer.kernels.empty())
    step.strategy.update_kernels = step.strategy.optimizer.kernels.front();
  return step;
}

double kept(const TinyStep& step) {
  double sum = 0;
  for (const Holding& holding : resident_of(step.rank()).holdings)
    if (holding.held == Held::optimizer) sum += holding.bytes;
  return sum;
}

OpGraph graph_of(const TinyStep& step) {
  return build_step(step.input(), Folding::automatic).graph;
}

double flops_of(const TinyStep& step) {
  const OpGraph graph = graph_of(step);
  double sum = 0;
  for (const Op& op : graph.ops())
    if (graph.names()[index(op.name)] == "orthogonalise" && op.rank == 0) sum += op.flops.value;
  return sum;
}

double sent(const TinyStep& step, std::string_view name) {
  return sum_named(graph_of(step), OpKind::collective, name).bytes;
}

}  // namespace

TEST_CASE("states are what an optimizer's file says, for each element of a rank's shard",
          "[workloads]") {
  for (const auto& [name, bytes] :
       {std::pair{"adamw", 8.0}, std::pair{"adamw_8bit", 2.03}, std::pair{"adamw_4bit", 1.0625},
        std::pair{"sgd", 0.0}, std::pair{"sgd_momentum", 4.0}, std::pair{"lion", 4.0},
        std::pair{"lion_8bit", 1.0156}})
    for (const Sharding sharding : {Sharding::zero2, Sharding::zero3, Sharding::fsdp}) {
      const TinyStep step = step_of(sharding, name);
      CAPTURE(name, to_text(sharding));
      CHECK_THAT(kept(step), exactly(bytes * elements_of(step).total / 8));
    }
}

TEST_CASE("Adafactor keeps a number for each row and column, but of flat shards one for each",
          "[workloads]") {
  const auto sides = [](double ranks) {
    double sum = 2 * (vocabulary / ranks + width);  // embedding and head
    for (const auto& [rows, columns] : shapes) sum += layers * (rows / ranks + columns);
    return sum;
  };
  const double vectors = (2 * layers + 1) * width;
  CHECK_THAT(kept(step_of(Sharding::zero0, "adafactor", 1)), exactly(4 * (sides(1) + vectors)));
  CHECK_THAT(kept(step_of(Sharding::fsdp, "adafactor")), exactly(4 * (sides(8) + vectors / 8)));
  TinyStep flat = step_of(Sharding::fsdp, "adafactor");
  const double all = elements_of(flat).total;
  flat.strategy.fsdp.version = 1;
  CHECK_THAT(kept(flat), exactly(4 * all / 8));
  CHECK_THAT(kept(step_of(Sharding::zero2, "adafactor")), exactly(4 * all / 8));
}

TEST_CASE("Muon keeps a momentum of matrices in layers, and AdamW's moments of the rest",
          "[workloads]") {
  const double all = elements_of(step_of(Sharding::fsdp, "muon")).total, mine = in_matrices();
  CHECK_THAT(kept(step_of(Sharding::fsdp, "muon")), exactly((4 * mine + 8 * (all - mine)) / 8));
  TinyStep buffer = step_of(Sharding::zero1, "muon");
  buffer.strategy.distributed.used = true;
  CHECK_THAT(kept(buffer), exactly((4 * mine + 8 * (all - mine)) / 8));
  // DeepSpeed keeps it in the type of gradients; below stage 3 of all matrices that a part touches.
  CHECK_THAT(kept(step_of(Sharding::zero3, "muon")), exactly((2 * mine + 8 * (all - mine)) / 8));
  const double count = layers * 7;
  CHECK_THAT(kept(step_of(Sharding::zero2, "muon")),
             exactly(2 * mine * (count + 7) / (count * 8) + 8 * (all - mine) / 8));
}

TEST_CASE("the products of Muon are five times those of X X', its square and a polynomial",
          "[workloads]") {
  TinyStep alone = step_of(Sharding::zero0, "muon", 1);
  CHECK_THAT(flops_of(alone), exactly(products()));
  const double count = layers * 7;
  CHECK_THAT(flops_of(step_of(Sharding::zero1, "muon")),
             exactly(products() * (count + 7) / (count * 8)));
  // Dealt out among eight, 21 matrices are three for the ranks that have most.
  CHECK_THAT(flops_of(step_of(Sharding::zero0, "muon")),
             exactly(products() * std::ceil(count / 8) / count));
}

TEST_CASE("ranks send each other matrices as the published code of their scheme does",
          "[workloads]") {
  const double all = in_matrices();
  for (const auto& [sharding, before, after] :
       {std::tuple{Sharding::zero0, 0.0, 2.0}, std::tuple{Sharding::zero1, 0.0, 0.0},
        std::tuple{Sharding::zero2, 0.0, 0.0}, std::tuple{Sharding::zero3, 2.0, 4.0}}) {
    CAPTURE(to_text(sharding));
    const TinyStep step = step_of(sharding, "muon");
    CHECK_THAT(sent(step, "gather_momentum"), exactly(before * all));
    CHECK_THAT(sent(step, "gather_matrices"), exactly(after * all));
  }
  TinyStep buffer = step_of(Sharding::zero1, "muon");
  buffer.strategy.distributed.used = true;
  CHECK_THAT(sent(buffer, "gather_momentum"), exactly(2 * all));
  CHECK(sent(buffer, "gather_matrices") == 0);
  const TinyStep sharded = step_of(Sharding::fsdp, "muon");
  CHECK_THAT(sent(sharded, "deal_matrices"), exactly(2 * all / 8));
  CHECK_THAT(sent(sharded, "return_matrices"), exactly(2 * all / 8));
  // Nobody is asked where there is one rank, and nobody where elements are taken one by one.
  CHECK(sent(step_of(Sharding::zero3, "muon", 1), "gather_momentum") == 0);
  CHECK(sent(step_of(Sharding::zero3, "lion"), "gather_momentum") == 0);
}

TEST_CASE("matrices that nobody deals out are gathered by each rank, which updates all of them",
          "[workloads]") {
  TinyStep step = step_of(Sharding::fsdp, "muon");
  step.strategy.matrix_updates = MatrixUpdates::everywhere;
  CHECK_THAT(flops_of(step), exactly(products()));
  CHECK_THAT(sent(step, "gather_momentum"), exactly(2 * in_matrices()));
  CHECK(sent(step, "deal_matrices") + sent(step, "return_matrices") == 0);
  CHECK_THAT(kept(step), exactly(kept(step_of(Sharding::fsdp, "muon"))));
}

TEST_CASE("a compiler has fewer passes between the products, and vmap those of a layer in one",
          "[workloads]") {
  const Optimizer muon = optimizer_called("muon");
  const Matrix matrix{.rows = 64, .columns = 128, .batch = 1, .count = 6};
  const auto between = [&](const Optimizer::Orthogonal& how) {
    return orthogonal_rows(how, matrix, 1).back().bytes;
  };
  CHECK_THAT(between(*muon.orthogonal), exactly(2 * 5 * (5 * 64 * 128 + 7 * 64 * 64)));
  CHECK_THAT(between(*muon.orthogonal_compiled), exactly(2 * 5 * 3 * (64 * 128 + 64 * 64)));
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(8), 1, 1);
  step.strategy.optimizer = muon;
  step.strategy.experts.kernel = MoeKernel::grouped;
  const double singly = flops_of(step), seconds = seconds_of(step);
  step.stack.matrices_at_once = true;
  CHECK_THAT(flops_of(step), exactly(singly));
  CHECK(seconds_of(step) < seconds);
}

TEST_CASE("experts are matrices each, shared by those that hold the same", "[workloads]") {
  TinyStep step = tiny_step(Sharding::fsdp, tiny_model(8), 1, 8);
  step.strategy.optimizer = optimizer_called("muon");
  step.strategy.experts.kernel = MoeKernel::grouped;
  const auto experts = [&] {
    double count = 0;
    for (const Matrix& matrix : step.rank().matrices)
      if (matrix.experts) count += matrix.batch * matrix.count;
    return count;
  };
  CHECK(experts() == 3 * 3 * 8);
  step.strategy.experts.parallel = 4;
  CHECK(experts() == 3 * 3 * 2);
  CHECK(sent(step, "deal_matrices") > 0);
}

TEST_CASE("an update takes longer the more it keeps, and Muon longer than AdamW", "[workloads]") {
  const auto seconds = [](Sharding sharding, const char* name) {
    TinyStep step = step_of(sharding, name);
    step.model.hidden = 1024;
    step.model.feed_forward.width = 4096;
    step.strategy.update_kernels = UpdateKernels::fused;
    return seconds_of(step);
  };
  for (const Sharding sharding : {Sharding::zero2, Sharding::fsdp}) {
    const double adamw = seconds(sharding, "adamw"), lion = seconds(sharding, "lion"),
                 sgd = seconds(sharding, "sgd");
    CHECK(adamw > lion);
    CHECK(lion > sgd);
    CHECK(seconds(sharding, "muon") > adamw);
  }
}
