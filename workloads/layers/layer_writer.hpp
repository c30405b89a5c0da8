// Writes the units of one layer. Bytes and kernels of an operator are those of the public model
// code, operator by operator; what a kernel reads and writes more than once is counted as often.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "workloads/layers/units.hpp"

namespace stepsim {

// These are rows of tokens around experts that run together.
struct GroupedRows {
  double routed = 0;   // that the rank's own tokens make
  double sent = 0;     // that arrive at the busiest rank
  double arrived = 0;  // of these, those that travelled: one for each token where it is sent once
  double held = 0;     // there, with those of the ranks that share its experts
  double multiplied = 0;  // with what is padded
  double experts = 0;     // of the rank
  double most = 0;        // that there have been to multiply, which memory is for
};

// Returns the backward pass of an adapter's products and what runs around them: the gradient of
// what it adds is scaled, and that of its input is added to the frozen matrix's. Both are given in
// numbers.
std::vector<KernelRow> adapter_backward(const Operators& all,
                                        const std::vector<KernelRow>& products, double results,
                                        double inputs);

// Stores the unit's first so many matrices in the strategy's format, and unpacks them in each pass.
void pack(Unit& unit, const Stack& stack, const Strategy& strategy, std::size_t matrices);
// Counts the matrix in 16 bits that stands beside its packed one while the unit runs.
void hold_unpacked(Unit& unit, const Stack& stack, const Strategy& strategy, double weights);

struct LayerWriter {
  const Model& model;
  const Stack& stack;
  const Strategy& strategy;
  const Load& load;
  Stack::Fusion fused;
  std::vector<Part> parts;  // of the layer: what its units have to hold
  std::vector<Unit> units;

  double t() const { return load.tokens; }
  bool frozen() const { return strategy.lora.rank > 0; }
  double h() const { return static_cast<double>(model.hidden); }

  // Throws std::logic_error where the model lists none.
  const Part& part(Role role) const;
  bool has(Role role) const;

  KernelRow count(Operator op, double rows, double width = 1, double times = 1) const {
    return counted(stack.operators, op, rows, width, times);
  }
  Unit& unit(Role role, std::string name, std::vector<double> tensors, std::vector<KernelRow> rows);
  // Over all heads a norm of one head comes so many times for each token.
  void norm(Role role, double heads = 1);
  void linear(Role role);
  void adapter(const Part& matrix);
  std::optional<Part> beside_adapter(const Part& matrix) const;
  bool pads(Role role) const;
  void pad_columns(Unit& added, double results) const;
  void widen_adapter(std::vector<KernelRow>& forward, std::vector<KernelRow>& backward,
                     double inputs, double results) const;
  KernelRow lora_add(double numbers) const;
  void residual(Role role, std::string name);

  // Writes attention, a mixer or both, with the norm before and the sum behind.
  void mix_tokens(const LayerKind& kind);
  void attention();
  // Scores that distances add to are in memory, whatever kernel is asked for.
  AttentionKernel kernel() const;
  bool shares_result() const;
  void mixer();
  void feed_forward(bool with_experts);
  void experts(const Experts& e);

  // Returns gate x up and its activation over `rows` tokens.
  KernelRow activation_row(double rows, double width, bool gated) const;
  // Bytes of `rows` that the activation keeps: what it multiplies.
  double activation_bytes(double rows, double width, bool gated) const;
  // These are the roles of a feed-forward block's matrices: of the layer's own, or of its shared
  // expert.
  struct FeedForwardRoles {
    Role gate, up, gate_up, activation, down;
  };
  void dense_ffn(const FeedForwardRoles& roles);

 private:
  std::vector<KernelRow> backward(const std::vector<KernelRow>& forward) const;
  void quantise(Unit& unit, std::size_t matrices) const { pack(unit, stack, strategy, matrices); }
  void quantise_stack(Unit& unit) const;
  void keep_packed_input(Unit& unit, double bytes) const;
  // The last unit needs its input for the gradient of its weights, if they have one.
  void keeps_input(double bytes);
  void project();
  void join_projections();
  void project_latent();
  void index(const Indexer& indexer);
  void core(std::vector<KernelRow> rows);
  void core_in_memory(std::vector<KernelRow> rows);
  void result_norm(Role role);
  KernelRow mixing(Operator op, double numbers, double flops, double share) const;
  KernelRow chunks(Operator op, double flops, double share, double states) const;
  void convolve(double saved);
  Unit& mix(std::string name, std::vector<KernelRow> rows);
  void gated_norm(double saved);
  void short_convolution(const Mixer& m);
  void selective_scan(const Mixer& m);
  void state_space(const Mixer& m);
  void delta_net(const Mixer& m);
  void router(const Experts& e);
  std::vector<KernelRow> round_backward(double rows, double width) const;
  void expert_loop(const Experts& e);
  void sum_of_copies(double routed);
  void loop_over_slices(const Experts& e);
  void routed_experts(const Experts& e);
  void grouped_experts(const Experts& e);
  GroupedRows grouped_rows(const Experts& e) const;
  double most_of(const Experts& e) const;
  bool tight() const;
  bool weighted() const;
  void add_biases(Unit& experts, double rows, double times) const;
  void cut_into_experts(Unit& experts, const std::vector<KernelRow>& products,
                        double columns) const;
  bool sends_once() const;
  KernelRow moved(std::string_view name, double rows) const;
  KernelRow added(std::string_view name, double rows) const;
  KernelRow in_order(const GroupedRows& rows, bool backward) const;
  void dispatch(double routed);
  void combine(const GroupedRows& rows);
  void expert_adapter(double experts, double rows, double width, std::int64_t times);
  void send(Unit& target, const GroupedRows& rows) const;
  static void share_tokens(Unit& experts, double bytes);
  double expert_slots(const Experts& e) const;
  Unit& moe_step(std::string name, std::vector<KernelRow> rows, double exchanged);
  Unit& expert_unit(std::vector<double> tensors, std::vector<KernelRow> rows);
  void tutel_experts(const Experts& e);
  void deepspeed_experts(const Experts& e);
  void all_experts(const Experts& e);
  void gradients_inside(Unit& experts, double rows, double w) const;
  void shared_expert(const Experts& e);
};

}  // namespace stepsim
