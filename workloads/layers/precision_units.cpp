#include "workloads/layers/precision_units.hpp"

#include <algorithm>
#include <optional>

#include "workloads/model/role_facts.hpp"

namespace stepsim {
namespace {

std::optional<Products> products_of(const Unit& unit) {
  if (unit.adapter) return std::nullopt;
  if (unit.role == Role::experts) return Products::experts;
  if (unit.role == Role::head) return Products::head;
  const RoleFacts& facts = facts_of(unit.role);
  if (!facts.narrows) return std::nullopt;
  return facts.block == Block::attention ? Products::attention : Products::feed_forward;
}

bool is_product(const KernelRow& row) {
  const bool multiplies = row.kind == KernelClass::gemm || row.kind == KernelClass::grouped_gemm;
  return multiplies && row.rows > 0 && row.type == ProductType::bf16;
}

void narrow(KernelRow& row, const Precision& precision) {
  row.type = precision.type;
  row.share *= precision.rate.number();
  const double operands = row.groups * (row.rows * row.depth + row.depth * row.width);
  row.bytes -= (bytes_16 - bytes_of(precision.type)) * operands;
}

// Numbers that products of a unit read and write.
struct Operands {
  double input = 0, weight = 0, gradient = 0;
  double input_back = 0;  // cast once more for the product of the weights
  double turned = 0;      // cast in pieces and collected, then turned whole for that product
  double matrices = 1;    // of the same kind
};

Operands operands_of(const Unit& unit) {
  Operands sum;
  const KernelRow* before = nullptr;
  for (const KernelRow& row : unit.forward) {
    if (!is_product(row)) continue;
    // Gate and up of experts read the same rows.
    const bool same = before != nullptr && before->rows == row.rows && before->depth == row.depth;
    if (!same) sum.input += row.repeats * row.groups * row.rows * row.depth;
    sum.matrices = row.groups;
    sum.weight += row.repeats * row.groups * row.depth * row.width;
    sum.gradient += row.repeats * row.groups * row.rows * row.width;
    before = &row;
  }
  // The next unit reads the same, and casts it for both.
  if (facts_of(unit.role).input == RoleInput::shared) sum.input = 0;
  sum.input_back = sum.input;
  return sum;
}

// Returns the casts of a weight in each pass. Weights that are gathered anew are cast anew.
double weight_casts(const Strategy& strategy, double micro_batches) {
  if (strategy.fsdp.narrow_gather) return 0;
  const bool stay = !is_fsdp(strategy.sharding) && strategy.sharding != Sharding::zero3;
  return strategy.precision.once && stay ? 1 / micro_batches : 1;
}

class Casting {
 public:
  // Modules of a library bring their kernels, which stream as fast as the device does.
  Casting(const Stack& stack, const Strategy& strategy, double micro_batches)
      : casts_(strategy.compiled ? strategy.precision.casts : strategy.precision.eager),
        weights_(weight_casts(strategy, micro_batches)),
        share_(strategy.precision.module_call.value.value > 0 ? 1 / stack.kernels.memory.number()
                                                              : 1),
        gathered_(strategy.fsdp.narrow_gather) {}

  std::vector<KernelRow> forward(const Operands& of) const {
    return rows(of.matrices, {{casts_.input, of.input},
                              {casts_.weight, weights_ * of.weight},
                              {casts_.gathered, gathered_ ? of.weight : 0}});
  }
  std::vector<KernelRow> backward(const Operands& of, bool trained) const {
    return rows(of.matrices, {{casts_.gradient, of.gradient},
                              {casts_.weight_back, weights_ * of.weight},
                              {casts_.input_back, trained ? of.input_back : 0},
                              {casts_.turned, trained ? of.turned : 0}});
  }

 private:
  // Returns each expert's casts by itself.
  std::vector<KernelRow> rows(
      double matrices, std::initializer_list<std::pair<Precision::Cast, double>> casts) const {
    std::vector<KernelRow> result;
    for (const auto& [cast, numbers] : casts) {
      if (numbers <= 0 || cast.kernels <= 0) continue;
      result.push_back(memory("cast", cast.bytes * numbers, cast.kernels * matrices));
      result.back().share = share_;
    }
    return result;
  }

  const Precision::Casts& casts_;
  double weights_;
  double share_;   // of the rate at which the stack's own kernels stream
  bool gathered_;  // weights come in the type of the products
};

void put_first(std::vector<KernelRow>& rows, const std::vector<KernelRow>& more) {
  rows.insert(rows.begin(), more.begin(), more.end());
}

// Casts pieces: ranks that collect a block's input, or the gradient of its result, cast their own
// first. The pieces that they collect lie with tokens outside, and the product of the weights takes
// them inside.
void cast_pieces(Operands& operands, const Unit& unit, const Strategy& strategy) {
  const TensorParallel& tensor = strategy.tensor_parallel;
  if (tensor.size == 1 || !tensor.sequence || strategy.precision.collected >= bytes_16) return;
  const bool ends = facts_of(unit.role).place == RolePlace::ends;
  double& piece = ends ? operands.gradient : operands.input;
  operands.turned = piece;
  piece /= static_cast<double>(tensor.size);
  if (!ends) operands.input_back = 0;
}

// Makes what ranks collect for a product come in the type that it is multiplied in.
void collect_narrow(Unit& unit, double bytes) {
  for (std::vector<Transfer>* transfers : {&unit.hand.arrive, &unit.hand.arrive_back})
    for (Transfer& each : *transfers)
      if (each.kind == Handover::collect) each.bytes *= bytes / bytes_16;
}

bool is_forgotten(const Stack& stack, const Precision& precision) {
  const bool held_by_modules = precision.module_call.value.value > 0;
  return held_by_modules && !stack.recompute_keeps_type;
}

// Losses over logits in 32 bits have their bytes already.
bool in_32_bits(Operator op) {
  switch (op) {
    case Operator::cross_entropy_32:
    case Operator::cross_entropy_32_backward:
    case Operator::cross_entropy_words:
    case Operator::cross_entropy_words_backward:
      return true;
    default:
      return false;
  }
}

void widen(std::vector<KernelRow>& rows, ProductType type, double more) {
  for (KernelRow& row : rows) {
    if (!in_32_bits(row.op)) row.bytes *= more;
    if (row.kind != KernelClass::memory) row.type = type;
    row.later = false;  // such kernels take 16 bits and less
  }
}

// All that is said in bytes, of units that were made for 16 bits. The head knows its own memory.
void widen(Unit& unit, const Precision& precision) {
  const double more = precision.numbers / bytes_16;
  widen(unit.forward, precision.type, more);
  widen(unit.backward, precision.type, more);
  for (std::vector<Transfer>* transfers :
       {&unit.hand.arrive, &unit.hand.leave, &unit.hand.arrive_back, &unit.hand.leave_back})
    for (Transfer& each : *transfers) each.bytes *= more;
  for (double* bytes : {&unit.hand.passed, &unit.hand.passed_back, &unit.exchange, &unit.once})
    *bytes *= more;
  if (unit.role == Role::head) return;
  Unit::Memory& memory = unit.memory;
  for (double* bytes :
       {&memory.saved, &memory.gradient, &memory.forward, &memory.backward, &memory.result,
        &memory.core, &memory.shared, &memory.normed, &memory.acted})
    *bytes *= more;
}

}  // namespace

void apply_precision(std::span<Unit> units, const Stack& stack, const Strategy& strategy,
                     double micro_batches) {
  const Precision& precision = strategy.precision;
  if (precision.whole())
    for (Unit& unit : units) widen(unit, precision);
  if (!precision.narrow()) return;
  const Casting casting(stack, strategy, micro_batches);
  for (Unit& unit : units) {
    const std::optional<Products> which = products_of(unit);
    if (!which || !precision.multiplies(*which)) continue;
    Operands operands = operands_of(unit);
    if (operands.weight <= 0) continue;
    if (*which != Products::experts) cast_pieces(operands, unit, strategy);
    for (std::vector<KernelRow>* rows : {&unit.forward, &unit.backward})
      for (KernelRow& row : *rows)
        if (is_product(row)) narrow(row, precision);
    put_first(unit.forward, casting.forward(operands));
    put_first(unit.backward, casting.backward(operands, unit.trained));
    unit.narrow = unit.elements();
    // A unit of one product saves nothing but its input.
    if (unit.memory.result > 0) {
      unit.memory.saved *= precision.saved / bytes_16;
      unit.memory.normed *= precision.saved / bytes_16;
    }
    collect_narrow(unit, precision.collected);
  }
}

bool loses_type_again(const Stack& stack, const Strategy& strategy) {
  const bool calls_modules =
      strategy.checkpointing == Checkpointing::full ||
      (strategy.checkpointing == Checkpointing::selective && strategy.recomputed.products());
  return calls_modules && is_forgotten(stack, strategy.precision);
}

bool ends_in_recomputation(const Stack& stack, const Strategy& strategy) {
  return strategy.checkpointing == Checkpointing::operators &&
         is_forgotten(stack, strategy.precision);
}

void forget_type(std::span<Unit> units, std::span<const Unit> made, std::span<const Unit> wide) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    Unit& unit = units[i];
    unit.narrow_once = unit.narrow > 0 && std::ranges::any_of(wide[i].again, is_product);
    if (!unit.narrow_once) continue;
    unit.backward = made[i].backward;
    unit.hand.arrive_back = made[i].hand.arrive_back;
    unit.memory = made[i].memory;
  }
}

void run_again_as(std::span<Unit> units, std::span<const Unit> wide) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!units[i].narrow_once) continue;
    units[i].again = wide[i].again;
    units[i].hand.arrive_again = wide[i].hand.arrive_again;
  }
}

}  // namespace stepsim
