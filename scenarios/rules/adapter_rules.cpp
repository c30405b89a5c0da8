#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/rules/rules.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/parts.hpp"
#include "workloads/program/visits.hpp"

namespace stepsim {

std::vector<std::string> matrices_of(const Model& model) {
  std::vector<std::string> names;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Part& part : layer_parts(model, layer))
      if (part.in > 0 && !holds(names, part.name)) names.push_back(part.name);
  return names;
}

namespace {

void check_modules(const Table& strategy, const Lora& lora, const Model& model) {
  const std::vector<std::string> names = matrices_of(model);
  for (const std::string& module : lora.modules) {
    const Lora one{.modules = {module}};
    if (std::ranges::any_of(names, [&](const std::string& name) { return one.chooses(name); }))
      continue;
    const std::vector<std::string> last =
        mapped(names, [](const std::string& name) { return name.substr(name.rfind('.') + 1); });
    strategy.table("lora").problem(
        "modules", fmt::format("{} has no matrix \"{}\"{}; there are {}", model.name, module,
                               did_you_mean(module, last), fmt::join(names, ", ")));
  }
}

bool trains_something(StepInput input, LoraTargets targets) {
  input.strategy.lora.targets = targets;
  const ModelUnits units = units_of(input, LayersWith::units_once);
  return std::ranges::any_of(units.layers, [](const std::vector<Unit>& layer) {
    return std::ranges::any_of(layer, [](const Unit& unit) { return unit.trained_elements() > 0; });
  });
}

}  // namespace

void check_adapters(const Table& strategy, const Scenario& scenario) {
  const Lora& lora = scenario.strategy.lora;
  if (lora.rank == 0) return;
  check_modules(strategy, lora, scenario.model);
  if (lora.kernels == AdapterKernels::fused && lora.method.name != "lora")
    strategy.table("lora").problem(
        "kernels", fmt::format("fused: functions around adapters know LoRA alone, and method is {}",
                               lora.method.name));
  const StepInput input = step_input(scenario);
  if (!strategy.sound() || trains_something(input, lora.targets)) return;
  std::vector<std::string> others;
  for (std::size_t i = 0; i < lora_targets_names.size(); ++i)
    if (trains_something(input, static_cast<LoraTargets>(i)))
      others.emplace_back(lora_targets_names[i]);
  const std::string_view word = lora_targets_names[static_cast<std::size_t>(lora.targets)];
  const std::string called =
      lora.modules.empty() ? "" : fmt::format(" called {}", fmt::join(lora.modules, " or "));
  strategy.table("lora").problem(
      "targets",
      fmt::format("{} gives no matrix of {}{} an adapter{}; there are {}", word,
                  scenario.model.name, called, others.empty() ? "" : "; expected " + one_of(others),
                  fmt::join(matrices_of(scenario.model), ", ")));
}

}  // namespace stepsim
