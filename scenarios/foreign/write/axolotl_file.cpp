#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"

namespace stepsim {
namespace {

void say_method(ForeignLines& lines) {
  if (lines.is("job.method", "reward")) return lines.say("reward_model", true);
  if (!lines.is("job.method", "dpo")) return;
  lines.say("rl", "dpo");
  if (lines.is("job.reference_model", "false")) lines.say("precompute_ref_log_probs", true);
}

void say_optimizer(ForeignLines& lines) {
  const bool plain = lines.is("strategy.optimizer", "adamw");
  if (plain && !lines.is("strategy.optimizer_kernels", "fused"))
    lines.say("optimizer", "adamw_torch");
}

// The way that the scenario says, or that its stack has.
std::string loss_of(const Scenario& scenario) {
  const CrossEntropy way = scenario.strategy.cross_entropy.value_or(scenario.stack.cross_entropy);
  return std::string(cross_entropy_names[static_cast<std::size_t>(way)]);
}

void say_loss(ForeignLines& lines) {
  const std::string way = loss_of(lines.scenario());
  const Table ways = lines.facts().table("losses");
  const bool pairs = lines.is("job.method", "dpo");
  if (pairs && way == "fused") lines.say("dpo_use_liger_kernel", true);
  if (!pairs && ways.has(way)) lines.say(ways.text(way), true);
}

// Axolotl reads keys of Liger with its plugin alone.
void say_liger(ForeignLines& lines) {
  const std::vector<std::string> liger = lines.facts().texts("stacks_with_liger");
  if (std::find(liger.begin(), liger.end(), lines.scenario().stack.name) != liger.end())
    for (const std::string& key : lines.facts().texts("liger")) lines.say(key, true);
  const bool any = std::any_of(lines.lines().begin(), lines.lines().end(),
                               [](const auto& line) { return line.first.starts_with("liger_"); });
  if (any) lines.say("plugins", fmt::format("[{}]", lines.facts().text("liger_plugin")));
}

void say_axolotl_adapter(ForeignLines& lines) {
  if (lines.number("strategy.lora.rank") <= 0) return;
  const bool whole = lines.is("strategy.lora.quantised", "nf4_all"),
             quantised = whole || lines.is("strategy.lora.quantised", "nf4");
  lines.say("adapter", quantised ? "qlora" : "lora");
  if (quantised) lines.say("load_in_4bit", true);
  if (whole) lines.say("quantize_moe_experts", true);
  if (lines.is("strategy.lora.targets", "attention"))
    lines.say("lora_target_modules", "[q_proj, k_proj, v_proj, o_proj]");
  else
    lines.say("lora_target_linear", true);
}

// ZeRO is said in a DeepSpeed file beside this one.
void say_sharding(ForeignLines& lines, const std::string& deepspeed) {
  const std::string kind = lines.value("strategy.zero");
  if (kind == "fsdp" || kind == "hsdp") {
    lines.say("fsdp_version", lines.value("strategy.fsdp.version"));
    lines.say("fsdp_config.reshard_after_forward",
              !lines.is("strategy.fsdp.reshard_after_forward", "false"));
    if (kind == "hsdp") lines.say("dp_replicate_size", lines.value("strategy.fsdp.replicate"));
  } else if (kind != "0") {
    lines.say("deepspeed", deepspeed);
  }
}

}  // namespace

std::string axolotl_text(const Catalogue& data, const Scenario& scenario,
                         const std::string& deepspeed) {
  ForeignLines lines(data, scenario, "write/axolotl");
  lines.say("base_model", lines.model());
  say_method(lines);
  say_sharding(lines, deepspeed);
  if (const Precision& precision = lines.scenario().strategy.precision; precision.whole()) {
    lines.say("bf16", false);
    lines.say("tf32", precision.type == ProductType::tf32);
  }
  lines.say("gradient_checkpointing", lines.is("strategy.checkpointing", "full"));
  say_optimizer(lines);
  say_loss(lines);
  say_liger(lines);
  say_axolotl_adapter(lines);
  lines.say_mapped();
  return yaml_text(lines);
}

}  // namespace stepsim
