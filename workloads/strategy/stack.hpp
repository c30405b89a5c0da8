// A software stack is data: what its host thread spends per launch, hook and collective, and how
// much of a kernel's measured best its kernels reach.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/catalog.hpp"
#include "workloads/strategy/job.hpp"
#include "workloads/strategy/operators.hpp"
#include "workloads/strategy/strategy.hpp"

namespace stepsim {

// A kind says what a figure of device memory counts.
enum class MemoryKind : std::uint8_t {
  allocated,  // tensors
  reserved,   // what the allocator holds for them
  device,     // all that the device has lost, as nvidia-smi shows it
  unsaid,     // what is needed: reserved, and libraries
};
inline constexpr auto memory_kind_names = words_through<MemoryKind::device>();

// This says how linear layers run that ranks share. Megatron's run their collectives beside the
// products of the backward pass. DTensor's run them in between, and copy what they collect or
// scatter, since the tokens of a row are no outermost dimension. Others are in between and sum
// whole tensors up.
enum class TensorLayers : std::uint8_t { plain, overlapped, dtensor };
inline constexpr auto tensor_layers_names = words_through<TensorLayers::dtensor>();

// Ways to split a step that users of a stack have.
enum class Split : std::uint8_t { tensor, ring, ulysses, stages, experts };
inline constexpr auto split_names = words_through<Split::experts>();

// A stack's users choose among these: keys of a scenario with their values, and ways to split.
struct StackChoices {
  std::vector<std::pair<std::string, std::vector<std::string>>> keys;
  std::vector<Split> splits;
  std::vector<PipelineSchedule> schedules;  // where stages are among the splits

  friend bool operator==(const StackChoices&, const StackChoices&) = default;
};

struct Stack {
  std::string name, title;
  std::string program{};  // the stack that this one is, but for kernels: what a run of one says of
                          // constants holds for the other
  std::string vendor{};   // of the GPUs that its costs are for; empty: any
  struct HostCosts {
    Constant<Ratio> pace{{1}, {1}, {1}, Grade::guess, ""};  // of the times below, on one machine
    Constant<Seconds> forward_launch;   // one operator of the model, with its modules' code around
    Constant<Seconds> backward_launch;  // the same, run by autograd
    Constant<Seconds> plain_launch;     // one operator out of a loop, with no module around it
    Constant<Seconds> saved_hook;       // an operator whose saved tensors hooks take away
    Constant<Seconds> collective_launch;  // enqueue one collective
    Constant<Seconds> sync;               // read a value back: .item(), nonzero()
    Constant<Seconds> module_call{};      // a module with parameters, beside its operators
    Constant<Seconds> adapter_call{};     // an adapter's modules, beside their operators
    Constant<Seconds> padded_column{};    // of a list of columns that becomes a tensor in each call
    Constant<Seconds> unpack_call{};      // a matrix in 4 bits, beside the kernels that unpack it
    Constant<Seconds> expert_call{};      // routing and sending tokens between ranks, each pass
    Constant<Seconds> expert_kernels{};   // the same where kernels of a library send them
    Constant<Seconds> expert_product{};   // an expert's product of grouped ones, launched by itself
    Constant<Seconds> module_hook;     // ZeRO-3: hooks around a module, with parameters or without
    Constant<Seconds> gather_tensor;   // ZeRO-3: a tensor of a fetch, until it is given up
    Constant<Seconds> gradient_hook;   // per gradient tensor: copy to bucket, bookkeeping
    Constant<Seconds> partition_hook;  // the same under ZeRO-3
    Constant<Seconds> reduce_calls;    // ZeRO: calls around the reduction of one bucket
    Constant<Seconds> shard_group;     // FSDP: state change of one sharded group
    Constant<Seconds> shard_tensor;    // FSDP: the same per tensor of the group
    Constant<Seconds> sub_group;       // ZeRO-3 optimizer: one sub-group
    Constant<Seconds> update_tensor;   // ZeRO-3 optimizer: one tensor
    Constant<Seconds> kept_tensor;     // ZeRO-3 optimizer: one that stays, gathered anew
    Constant<Seconds> clear_visit;     // ZeRO-3 optimizer: one visit of the clear-gradient loop
    Constant<Seconds> count_visit;     // releases that count tensors in each hook: one visit
    Constant<Seconds> repoint;         // stages 1 and 2: point a tensor at its gathered place
    Constant<Seconds> step;            // per optimizer step: data loader, logging, scheduler
    Constant<Seconds> batch;           // make one batch without using it
    Constant<BytesPerSecond> file_write;  // one process, from host memory into a file
    Constant<BytesPerSecond> file_read;
    Constant<Seconds> restart;  // of a job, from a failure until steps go on

    friend bool operator==(const HostCosts&, const HostCosts&) = default;
  } host;
  struct KernelShares {  // of what the GPU's own file says is reached
    Constant<Ratio> gemm, attention, memory, grouped_gemm;

    friend bool operator==(const KernelShares&, const KernelShares&) = default;
  } kernels;
  struct Fusion {
    bool norm = false;  // one kernel instead of six
    bool rope = false;
    bool activation = false;  // SwiGLU in one kernel
    bool in_place = false;    // ... whose gradients take the place of what was saved
    bool residual = false;    // added in the kernel of the norm behind it
    bool permute = false;     // tokens to experts and back in kernels of their own

    friend bool operator==(const Fusion&, const Fusion&) = default;
  } fused;
  CrossEntropy cross_entropy = CrossEntropy::logits;
  bool holds_logits = false;   // the loop has a name for them until the next forward pass
  bool casts_logits = false;   // that name is of a copy in 32 bits
  bool casts_outputs = false;  // outputs of the model are cast to 32 bits behind its forward call
  double loss_chunk = 0;       // tokens of `head_chunks`; 0: an eighth of them
  bool joins_projections = false;  // queries, keys and values are one product, whatever the model
  bool unties_head = false;        // the head is a matrix of its own, whatever the model says
  // Code repeats keys and values for each head before a kernel that could do without.
  bool repeats_heads = false;
  AttentionKernel attention = AttentionKernel::flash;
  // Values that the host reads back before each call of a flash kernel: where documents end.
  int attention_reads = 0;
  // A scenario that does not say `reentrant` has this one: see strategy.hpp.
  bool reentrant = true;
  // Routers have a name for a loss of theirs: what is computed again up to there is not freed.
  bool routers_keep_graph = false;
  // If this is set, recomputation runs in the type of the forward pass also where modules of a
  // library hold that type (Transformer Engine's own checkpointing). PyTorch's runs them in 16
  // bits.
  bool recompute_keeps_type = false;
  TensorLayers tensor_layers = TensorLayers::plain;
  // FSDP: shards are gathered as they are, beside an fp32 copy, and parameters are slices of what
  // came.
  bool fsdp_in_place = false;
  bool matrices_at_once = false;  // whole matrices of a layer in one product: JAX's vmap
  bool fp32_frozen = false;       // FSDP: what adapters leave frozen is kept like what is trained
  struct Adapters {
    bool grouped = false;  // products of all adapters that share a batch, in a grouped kernel
    int reads = 0;         // values that the host reads back for each call of one
    bool shared = true;    // `linear` and `all` have shared experts, too
    // Projections, gate and up, and the experts of a rank, which are one matrix each, have one.
    bool one_beside_joined = false;
    bool casts = false;  // where nothing is sharded they are in 32 bits, under autocast
    // Those of queries, keys and values are put into the columns of one result, unless all three
    // have one: a list of these columns becomes a tensor in each call, for which the host waits.
    bool pads = false;
    bool packs_head = false;  // formats of frozen matrices are those of the head, too
    // Matrices are packed out of fp16, so that what is unpacked is cast to the input's type.
    bool casts_unpacked = false;

    friend bool operator==(const Adapters&, const Adapters&) = default;
  } adapters;
  // The product for a weight's gradient adds to the buffer of all, and hands autograd a tensor
  // without meaning; of matrices in layers there is one for each shape, for good.
  bool gradient_placeholders = false;
  // Between pipeline stages that are not interleaved the host waits for each message.
  bool stops_for_stages = false;
  struct MemoryLog {
    MemoryKind kind = MemoryKind::unsaid;
    bool binary = false;       // its "GB" are 2^30 bytes
    bool first_stage = false;  // of a pipeline; else of the one with least memory left

    friend bool operator==(const MemoryLog&, const MemoryLog&) = default;
  } memory_log;             // what its own log prints
  struct AttentionShares {  // of the rate that the GPU's file gives for a flash kernel
    Constant<Ratio> efficient_forward, efficient_backward;
    Constant<Ratio> masked_forward;  // of the rate of the later kernel
    Constant<Ratio> masked_backward, flex_forward, flex_backward;

    friend bool operator==(const AttentionShares&, const AttentionShares&) = default;
  } attention_shares;    // the same for all stacks: workloads/attention.yaml
  Operators operators;   // the same for all stacks: workloads/operators.yaml
  struct ExpertShares {  // of the rate at which memory streams
    Constant<Ratio> gather, scatter;

    friend bool operator==(const ExpertShares&, const ExpertShares&) = default;
  } expert_shares;  // the same for all stacks: workloads/experts.yaml
  // These are the rates of kernels of layers without attention, as shares of the rate at which
  // memory streams, and of the rate of products where chunks are multiplied.
  struct Mixers {
    Constant<Ratio> convolution, scan_forward, scan_backward, state_space_forward;
    Constant<Ratio> state_space_backward, delta_forward, delta_backward;

    friend bool operator==(const Mixers&, const Mixers&) = default;
  } mixers;  // the same for all stacks: workloads/mixers.yaml
  // Reserved beyond what is allocated, as a share: as long as the same sizes come again and again,
  // and when gathers of many sizes come between.
  Constant<Ratio> allocator_slack, allocator_slack_gathering;
  // Reserved over what requests laid out one after the other say. The value is one; what is known
  // is its range.
  Constant<Ratio> allocator_layout{{1}, {1}, {1}, Grade::guess, ""};
  // Steps that single runs took over those that are simulated: everything takes so many times as
  // long. The value is one; what is known is its range.
  Constant<Ratio> unexplained{{1}, {1}, {1}, Grade::guess, ""};
  // This is what a progress bar shows in the first steps of a run over what it shows of all.
  Constant<Ratio> first_steps{{1}, {1}, {1}, Grade::guess, ""};
  StackChoices choices;

  // Returns how many times as long as simulated everything takes.
  double stretch(const Job& job) const {
    return unexplained.number() * (job.first_steps ? first_steps.number() : 1);
  }

  friend bool operator==(const Stack&, const Stack&) = default;
};

inline constexpr Shelf stack_shelf{"workloads/stacks", "stack"};
Stack read_stack(const Table& table);
Stack::AttentionShares read_attention_shares(const Table& table);
Stack::ExpertShares read_expert_shares(const Table& table);
Stack::Mixers read_mixers(const Table& table);

}  // namespace stepsim
