#include "scenarios/adapter_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/parts.hpp"

namespace stepsim {

std::vector<std::string> matrices_of(const Model& model) {
  std::vector<std::string> names;
  for (std::int64_t layer = 0; layer < model.layers; ++layer)
    for (const Part& part : layer_parts(model, layer))
      if (part.in > 0 && !holds(names, part.name)) names.push_back(part.name);
  return names;
}

void check_adapters(const Table& strategy, const Lora& lora, const Model& model) {
  if (lora.modules.empty()) return;
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

}  // namespace stepsim
