#include "workloads/sharding/whole_matrices.hpp"

#include <algorithm>
#include <cmath>

#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/states.hpp"

namespace stepsim {
namespace {

struct AlikeMatrices {
  const Matrix& matrix;
  double elements = 0;
  double mine = 0;  // matrices that the rank updates
  Mark whole{};
};

const Optimizer::Orthogonal& as_run(const Strategy& strategy) {
  const auto& compiled = strategy.optimizer.orthogonal_compiled;
  return strategy.compiled && compiled ? *compiled : *strategy.optimizer.orthogonal;
}

class MatrixUpdate {
 public:
  MatrixUpdate(StepWriter& writer, double portion)
      : writer_(writer),
        rank_(writer.rank()),
        how_(as_run(rank_.input.strategy)),
        shares_(facts_of(rank_.input.strategy).matrices) {
    for (const Matrix& matrix : rank_.matrices) {
      const double count = matrix.count * portion;
      parts_.push_back({matrix,
                        matrix.elements() * portion,
                        std::min(count, count * share_of_matrices(rank_, matrix, portion)),
                        {}});
    }
  }

  // All are asked for first; what comes back travels beside the products of the next ones.
  void write(Mark ready) {
    for (AlikeMatrices& part : parts_) part.whole = assemble(part, ready);
    std::vector<Mark> results;
    results.reserve(parts_.size());
    for (const AlikeMatrices& part : parts_) results.push_back(send_back(part, multiply(part)));
    for (const Mark result : results) writer_.compute_after(result);
  }

  // The momentum of what the rank keeps.
  Mark add_to_momentum() {
    double elements = 0;
    for (const AlikeMatrices& part : parts_) elements += part.elements * kept(part);
    const double bytes = (how_.passes * shares_.momentum + how_.passes_16 * bytes_16) * elements;
    return writer_.run({memory("momentum", bytes, how_.kernels * tensors())}, false,
                       Cause::optimizer, "momentum");
  }

 private:
  double kept(const AlikeMatrices& part) const {
    return shares_.partitioned ? 1 / sharers_of(rank_, part.matrix)
                               : share_of_matrices(rank_, part.matrix);
  }
  // Returns how many are in one product: those of a layer.
  double at_once(const AlikeMatrices& part) const {
    if (!rank_.input.stack.matrices_at_once) return 1;
    return std::max(1.0, part.mine / static_cast<double>(rank_.input.model.layers));
  }
  double tensors() const {
    double sum = 0;
    for (const AlikeMatrices& part : parts_) sum += part.mine / at_once(part);
    return sum;
  }

  Mark send(Plan plan, double bytes, std::string_view name, Mark ready) {
    return writer_.collective(plan, {bytes}, Stream::gather, Cause::optimizer, name, {ready});
  }
  Mark all_gather(const AlikeMatrices& part, double bytes, std::string_view name, Mark ready) {
    return send(
        part.matrix.experts && writer_.mesh().experts > 1 ? Plan::expert_gather : Plan::all_gather,
        bytes * part.elements, name, ready);
  }
  Mark exchange(const AlikeMatrices& part, std::string_view name, Mark ready) {
    const Plan plan = part.matrix.experts && writer_.mesh().experts > 1 ? Plan::deal_experts
                                                                        : Plan::deal_matrices;
    const double sharers = sharers_of(rank_, part.matrix);
    return send(plan, shares_.exchanged * part.elements / sharers, name, ready);
  }

  Mark assemble(const AlikeMatrices& part, Mark ready) {
    if (sharers_of(rank_, part.matrix) <= 1) return ready;
    Mark whole = ready;
    if (shares_.gathered > 0)
      whole = all_gather(part, shares_.gathered, "gather_momentum", ready);
    else if (shares_.exchanged > 0)
      whole = exchange(part, "deal_matrices", ready);
    else
      return ready;
    writer_.allocate(whole, Held::update_temporary, arrived(part));
    return whole;
  }
  double arrived(const AlikeMatrices& part) const {
    if (sharers_of(rank_, part.matrix) <= 1) return 0;
    if (shares_.gathered > 0) return shares_.gathered * part.elements;
    return shares_.exchanged * part.mine * part.matrix.elements() / part.matrix.count;
  }

  // Multiplies. This takes three copies in 16 bits and the sum of two of them, and squares of the
  // smaller side.
  Mark multiply(const AlikeMatrices& part) {
    writer_.compute_after(part.whole);
    Matrix together = part.matrix;
    const double at_once = this->at_once(part);
    together.batch *= at_once;
    const Mark done = writer_.run(orthogonal_rows(how_, together, part.mine / at_once), false,
                                  Cause::optimizer, "orthogonalise");
    const double side = std::min(together.rows, together.columns);
    const double each = together.rows * together.columns;
    const double working = bytes_16 * together.batch * (4 * each + 2 * side * side);
    writer_.allocate(done, Held::update_temporary, working);
    writer_.release(done, Held::update_temporary, working);
    writer_.release(done, Held::update_temporary, arrived(part));
    return done;
  }

  Mark send_back(const AlikeMatrices& part, Mark done) {
    if (sharers_of(rank_, part.matrix) <= 1) return done;
    if (shares_.exchanged > 0) return exchange(part, "return_matrices", done);
    return shares_.returned > 0 ? all_gather(part, shares_.returned, "gather_matrices", done)
                                : done;
  }

  StepWriter& writer_;
  const RankPart& rank_;
  const Optimizer::Orthogonal& how_;
  WholeMatrices shares_;
  std::vector<AlikeMatrices> parts_;
};

}  // namespace

double sharers_of(const RankPart& rank, const Matrix& matrix) {
  const bool apart = matrix.experts && sends_tokens(rank.input.strategy);
  return static_cast<double>(apart ? rank.mesh.expert_shard : rank.mesh.shard);
}

// Dealt out, the slowest rank counts. A part of a long vector begins and ends inside of a matrix:
// ranks update one more between them for each cut.
double share_of_matrices(const RankPart& rank, const Matrix& matrix, double portion) {
  const WholeMatrices how = facts_of(rank.input.strategy).matrices;
  const double ranks = sharers_of(rank, matrix);
  double count = 0;
  for (const Matrix& each : rank.matrices)
    if (each.experts == matrix.experts && (!how.by_shape || &each == &matrix))
      count += each.count * portion;
  if (ranks <= 1 || count <= 0 || how.everywhere) return 1;
  return how.dealt ? std::ceil(count / ranks) / count : (count + ranks - 1) / (count * ranks);
}

double elements_in_matrices(const RankPart& rank) {
  double sum = 0;
  for (const Matrix& matrix : rank.matrices) sum += matrix.elements();
  return sum;
}

double share_in_matrices(const RankPart& rank) {
  if (!rank.input.strategy.optimizer.orthogonal) return 0;
  const bool shared = facts_of(rank.input.strategy).shares_states;
  double sum = 0;
  for (const Matrix& matrix : rank.matrices)
    sum += matrix.elements() / (shared ? sharers_of(rank, matrix) : 1);
  return std::min(1.0, sum / owned_elements(rank));
}

std::vector<KernelRow> orthogonal_rows(const Optimizer::Orthogonal& how, const Matrix& matrix,
                                       double count) {
  const double side = std::min(matrix.rows, matrix.columns);
  const double length = std::max(matrix.rows, matrix.columns);
  std::vector<KernelRow> rows{gemm("gram", side, length, side),
                              gemm("gram_square", side, side, side),
                              gemm("polynomial", side, side, length)};
  for (KernelRow& row : rows) {
    row.flops *= matrix.batch;
    row.bytes *= matrix.batch;
    row.groups = matrix.batch;
    row.repeats = how.iterations * count;
  }
  const double numbers = how.iteration_passes * side * length + how.gram_passes * side * side;
  rows.push_back(memory("scale_and_add", bytes_16 * how.iterations * numbers * matrix.batch * count,
                        how.iterations * how.iteration_kernels * count));
  return rows;
}

void orthogonalise(StepWriter& writer, double portion, std::initializer_list<Mark> ready) {
  const Strategy& s = writer.input().strategy;
  if (!s.optimizer.orthogonal || writer.rank().matrices.empty() || portion <= 0) return;
  for (const Mark mark : ready) writer.compute_after(mark);
  MatrixUpdate update(writer, portion);
  update.write(update.add_to_momentum());
}

}  // namespace stepsim
