#include "workloads/stack.hpp"

namespace stepsim {

Stack read_stack(const Table& table) {
  Stack stack;
  stack.name = table.text("name");
  stack.title = table.text("title");
  const Table host = table.table("host");
  stack.host = {.forward_launch = host.constant<Seconds>("forward_launch"),
                .backward_launch = host.constant<Seconds>("backward_launch"),
                .collective_launch = host.constant<Seconds>("collective_launch"),
                .sync = host.constant<Seconds>("sync"),
                .module_hook = host.constant<Seconds>("module_hook"),
                .plain_hook = host.constant<Seconds>("plain_hook"),
                .leaf_tensor = host.constant<Seconds>("leaf_tensor"),
                .gradient_hook = host.constant<Seconds>("gradient_hook"),
                .shard_group = host.constant<Seconds>("shard_group"),
                .shard_tensor = host.constant<Seconds>("shard_tensor"),
                .sub_group = host.constant<Seconds>("sub_group"),
                .clear_visit = host.constant<Seconds>("clear_visit"),
                .repoint = host.constant<Seconds>("repoint"),
                .step = host.constant<Seconds>("step")};
  const Table kernels = table.table("kernels");
  stack.kernels = {.gemm = kernels.constant<Ratio>("gemm"),
                   .attention = kernels.constant<Ratio>("attention"),
                   .memory = kernels.constant<Ratio>("memory"),
                   .grouped_gemm = kernels.constant<Ratio>("grouped_gemm")};
  const Table fused = table.table("fused");
  stack.fused = {.norm = fused.flag_or("norm", false),
                 .rope = fused.flag_or("rope", false),
                 .activation = fused.flag_or("activation", false),
                 .residual = fused.flag_or("residual", false),
                 .cross_entropy = fused.flag_or("cross_entropy", false)};
  stack.allocator_slack = table.constant<Ratio>("allocator_slack");
  return stack;
}

}  // namespace stepsim
