#include "scenarios/foreign/deepspeed/deepspeed.hpp"
#include "scenarios/foreign/write/foreign_lines.hpp"
#include "scenarios/foreign/write/writers.hpp"

namespace stepsim {
namespace {

// Keys of stages that the file does not ask for mean nothing there.
bool belongs(const ForeignLines& lines, const DeepSpeedRival& rival) {
  const bool third = lines.is("strategy.zero", "3");
  // Optimizers of other libraries are made by the trainer, and stand in its own file.
  if (rival.theirs == "optimizer.type") return lines.is("strategy.optimizer", "adamw");
  if (rival.theirs.find("stage3_") != std::string_view::npos ||
      rival.theirs.find("sub_group") != std::string_view::npos ||
      rival.theirs.find("zero_hpz") != std::string_view::npos ||
      rival.theirs.find("quantized") != std::string_view::npos ||
      rival.theirs.find("offload_param") != std::string_view::npos)
    return third;
  return rival.theirs.find("torch_adam") == std::string_view::npos;
}

}  // namespace

bool needs_deepspeed_file(const Scenario& scenario) {
  const Sharding kind = scenario.strategy.sharding;
  return !is_fsdp(kind) && kind != Sharding::zero0;
}

std::string deepspeed_text(const Scenario& scenario) {
  ForeignLines lines(scenario);
  lines.say("bf16.enabled", !scenario.strategy.precision.whole());
  for (const DeepSpeedRival& rival : deepspeed_rivals(scenario.data)) {
    const std::string value = lines.value(rival.key);
    if (value.empty() || value == "none" || !belongs(lines, rival)) continue;
    lines.say(rival.theirs, value);
  }
  return json_text(lines);
}

}  // namespace stepsim
