#include "analysis/studies/fidelity/network_entry.hpp"

#include <fmt/format.h>

#include "analysis/studies/fidelity/entry_text.hpp"
#include "sim/base/units.hpp"

namespace stepsim {

std::string place_of_entry(const NetworkFit& fit, const std::string& name) {
  return fmt::format("topology/{}/{}.yaml", fit.network.empty() ? "nodes" : "networks", name);
}

std::string network_entry(const NetworkFit& fit, const std::string& name) {
  const std::string& like = fit.network.empty() ? fit.machine : fit.network;
  const std::string_view head = fit.network.empty() ? "node." : "network.";
  EntryText entry("fit network", name, like, fit.sources);
  for (const FittedCost& cost : fit.constants) {
    const std::string_view stated = cost.stated.name;
    if (!cost.seen || !stated.starts_with(head)) continue;
    const auto value = [&](double number) { return to_text(number, cost.stated.dimension); };
    entry.add(stated.substr(head.size()), value(cost.fitted), value(cost.low), value(cost.high));
  }
  return entry.text();
}

}  // namespace stepsim
