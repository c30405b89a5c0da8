#include <fmt/format.h>

#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

void say_fsdp(ForeignLines& lines) {
  lines.say("distributed_type", "FSDP");
  lines.say("fsdp_config.fsdp_version", lines.value("strategy.fsdp.version"));
  const bool keeps = lines.is("strategy.fsdp.reshard_after_forward", "false");
  if (lines.is("strategy.fsdp.version", "2"))
    lines.say("fsdp_config.fsdp_reshard_after_forward", !keeps);
  else
    lines.say("fsdp_config.fsdp_sharding_strategy",
              lines.is("strategy.zero", "hsdp") ? (keeps ? "HYBRID_SHARD_ZERO2" : "HYBRID_SHARD")
              : keeps                           ? "SHARD_GRAD_OP"
                                                : "FULL_SHARD");
  lines.say("fsdp_config.fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP");
}

// Returns the program: for preferences with a reference model, or without one, or for rows.
std::string_view program_of(const ForeignLines& lines) {
  if (lines.is("job.method", "kto")) return "kto";
  if (lines.is("job.method", "reward")) return "reward";
  if (!lines.is("job.method", "dpo")) return "sft";
  return lines.is("job.reference_model", "false") ? "orpo" : "dpo";
}

void say_peft(ForeignLines& lines) {
  if (lines.number("strategy.lora.rank") <= 0) return;
  lines.say("use_peft", true);
  if (lines.is("strategy.lora.quantised", "nf4")) lines.say("load_in_4bit", true);
  lines.say("lora_target_modules", lines.is("strategy.lora.targets", "attention")
                                       ? "q_proj k_proj v_proj o_proj"
                                       : "all-linear");
}

}  // namespace

std::string accelerate_text(const Scenario& scenario, const std::string& deepspeed) {
  ForeignLines lines(scenario);
  const std::int64_t nodes = scenario.cluster.nodes;
  lines.say("compute_environment", "LOCAL_MACHINE");
  if (is_fsdp(scenario.strategy.sharding)) {
    say_fsdp(lines);
  } else if (needs_deepspeed_file(scenario)) {
    lines.say("distributed_type", "DEEPSPEED");
    lines.say("deepspeed_config.deepspeed_config_file", deepspeed);
  } else {
    lines.say("distributed_type", "MULTI_GPU");
  }
  lines.say("num_machines", nodes);
  lines.say("num_processes", nodes * std::int64_t{scenario.cluster.gpus_per_node()});
  return yaml_text(lines);
}

std::string trl_text(const Catalogue& data, const Scenario& scenario,
                     const std::string& accelerate) {
  ForeignLines lines(data, scenario, "write/accelerate");
  lines.say("model_name_or_path", lines.model());
  lines.say("gradient_checkpointing", lines.is("strategy.checkpointing", "full"));
  const std::vector<std::string> liger = lines.facts().texts("stacks_with_liger");
  if (holds(liger, lines.value("stack"))) lines.say("use_liger_kernel", true);
  if (lines.is("strategy.cross_entropy", "logits")) lines.say("loss_type", "nll");
  say_peft(lines);
  const double steps = lines.number("job.save.every");
  lines.say("save_strategy", steps > 0 ? "steps" : "no");
  if (steps > 0) lines.say("save_steps", static_cast<std::int64_t>(steps));
  if (steps > 0 && lines.is("job.save.states", "false")) lines.say("save_only_model", true);
  if (lines.is("strategy.optimizer", "adamw") && lines.is("strategy.optimizer_kernels", "foreach"))
    lines.say("optim", "adamw_torch");
  lines.say_mapped();
  return fmt::format("accelerate launch --config_file {} -m trl.scripts.{}{}", accelerate,
                     program_of(lines), argument_text(lines, {}));
}

}  // namespace stepsim
