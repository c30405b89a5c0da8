// Experts that run together: tokens are put in the order of their experts, sent to the ranks that
// hold them, multiplied in one kernel per matrix kind, and summed up where they came from.
#include <cmath>
#include <string>

#include "workloads/layers/layer_writer.hpp"
#include "workloads/layers/routing.hpp"

namespace stepsim {
namespace {

constexpr KernelRow no_kernel{"nothing", KernelClass::memory, 0, 0, 0};

KernelRow with_share(KernelRow row, std::string_view name, double share) {
  row.name = name;
  row.share = share;
  return row;
}

// Makes the same products run one expert after the other, with 32-bit numbers.
void multiply_singly(std::vector<KernelRow>& products) {
  for (KernelRow& row : products) {
    row.kind = KernelClass::gemm;
    row.type = ProductType::fp32;
    row.flops /= row.groups;
    row.bytes *= bytes_of(row.type) / bytes_16 / row.groups;
    row.repeats = std::exchange(row.groups, 1);
    row.operators = 0;  // not of modules: the library's loop calls them
  }
}

// Returns the casts of what products read and give, from 16 bits and back.
KernelRow casts_around(const std::vector<KernelRow>& products) {
  double numbers = 0, kernels = 0;
  for (const KernelRow& row : products) {
    numbers += row.repeats * (row.rows * row.depth + row.depth * row.width + row.rows * row.width);
    kernels += 3 * row.repeats;
  }
  KernelRow row = memory("cast", (bytes_16 + bytes_of(ProductType::fp32)) * numbers, kernels);
  row.operators = 0;
  return row;
}

// Returns the skew of what experts keep where they drop: it is less by as much as their shares say.
double kept_skew(const Experts& e, const ExpertStrategy& experts) {
  if (experts.drops_above <= 0 || experts.skew <= 0) return experts.skew;
  const double count = static_cast<double>(e.count);
  const auto spread = [&](double most) {
    double sum = 0, squares = 0;
    for (const double share : expert_shares(e.count, experts.skew)) {
      const double kept = std::min(share, most);
      sum += kept;
      squares += kept * kept;
    }
    return std::sqrt(std::max(0.0, squares * count / (sum * sum) - 1));
  };
  return experts.skew * spread(experts.drops_above / count) / spread(1);
}

}  // namespace

// Kernels written for permuting tokens, as those of MegaBlocks and of Transformer Engine are.
bool LayerWriter::tight() const {
  return fused.permute || strategy.experts.kernel == MoeKernel::megablocks;
}

// Returns the kernel of rows that pass by an index.
KernelRow LayerWriter::moved(std::string_view name, double rows) const {
  return with_share(count(Operator::move_rows, rows, h()), name,
                    tight() ? 1 : stack.expert_shares.gather.number());
}

// Rows that are added to those of their tokens, one number at a time.
KernelRow LayerWriter::added(std::string_view name, double rows) const {
  return tight() ? with_share(count(Operator::add_rows_fused, rows + t(), h()), name, 1)
                 : with_share(count(Operator::add_rows, rows, h()), name,
                              stack.expert_shares.scatter.number());
}

// Megatron-Core's experts: gate and up are one product, and the router's weights are multiplied in
// the activation's kernel, so that nothing is left of them behind the experts.
bool LayerWriter::weighted() const {
  return fused.permute && strategy.experts.kernel == MoeKernel::grouped;
}

// One copy of a token's row goes to each rank that has one of its experts.
bool LayerWriter::sends_once() const {
  return sends_tokens(strategy) && stepsim::sends_once(strategy.experts.dispatcher);
}

// Counts of tokens per expert, their order, and each token's rows behind one another. Kernels that
// send a token once take it from where it is, and bring back sums.
void LayerWriter::dispatch(double routed) {
  const double ranks = static_cast<double>(strategy.experts.parallel);
  const KernelRow sort = count(Operator::sort, routed);
  Unit& result =
      moe_step("mlp.dispatch", {sort, sends_once() ? no_kernel : moved("gather", routed)}, 0);
  result.backward = {sends_once() ? no_kernel : added("gather_backward", routed)};
  result.memory.saved = 8 * routed;
  result.memory.gradient = bytes_16 * t() * h();
  if (!tight()) result.memory.backward = bytes_16 * routed * h();  // before it is added up
  if (sends_tokens(strategy)) result.routes = true;
  // DeepEP and an all-to-all have the host wait for how many rows come.
  if (sends_tokens(strategy) && strategy.experts.dispatcher != Dispatcher::hybridep)
    result.stops.told = 8 * ranks * ranks;
  // Otherwise only kernels that pad or lay out blocks have to know the counts.
  if (!sends_tokens(strategy) && strategy.experts.kernel != MoeKernel::grouped)
    result.stops.reads = 1;
}

// Rows to experts, or back from them, before the unit runs.
void LayerWriter::send(Unit& target, const GroupedRows& rows) const {
  if (!sends_tokens(strategy)) return;
  target.exchange = bytes_16 * rows.sent * h();
  target.once = bytes_16 * t() * h() * rows.sent / rows.routed;
}

// Writes each row times its weight, and the sum over the rows of a token. Eager code does it in 32
// bits.
void LayerWriter::combine(const GroupedRows& rows) {
  const double routed = rows.routed;
  const bool one = tight() || strategy.compiled;
  if (weighted()) {
    const bool sums = !sends_once();
    Unit& result = moe_step("mlp.combine", {sums ? added("scatter_add", routed) : no_kernel}, 0);
    send(result, rows);
    result.backward = {sums ? moved("gather", routed) : no_kernel};
    result.memory.gradient = bytes_16 * (sums ? routed : rows.arrived) * h();
    return;
  }
  const KernelRow weigh = count(one ? Operator::weigh_fused : Operator::weigh, routed, h());
  std::vector<KernelRow> kernels{added("scatter_add", routed)};
  if (!tight()) kernels.insert(kernels.begin(), weigh);
  Unit& result = moe_step("mlp.combine", std::move(kernels), 0);
  send(result, rows);
  // The gradient of the weights is a product of each row with what came back.
  result.backward = {
      moved("gather", routed),
      count(one ? Operator::weigh_backward_fused : Operator::weigh_backward, routed, h())};
  // The product with the weights is one of 32 bits: it keeps a copy of the rows that wide, and its
  // gradient and that of the copy are as wide, also where a compiler has fused the rest.
  const bool wide = !tight();
  result.memory.gradient = bytes_16 * routed * h();
  result.memory.saved = (bytes_16 + (wide ? 4 : 0)) * routed * h();
  result.memory.forward = one ? 0 : 2 * 4 * routed * h();
  result.memory.backward = wide ? 2 * 4 * routed * h() : 0;
}

// Returns what puts rows in place before the products, and as much behind them. PyTorch's grouped
// kernel wants each expert's rows aligned; tokens from several ranks have to be put in order
// anyway. A padded batch is filled and emptied expert by expert, and the gradient of each such
// piece begins with a copy of the whole.
KernelRow LayerWriter::in_order(const GroupedRows& rows, bool backward) const {
  if (strategy.experts.kernel == MoeKernel::padded) {
    const double pieces = 2 * rows.held * h();
    if (backward)
      return count(Operator::pad_backward, pieces + 2 * rows.experts * rows.multiplied * h(), 1,
                   rows.experts);
    KernelRow row = count(Operator::pad, pieces + rows.multiplied * h(), 1, rows.experts);
    row.launches += 1;  // zeros all over, before the first expert
    return row;
  }
  // A row that came once is copied to each of its experts of this rank, and these are summed up
  // behind them.
  if (sends_once())
    return with_share(count(Operator::order_once, rows.arrived + rows.held, h()), "order", 1);
  const bool passes = sends_tokens(strategy) || !tight();
  return passes ? moved("order", rows.held) : no_kernel;
}

// Rows that the busiest rank has had, over those that it has in the mean; padded, every expert has
// as many as the busiest.
double LayerWriter::most_of(const Experts& e) const {
  const ExpertStrategy& experts = strategy.experts;
  const std::int64_t local = e.count / experts.parallel;
  const auto over = [&](std::int64_t groups, double each) {
    const double scale = std::sqrt(each);
    return imbalance(groups, experts.most_skew() / scale) / imbalance(groups, experts.skew / scale);
  };
  double most = 1;
  if (sends_tokens(strategy)) most *= over(experts.parallel, static_cast<double>(local));
  if (experts.kernel == MoeKernel::padded) most *= over(local, 1);
  return most;
}

GroupedRows LayerWriter::grouped_rows(const Experts& e) const {
  const std::int64_t local = e.count / strategy.experts.parallel;
  GroupedRows rows;
  rows.routed = t() * static_cast<double>(e.per_token);
  rows.experts = static_cast<double>(local);
  const ExpertStrategy& experts = strategy.experts;
  rows.sent = rows.routed * kept_share(e.count, experts.skew, experts.drops_above);
  // The busiest rank is waited for. Experts lie side by side on a rank, so what ranks get spreads
  // less than what experts get.
  if (sends_tokens(strategy))
    rows.sent *= imbalance(experts.parallel, kept_skew(e, experts) / std::sqrt(rows.experts));
  if (experts.drops_above > 0) rows.sent = std::min(rows.sent, experts.drops_above * rows.routed);
  rows.held = rows.arrived = rows.sent;
  if (sends_once())
    rows.arrived *= t() / rows.routed *
                    parts_met(e.count, e.per_token, static_cast<double>(strategy.experts.parallel),
                              chosen_groups(e, strategy.experts));
  if (sends_tokens(strategy)) rows.held *= static_cast<double>(expert_tensor_of(strategy));
  rows.multiplied = rows.held;
  constexpr double block = 128;
  if (strategy.experts.kernel == MoeKernel::megablocks)
    rows.multiplied += rows.experts * (block - 1) / 2;
  if (strategy.experts.kernel == MoeKernel::padded)
    rows.multiplied *= imbalance(local, strategy.experts.skew);
  rows.most = most_of(e) * rows.multiplied;
  if (experts.drops_above > 0)
    rows.most = std::min(rows.most, experts.drops_above * rows.routed * rows.held / rows.sent);
  return rows;
}

// Adds biases of the matrices out of experts, times the router's weights: for all at once, or one
// expert after the other.
void LayerWriter::add_biases(Unit& experts, double rows, double times) const {
  experts.forward.push_back(count(Operator::expert_bias, rows, h(), times));
  experts.backward.push_back(count(Operator::expert_bias_backward, rows, h(), times));
}

// Weights are picked by the experts that have tokens, and turned; the gradient of that adds rows to
// zeros. The host reads how many rows each expert has, once for each matrix.
void LayerWriter::cut_into_experts(Unit& experts, const std::vector<KernelRow>& products,
                                   double columns) const {
  for (const KernelRow& row : {casts_around(products), moved("turn", columns)})
    experts.forward.push_back(row);
  for (const KernelRow& row : {casts_around(backward(products)), added("pick_backward", columns)})
    experts.backward.push_back(row);
  experts.stops.reads = static_cast<int>(products.size());
  for (const KernelRow& row : products) experts.looped += 4 * row.repeats;  // with three casts each
}

// Writes one kernel for each matrix of all experts. A packed batch takes them as they are stored;
// single ones are stacked before.
void LayerWriter::grouped_experts(const Experts& e) {
  const GroupedRows rows = grouped_rows(e);
  const double n = rows.experts, w = static_cast<double>(e.width), each = rows.multiplied / n;
  const KernelRow down = grouped_gemm("down", n, each, w, h());
  std::vector<KernelRow> products{grouped_gemm("gate", n, each, h(), w),
                                  grouped_gemm("up", n, each, h(), w), down};
  const double in = e.gated ? 2 : 1;
  if (!e.gated) products.erase(products.begin());
  if (weighted()) products = {grouped_gemm("gate_up", n, each, h(), in * w), down};
  for (KernelRow& row : products) row.ragged = strategy.experts.kernel == MoeKernel::grouped;
  const bool single = strategy.experts.kernel == MoeKernel::single_fp32;
  if (single) multiply_singly(products);
  // Models of single experts are rewritten for grouped kernels, unless the scenario says otherwise.
  const bool separate =
      strategy.experts.layout == ExpertLayout::separate ||
      (strategy.experts.kernel == MoeKernel::padded && !is_fused(e, strategy.experts.layout));
  const KernelRow stacked = separate || single ? moved("stack", (in + 1) * n * w) : no_kernel;
  const double stack_bytes = separate || single ? bytes_16 * (in + 1) * n * h() * w : 0;
  const KernelRow activation = activation_row(rows.multiplied, w, e.gated);

  dispatch(rows.routed);
  std::vector<double> tensors{in * n * h() * w, n * h() * w};
  if (separate) tensors.assign(static_cast<std::size_t>((in + 1) * n), h() * w);
  if (e.bias) tensors.insert(tensors.end(), {in * n * w, n * h()});
  Unit& result = expert_unit(std::move(tensors), {});
  result.forward = {in_order(rows, false), stacked};
  result.forward.insert(result.forward.end(), products.begin(), products.end() - 1);
  result.forward.insert(result.forward.end(), {activation, products.back(), in_order(rows, false)});
  result.backward = backward(products);
  for (const KernelRow& row : backward_of({activation}, stack.operators))
    result.backward.push_back(row);
  for (const KernelRow& row : {stacked, in_order(rows, true), in_order(rows, true)})
    result.backward.push_back(row);
  result.owners = separate ? static_cast<int>((in + 1) * n) : 1;
  if (single) cut_into_experts(result, products, (in + 1) * n * w);
  if (weighted()) {
    const bool singly = stack.host.expert_product.value.value > 0;
    if (singly) result.pieces = static_cast<double>(products.size()) * n;
    if (e.bias) add_biases(result, rows.multiplied, singly ? n : 1);
  }
  result.plain_modules = 1;
  send(result, rows);
  // The products' backward pass needs what was stacked, and its gradient is a stack again.
  result.memory.acted = bytes_16 * rows.most * w;
  result.memory.saved = bytes_16 * rows.most * h() + activation_bytes(rows.most, w, e.gated) +
                        result.memory.acted + stack_bytes;
  gradients_inside(result, rows.most, w);
  result.memory.backward += stack_bytes;
  // PyTorch's grouped kernel takes aligned rows: gradients pass through copies on both sides.
  if (strategy.experts.kernel == MoeKernel::grouped && !tight())
    result.memory.backward += 2 * bytes_16 * rows.most * h();
  // Rows that came have to be told apart once more before a batch can be result of it.
  if (sends_tokens(strategy) && strategy.experts.kernel == MoeKernel::padded)
    result.stops.reads = 1;
  // Tokens that arrive are there beside those that are sent.
  result.memory.forward = sends_tokens(strategy) ? bytes_16 * rows.arrived * h() : 0;
  if (rows.held > rows.sent) share_tokens(result, bytes_16 * rows.held * h());
  if (!separate) quantise_stack(result);
  expert_adapter(n, each, w, 1);
  combine(rows);
}

// Adapters beside the matrices of each expert, in products as the experts' own are: all
// experts of a group at once, or `times` single ones. Or one adapter beside all experts of a rank.
void LayerWriter::expert_adapter(double experts, double rows, double width, std::int64_t times) {
  if (!frozen() || strategy.lora.targets != LoraTargets::all) return;
  const double rank = static_cast<double>(strategy.lora.rank);
  const bool one = stack.adapters.one_beside_joined;
  std::vector<KernelRow> products, sums;
  std::vector<double> tensors;
  const auto beside = [&](double in, double out) {
    const double held = one ? 1 : experts;
    tensors.insert(tensors.end(), {held * in * rank, held * rank * out});
    for (const auto& [from, to] : {std::pair{in, rank}, std::pair{rank, out}})
      products.push_back(times > 1 || one ? gemm("lora", experts * rows, from, to)
                                          : grouped_gemm("lora", experts, rows, from, to));
    sums.push_back(lora_add(experts * rows * out));
  };
  const auto chosen = [&](std::string_view matrix) {
    return strategy.lora.chooses("mlp.experts." + std::string(matrix));
  };
  const bool both = chosen("gate_up_proj");  // where they are one tensor
  const double in = (model.experts->gated && (both || chosen("gate_proj")) ? 1 : 0) +
                    (both || chosen("up_proj") ? 1 : 0),
               out = chosen("down_proj") ? 1 : 0;
  if (in + out == 0) return;
  for (int matrix = 0; matrix < in; ++matrix) beside(h(), width);
  if (out > 0) beside(width, h());
  std::vector<KernelRow> backward;
  if (strategy.compiled && times == 1) {
    // A compiler has the sums in what is around them: the activation reads what both gave, its
    // gradient is written once more, scaled, and parts of the inputs' gradients are added in one
    // go.
    sums = {count(Operator::lora_add_around, experts * rows, in * width + 3 * out * h())};
    backward = backward_of(products, stack.operators);
    backward.push_back(count(Operator::lora_add_around, experts * rows, 3 * width + 4 * out * h()));
  } else {
    const double numbers = experts * rows * (in * width + out * h());  // of the results
    backward = adapter_backward(stack.operators, products, numbers,
                                experts * rows * (in * h() + out * width));
  }
  products.insert(products.end(), sums.begin(), sums.end());
  Unit& result = unit(Role::experts, "mlp.experts.lora", std::move(tensors), std::move(products));
  result.adapter = true;
  result.adapted = 1;
  result.backward = backward;
  result.trained = true;
  result.kind = TensorClass::expert;
  result.times = times;
  result.owners = result.plain_modules = 2 * (static_cast<int>(in) + 1);
  result.in_moe = true;
  result.stops.reads = stack.adapters.reads;
  result.memory.saved = (in + 1) * bytes_16 * experts * rows * rank;
}

// All ranks of an expert multiply all of its tokens with their columns.
void LayerWriter::share_tokens(Unit& experts, double bytes) {
  experts.hand.arrive.push_back({Handover::expert_collect, bytes});
  experts.hand.leave.push_back({Handover::expert_scatter, bytes});
  experts.hand.arrive_back.push_back({Handover::expert_collect, bytes});
  experts.hand.leave_back.push_back({Handover::expert_scatter, bytes});
}

}  // namespace stepsim
