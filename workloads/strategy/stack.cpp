#include "workloads/strategy/stack.hpp"

#include <fmt/format.h>

#include "sim/base/words.hpp"
#include "workloads/strategy/defaults.hpp"
#include "workloads/strategy/stack_operators.hpp"

namespace stepsim {
namespace {

Stack::MemoryLog read_memory_log(const Table& table) {
  Stack::MemoryLog log;
  log.kind = read_word<MemoryKind>(table, "counts", memory_kind_names);
  log.binary = table.choice("unit", {"GB", "GiB"}) == "GiB";
  log.first_stage = table.flag_or("first_stage", false);
  table.text("source");
  return log;
}

StackChoices read_choices(const Table& table) {
  StackChoices choices;
  choices.splits = read_members<Split>(table, "splits", split_names, table.texts_or("splits"));
  if (holds(choices.splits, Split::ring) && holds(choices.splits, Split::ulysses))
    table.problem("splits",
                  "ring and ulysses both split sequences: users choose among one of them");
  choices.schedules = read_members<PipelineSchedule>(table, "schedules", pipeline_schedule_names,
                                                     table.texts_or("schedules"));
  for (const std::string& key : table.keys())
    if (key != "splits" && key != "schedules") choices.keys.emplace_back(key, table.values(key));
  return choices;
}

Stack::HostCosts read_host(const Table& host) {
  const auto or_none = [&](std::string_view key) {
    return host.has(key) ? host.constant<Seconds>(key) : Constant<Seconds>{};
  };
  return {.pace = host.has("pace") ? host.constant<Ratio>("pace") : Stack::HostCosts{}.pace,
          .forward_launch = host.constant<Seconds>("forward_launch"),
          .backward_launch = host.constant<Seconds>("backward_launch"),
          .plain_launch = host.constant<Seconds>("plain_launch"),
          .saved_hook = host.constant<Seconds>("saved_hook"),
          .collective_launch = host.constant<Seconds>("collective_launch"),
          .sync = host.constant<Seconds>("sync"),
          .module_call = or_none("module_call"),
          .adapter_call = or_none("adapter_call"),
          .padded_column = or_none("padded_column"),
          .unpack_call = or_none("unpack_call"),
          .expert_call = or_none("expert_call"),
          .expert_kernels = or_none("expert_kernels"),
          .expert_product = or_none("expert_product"),
          .module_hook = host.constant<Seconds>("module_hook"),
          .gather_tensor = host.constant<Seconds>("gather_tensor"),
          .gradient_hook = host.constant<Seconds>("gradient_hook"),
          .partition_hook = host.constant<Seconds>("partition_hook"),
          .reduce_calls = host.constant<Seconds>("reduce_calls"),
          .shard_group = host.constant<Seconds>("shard_group"),
          .shard_tensor = host.constant<Seconds>("shard_tensor"),
          .sub_group = host.constant<Seconds>("sub_group"),
          .update_tensor = host.constant<Seconds>("update_tensor"),
          .kept_tensor = host.constant<Seconds>("kept_tensor"),
          .clear_visit = host.constant<Seconds>("clear_visit"),
          .count_visit = host.constant<Seconds>("count_visit"),
          .repoint = host.constant<Seconds>("repoint"),
          .step = host.constant<Seconds>("step"),
          .batch = host.constant<Seconds>("batch"),
          .file_write = host.constant<BytesPerSecond>("file_write"),
          .file_read = host.constant<BytesPerSecond>("file_read"),
          .restart = host.constant<Seconds>("restart")};
}

// Reads what a stack does with projections, head and loss.
void read_head(const Table& table, Stack& stack) {
  stack.cross_entropy = read_word<CrossEntropy>(table, "cross_entropy", cross_entropy_names);
  stack.holds_logits = table.flag_or("holds_logits", false);
  stack.casts_logits = table.flag_or("casts_logits", false);
  stack.casts_outputs = table.flag_or("casts_outputs", false);
  stack.loss_chunk = static_cast<double>(table.integer_or("loss_chunk", 0, 0, 1 << 20));
  stack.joins_projections = table.flag_or("joins_projections", false);
  stack.unties_head = table.flag_or("unties_head", false);
}

}  // namespace

Stack read_stack(const Table& table) {
  Stack stack;
  stack.name = table.text("name");
  stack.title = table.text("title");
  stack.program = table.text_or("program", stack.name);
  operators_of_stack(table);
  table.text_or("note", "");
  table.texts_or("releases");  // of programs that it runs, which the defaults ask for
  if (table.has("vendor")) stack.vendor = table.choice("vendor", {"amd", "nvidia"});
  read_defaults(table, "");
  stack.host = read_host(table.table("host"));
  const Table kernels = table.table("kernels");
  stack.kernels = {.gemm = kernels.constant<Ratio>("gemm"),
                   .attention = kernels.constant<Ratio>("attention"),
                   .memory = kernels.constant<Ratio>("memory"),
                   .grouped_gemm = kernels.constant<Ratio>("grouped_gemm")};
  const Table fused = table.table("fused");
  stack.fused = {.norm = fused.flag_or("norm", false),
                 .rope = fused.flag_or("rope", false),
                 .activation = fused.flag_or("activation", false),
                 .in_place = fused.flag_or("in_place", false),
                 .residual = fused.flag_or("residual", false),
                 .permute = fused.flag_or("permute", false)};
  read_head(table, stack);
  stack.repeats_heads = table.flag_or("repeats_heads", false);
  stack.reentrant = table.flag_or("reentrant", true);
  stack.routers_keep_graph = table.flag_or("routers_keep_graph", false);
  stack.recompute_keeps_type = table.flag_or("recompute_keeps_type", false);
  if (table.has("tensor_layers"))
    stack.tensor_layers = read_word<TensorLayers>(table, "tensor_layers", tensor_layers_names);
  stack.fsdp_in_place = table.flag_or("fsdp_in_place", false);
  stack.matrices_at_once = table.flag_or("matrices_at_once", false);
  stack.fp32_frozen = table.flag_or("fp32_frozen", false);
  if (const auto adapters = table.table_if("adapters"))
    stack.adapters = {
        .grouped = adapters->flag_or("grouped", false),
        .reads = static_cast<int>(adapters->integer_or("reads", 0, 0, 16)),
        .shared = adapters->flag_or("shared", true),
        .one_beside_joined = adapters->flag_or("one_beside_joined", false),
        .casts = adapters->flag_or("casts", false),
        .pads = adapters->flag_or("pads", false),
        .packs_head = adapters->flag_or("packs_head", false),
        .casts_unpacked = adapters->flag_or("casts_unpacked", false),
    };
  stack.gradient_placeholders = table.flag_or("gradient_placeholders", false);
  stack.stops_for_stages = table.flag_or("stops_for_stages", false);
  if (const auto log = table.table_if("memory_log")) stack.memory_log = read_memory_log(*log);
  if (table.has("attention"))
    stack.attention = read_word<AttentionKernel>(table, "attention", attention_names);
  stack.attention_reads = static_cast<int>(table.integer_or("attention_reads", 0, 0, 16));
  stack.allocator_slack = table.constant<Ratio>("allocator_slack");
  stack.allocator_slack_gathering = table.constant<Ratio>("allocator_slack_gathering");
  if (table.has("allocator_layout"))
    stack.allocator_layout = table.constant<Ratio>("allocator_layout");
  if (const auto choices = table.table_if("choices")) stack.choices = read_choices(*choices);
  if (table.has("unexplained")) stack.unexplained = table.constant<Ratio>("unexplained");
  if (table.has("first_steps")) stack.first_steps = table.constant<Ratio>("first_steps");
  return stack;
}

Stack::AttentionShares read_attention_shares(const Table& table) {
  return {.efficient_forward = table.constant<Ratio>("efficient_forward"),
          .efficient_backward = table.constant<Ratio>("efficient_backward"),
          .masked_forward = table.constant<Ratio>("masked_forward"),
          .masked_backward = table.constant<Ratio>("masked_backward"),
          .flex_forward = table.constant<Ratio>("flex_forward"),
          .flex_backward = table.constant<Ratio>("flex_backward")};
}

Stack::ExpertShares read_expert_shares(const Table& table) {
  return {.gather = table.constant<Ratio>("gather"), .scatter = table.constant<Ratio>("scatter")};
}

Stack::Mixers read_mixers(const Table& table) {
  const auto share = [&](std::string_view key) { return table.constant<Ratio>(key); };
  return {.convolution = share("convolution"),
          .scan_forward = share("scan_forward"),
          .scan_backward = share("scan_backward"),
          .state_space_forward = share("state_space_forward"),
          .state_space_backward = share("state_space_backward"),
          .delta_forward = share("delta_forward"),
          .delta_backward = share("delta_backward")};
}

}  // namespace stepsim
