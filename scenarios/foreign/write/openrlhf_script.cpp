#include <fmt/format.h>

#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

void say_openrlhf_batch(ForeignLines& lines, const Mesh& mesh) {
  const Job& job = lines.scenario().job;
  lines.say("pretrain", lines.model());
  lines.say("max_len", job.sequence);
  lines.say("micro_train_batch_size", job.micro_batch);
  lines.say("train_batch_size", job.micro_batch * job.accumulation * std::int64_t{mesh.data()});
}

void say_openrlhf_saves(ForeignLines& lines) {
  if (lines.number("job.save.every") <= 0) return;
  lines.say("save_steps", lines.value("job.save.every"));
  if (lines.is("job.save.weights", "true")) lines.say("save_hf_ckpt", true);
  if (lines.is("job.save.states", "false")) lines.say("disable_ds_ckpt", true);
}

void say_kernels(ForeignLines& lines) {
  if (lines.is("strategy.checkpointing", "full")) lines.say("gradient_checkpointing", true);
  if (lines.is("strategy.attention", "flash")) lines.say("flash_attn", true);
  if (lines.is("strategy.offload.optimizer", "cpu")) lines.say("adam_offload", true);
  if (lines.is("strategy.zero_optimization.overlap_comm", "true")) lines.say("overlap_comm", true);
  const std::vector<std::string> liger = lines.facts().texts("stacks_with_liger");
  for (const std::string& stack : liger)
    if (lines.is("stack", stack)) lines.say("use_liger_kernel", true);
}

}  // namespace

std::string openrlhf_text(const Catalogue& data, const Scenario& scenario) {
  ForeignLines lines(data, scenario, "write/openrlhf");
  const Mesh mesh = mesh_of(scenario.strategy, scenario.cluster);
  say_openrlhf_batch(lines, mesh);
  lines.say("bf16", true);
  say_kernels(lines);
  say_openrlhf_saves(lines);
  lines.say_mapped();
  const bool pairs = lines.is("job.method", "dpo"), reward = lines.is("job.method", "reward");
  return fmt::format("deepspeed --num_gpus {} --num_nodes {} --module openrlhf.cli.train_{}{}",
                     scenario.cluster.gpus_per_node(), scenario.cluster.nodes,
                     reward  ? "rm"
                     : pairs ? "dpo"
                             : "sft",
                     argument_text(lines, lines.facts().texts("flags")));
}

}  // namespace stepsim
