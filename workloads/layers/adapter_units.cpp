#include <algorithm>
#include <array>

#include "sim/base/lists.hpp"
#include "workloads/layers/frozen_units.hpp"
#include "workloads/layers/layer_writer.hpp"

namespace stepsim {
namespace {

bool is_way(const AdapterProduct& product, AdapterSide depth, AdapterSide width) {
  return product.sides == AdapterSides{AdapterSide::tokens, depth, width};
}

void append_rows(std::vector<KernelRow>& rows, const std::vector<KernelRow>& more) {
  rows.insert(rows.end(), more.begin(), more.end());
}

// Returns whether the matrix reads what one before it has read.
bool reads_again(Role role) {
  return role == Role::key || role == Role::value || role == Role::up || role == Role::shared_up;
}

}  // namespace

AdapterType adapter_type_of(const Stack& stack, const Strategy& strategy) {
  if (strategy.precision.whole()) return AdapterType::bf16;
  const bool wide = stack.adapters.casts && strategy.sharding == Sharding::zero0;
  return strategy.lora.type.value_or(wide ? AdapterType::autocast : AdapterType::bf16);
}

// Beside modules of bitsandbytes autocast casts the weights of adapters alone, unless what comes in
// has 32 bits (peft v0.18.1 tuners/lora/bnb.py: requires_conversion).
static bool casts_weights_alone(const Strategy& strategy, AdapterType type) {
  return type == AdapterType::autocast && strategy.lora.quantised.uncast &&
         !widens_frozen(strategy);
}

static std::vector<KernelRow> format_rows(const Operators& all, const FormatWork& work,
                                          double numbers) {
  if (work.kernels <= 0) return {};
  KernelRow row = counted(all, Operator::unpack, numbers);
  row.bytes = work.bytes * numbers;
  row.launches = work.kernels;
  return {row};
}

// Weights in few bits are unpacked before each product, or a product of the format's own takes
// them; a format whose backward pass has nothing to unpack keeps a copy.
void pack(Unit& unit, const Stack& stack, const Strategy& strategy, std::size_t matrices) {
  const Operators& all = stack.operators;
  const WeightFormat& format = strategy.lora.quantised;
  if (!format.packs()) return;
  double weights = 0, inputs = 0, results = 0;
  for (std::size_t i = 0; i < matrices; ++i) {  // biases behind them stay as they are
    weights += unit.tensors[i];
    unit.tensors[i] *= format.bytes / bytes_16;
  }
  for (std::vector<KernelRow>* rows : {&unit.forward, &unit.backward})
    for (KernelRow& row : *rows)
      if (row.kind == KernelClass::gemm) row.share *= format.rate;
  for (const KernelRow& row : unit.forward)
    if (row.kind == KernelClass::gemm && row.rows > 0) {
      inputs += row.repeats * row.rows * row.depth;
      results += row.repeats * row.rows * row.width;
    }
  unit.packed = true;
  unit.unpacked = format.calls * static_cast<double>(matrices);
  unit.stops.reads += format.reads;
  std::vector<KernelRow> forward = format_rows(all, format.forward, weights);
  append_rows(forward, format_rows(all, format.input, inputs));
  unit.forward.insert(unit.forward.begin(), forward.begin(), forward.end());
  append_rows(unit.forward, format_rows(all, format.result, results));
  const std::vector<KernelRow> backward = format_rows(all, format.backward, weights);
  unit.backward.insert(unit.backward.begin(), backward.begin(), backward.end());
  unit.memory.saved += format.copy * weights;
}

void hold_unpacked(Unit& unit, const Stack& stack, const Strategy& strategy, double weights) {
  const WeightFormat& format = strategy.lora.quantised;
  if (!format.packs()) return;
  const bool casts = stack.adapters.casts_unpacked;
  const double bytes = (casts ? 2 : 1) * bytes_16 * weights;
  const auto hold = [&](const FormatWork& work, double& passing, std::vector<KernelRow>& rows) {
    if (work.kernels <= 0) return;
    passing += bytes;
    if (casts) rows.insert(rows.begin() + 1, memory("cast_unpacked", 2 * bytes_16 * weights, 1));
  };
  hold(format.forward, unit.memory.forward, unit.forward);
  hold(format.backward, unit.memory.backward, unit.backward);
}

// The function of a packed matrix saves what it multiplied, which others that read the same share
// unless each has cast it for itself.
void LayerWriter::keep_packed_input(Unit& unit, double bytes) const {
  const Lora& lora = strategy.lora;
  if (!lora.quantised.packs() || !(lora.quantised.keeps_input || lora.saves_inputs)) return;
  if (reads_again(unit.role) && !widens_frozen(strategy)) return;
  unit.memory.saved += bytes;
  if (lora.saves_inputs) unit.memory.named += bytes;
}

// Experts that are one tensor, for which libraries have no layer: they are unpacked before the
// product of the model's own code, which keeps what was unpacked for its backward pass.
void LayerWriter::quantise_stack(Unit& unit) const {
  constexpr std::size_t matrices = 2;  // what goes in, and what goes down
  if (!frozen() || !strategy.lora.quantised.stacked) return;
  double unpacked = 0;
  for (std::size_t i = 0; i < matrices; ++i) unpacked += unit.tensors[i];
  quantise(unit, matrices);
  std::erase_if(unit.backward, [](const KernelRow& row) { return row.op == Operator::unpack; });
  unit.memory.saved += bytes_16 * unpacked;
}

std::vector<KernelRow> adapter_backward(const Operators& all,
                                        const std::vector<KernelRow>& products, double results,
                                        double inputs) {
  std::vector<KernelRow> backward = backward_of(products, all);
  backward.push_back(counted(all, Operator::lora_backward, 2 * results + 3 * inputs));
  return backward;
}

KernelRow LayerWriter::lora_add(double numbers) const {
  return count(strategy.compiled ? Operator::lora_add_compiled : Operator::lora_add, numbers);
}

namespace {

// What runs beside a frozen matrix of these sides, in rows of each pass.
struct AdapterRows {
  std::vector<KernelRow> forward, backward;
};

struct AdapterShape {
  double tokens, in, out, rank;
  AdapterType type;
  const Operators& operators;

  double side(AdapterSide which) const {
    const std::array<double, adapter_side_names.size()> sides{tokens, in, out, rank, 1};
    return sides[static_cast<std::size_t>(which)];
  }
  double numbers(const AdapterSides& sides) const {
    double product = 1;
    for (const AdapterSide each : sides) product *= side(each);
    return product;
  }
  // Bytes of a number that its products read and write.
  double width() const {
    return type == AdapterType::tf32 || type == AdapterType::fp32 ? bytes_32 : bytes_16;
  }
  bool casts() const { return type != AdapterType::bf16; }
};

void put_product(AdapterRows& rows, const AdapterShape& shape, const AdapterProduct& what,
                 bool grouped) {
  const double high = shape.side(what.sides[0]), depth = shape.side(what.sides[1]),
               width = shape.side(what.sides[2]);
  KernelRow row = grouped ? grouped_gemm(what.name, 1, high, depth, width)
                          : gemm(what.name, high, depth, width);
  if (shape.width() > bytes_16) {
    row.bytes *= shape.width() / bytes_16;
    row.type = shape.type == AdapterType::tf32 ? ProductType::tf32 : ProductType::fp32;
  }
  rows.forward.push_back(row);
  if (what.detached) return;
  append_rows(rows.backward, what.frozen ? frozen_backward_of({row}, shape.operators)
                                         : backward_of({row}, shape.operators));
}

void put_stream(AdapterRows& rows, const AdapterShape& shape, const AdapterStream& what) {
  const double bytes = shape.width() * shape.numbers(what.sides);
  rows.forward.push_back(memory("adapter_stream", what.forward * bytes, what.kernels));
  if (what.backward > 0)
    rows.backward.push_back(memory("adapter_stream", what.backward * bytes, what.kernels));
}

// Dropout reads its input and writes that and a mask of bytes; so does its backward pass.
void put_dropout(AdapterRows& rows, const AdapterShape& shape) {
  const double wide = shape.casts() ? bytes_32 : bytes_16;
  const KernelRow row = memory("dropout", (2 * wide + 1) * shape.tokens * shape.in, 1);
  rows.forward.push_back(row);
  rows.backward.push_back(row);
}

// Functions that know dropout add what adapters give by operators of their own, and mask it behind
// the product in the backward pass (fms-acceleration's fast_lora.py).
void put_masked_sums(AdapterRows& rows, double inputs, double results) {
  rows.forward.push_back(memory("lora_add", 3 * bytes_16 * results, 1));
  rows.backward.push_back(memory("lora_mask", (1 + 2 * bytes_16) * inputs, 1));
  rows.backward.push_back(memory("lora_mask", (1 + 5 * bytes_16) * inputs, 2));
}

}  // namespace

// Adds what products and streams of a method run, and returns the bytes that they keep for the
// backward pass.
static double put_method(AdapterRows& rows, const AdapterShape& shape, const AdapterMethod& method,
                         bool grouped, bool dropout) {
  double saved = 0;
  for (const AdapterProduct& each : method.products) {
    if (each.dropout && !dropout) continue;
    put_product(rows, shape, each, grouped);
    if (is_way(each, AdapterSide::in, AdapterSide::rank))
      saved += shape.width() * shape.tokens * shape.rank;
  }
  for (const AdapterStream& each : method.streams) {
    put_stream(rows, shape, each);
    if (each.keeps) saved += shape.width() * shape.numbers(each.sides);
  }
  return saved;
}

// What stands beside a frozen matrix: for LoRA down to the rank and up again, scaled and added to
// what the matrix gives. Fused, the products themselves add.
void LayerWriter::adapter(const Part& matrix) {
  const Lora& lora = strategy.lora;
  const bool fuses = lora.kernels == AdapterKernels::fused && lora.method.name == "lora";
  const AdapterType stored = fuses ? AdapterType::bf16 : adapter_type_of(stack, strategy);
  const bool narrows = casts_weights_alone(strategy, stored);
  const AdapterType type = narrows ? AdapterType::bf16 : stored;
  const auto side = [](std::int64_t length) { return static_cast<double>(length); };
  const AdapterShape shape{t(),  side(matrix.in), side(matrix.out), side(lora.rank),
                           type, stack.operators};
  AdapterRows rows;
  const double saved =
      put_method(rows, shape, lora.method, stack.adapters.grouped, lora.dropout > 0);
  const double inputs = shape.tokens * shape.in, results = shape.tokens * shape.out;
  if (fuses) {
    rows.forward.back().bytes += bytes_16 * results;  // read, and added to
    rows.backward.front().bytes += bytes_16 * inputs;
    if (lora.dropout > 0) put_masked_sums(rows, inputs, results);
  } else if (lora.method.adds) {
    rows.backward.push_back(count(Operator::lora_backward, 2 * results + 3 * inputs));
    rows.forward.push_back(lora_add(results));
  }
  if (fuses || narrows)
    rows.forward.push_back(
        memory("lora_cast", 3 * bytes_16 * shape.rank * (shape.in + shape.out), 2));
  if (!fuses && stack.adapters.casts && lora.quantised.cloned)
    rows.forward.push_back(memory("clone", 2 * bytes_16 * results, 1));
  const bool own = !fuses && (shape.casts() || lora.dropout > 0) && !strategy.compiled;
  if (lora.dropout > 0) put_dropout(rows, shape);
  if (!fuses && type == AdapterType::autocast && !strategy.compiled)
    for (std::vector<KernelRow>* pass : {&rows.forward, &rows.backward})
      pass->push_back(count(Operator::lora_cast, t(), shape.in));
  if (!fuses && shape.width() > bytes_16)
    widen_adapter(rows.forward, rows.backward, inputs, results);
  std::vector<double> tensors;
  tensors.reserve(lora.method.tensors.size());
  for (const AdapterSides& sides : lora.method.tensors) tensors.push_back(shape.numbers(sides));
  const int owners = static_cast<int>(tensors.size());
  Unit& added =
      unit(matrix.role, matrix.name + ".lora", std::move(tensors), std::move(rows.forward));
  added.adapter = true;
  added.adapted = fuses ? 0 : lora.method.calls;
  added.unpacked = lora.method.unpacks ? lora.quantised.calls : 0;
  added.backward = std::move(rows.backward);
  added.trained = true;
  added.owners = owners;
  added.plain_modules = fuses ? 0 : 2;  // the wrapper and its dropout
  added.stops.reads = stack.adapters.reads;
  added.own_input = own;
  if (pads(matrix.role)) pad_columns(added, results);
  added.memory.saved = saved + (own ? shape.width() * inputs : 0) + (lora.dropout > 0 ? inputs : 0);
  if (shape.casts() && !strategy.compiled)
    added.memory.forward = added.memory.backward =
        bytes_32 * (inputs + (shape.width() > bytes_16 ? results : 0));
  // The adapter's way down is whole on each rank beside columns, the way up beside rows.
  const bool of_rows = matrix.role == Role::attention_output || matrix.role == Role::mixer_out ||
                       matrix.role == Role::down || matrix.role == Role::shared_down;
  if (strategy.tensor_parallel.size > 1)
    added.common = shape.rank * (of_rows ? shape.out : shape.in);
}

// Returns what an adapter of the matrix stands beside: with others of its kind, where they are one
// matrix; nothing behind the first of them, which has it.
std::optional<Part> LayerWriter::beside_adapter(const Part& matrix) const {
  if (!stack.adapters.one_beside_joined) return matrix;
  constexpr std::array<std::array<Role, 3>, 2> joined{
      {{Role::query, Role::key, Role::value}, {Role::gate, Role::up, Role::none}}};
  for (const auto& roles : joined) {
    if (!holds(roles, matrix.role) || matrix.role == Role::none) continue;
    Part whole = matrix;
    whole.out = 0;
    for (const Role role : roles) {
      if (role == Role::none || !has(role)) continue;
      if (!strategy.lora.chooses(part(role).name)) return matrix;
      whole.out += part(role).out;
    }
    return matrix.role == roles.front() ? std::optional(whole) : std::nullopt;
  }
  return matrix;
}

// LitGPT's layer for queries, keys and values is one: what adapters of some of them give is copied
// into zeros as wide as all.
bool LayerWriter::pads(Role role) const {
  const auto chosen = [&](Role each) {
    return has(each) && strategy.lora.chooses(part(each).name);
  };
  const bool one = role == Role::query || role == Role::key || role == Role::value;
  return stack.adapters.pads && one &&
         !(chosen(Role::query) && chosen(Role::key) && chosen(Role::value));
}

void LayerWriter::pad_columns(Unit& added, double results) const {
  added.padded = results / t();
  added.stops.reads += added.role == Role::query ? 1 : 0;
  added.forward.push_back(memory("zero_pad", 4 * bytes_16 * results, 2));
  added.backward.push_back(memory("zero_pad", 2 * bytes_16 * results, 1));
}

// Adapters in 32 bits without autocast: the input is cast once, what is scaled and added has 32
// bits, and the sum is cast back; the backward pass casts the same tensors the other way.
void LayerWriter::widen_adapter(std::vector<KernelRow>& forward, std::vector<KernelRow>& backward,
                                double inputs, double results) const {
  constexpr double cast = bytes_16 + bytes_32;
  forward.push_back(memory("cast", cast * (inputs + results), 2));
  backward.push_back(memory("cast", cast * (inputs + 2 * results), 3));
  // Beside the cast of each, all but one read of the sum is twice as wide.
  forward.push_back(memory("lora_add_wide", 8 * results, 0));
  backward.push_back(memory("lora_scale_wide", 4 * results, 0));
}

}  // namespace stepsim
