#include "analysis/studies/fidelity/network_entry.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "sim/base/units.hpp"

namespace stepsim {
namespace {

std::string percent_of(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    parts.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

// Protocols are a list of entries with names, everything else is a mapping.
class EntryText {
 public:
  void add(const std::vector<std::string>& path, const std::string& value) {
    std::size_t same = 0;
    while (same < open_.size() && same + 1 < path.size() && open_[same] == path[same]) ++same;
    open_.resize(same);
    for (; same + 1 < path.size(); ++same) {
      const bool listed = same > 0 && path[same - 1] == "protocols";
      text_ += listed ? fmt::format("{:{}}- name: {}\n", "", 2 * same, path[same])
                      : fmt::format("{:{}}{}:\n", "", 2 * same, path[same]);
      open_.push_back(path[same]);
    }
    text_ += fmt::format("{:{}}{}: {}\n", "", 2 * same, path.back(), value);
  }
  const std::string& text() const { return text_; }

 private:
  std::vector<std::string> open_;
  std::string text_;
};

}  // namespace

std::string place_of_entry(const NetworkFit& fit, const std::string& name) {
  return fmt::format("topology/{}/{}.yaml", fit.network.empty() ? "nodes" : "networks", name);
}

std::string network_entry(const NetworkFit& fit, const std::string& name) {
  const std::string& like = fit.network.empty() ? fit.machine : fit.network;
  const std::string_view head = fit.network.empty() ? "node" : "network";
  std::string text = "# Written by `stepsim fit network`.\n";
  std::vector<std::string> sources;
  for (const FittedSource& source : fit.sources) {
    sources.push_back(source.name);
    text += fmt::format("# {}: {} rows, median error {} as {} has it, {} fitted.\n", source.name,
                        source.rows, percent_of(source.stated), like, percent_of(source.fitted));
  }
  text += fmt::format("name: {}\ntitle: {} as it was measured\nlike: {}\n", name, like, like);
  EntryText entry;
  for (const FittedCost& cost : fit.constants) {
    std::vector<std::string> path = parts_of(cost.stated.name);
    if (!cost.seen || path.front() != head) continue;
    path.erase(path.begin());
    const auto value = [&](double number) { return to_text(number, cost.stated.dimension); };
    entry.add(path, fmt::format("{{value: {}, low: {}, high: {}, grade: fitted, source: \"{}\"}}",
                                value(cost.fitted), value(cost.low), value(cost.high),
                                fmt::join(sources, ", ")));
  }
  return text + entry.text();
}

}  // namespace stepsim
