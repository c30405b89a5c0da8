#include "scenarios/observation.hpp"

#include <vector>

namespace stepsim {

double error_against(const Range& range, double value) {
  if (value < range.low) return value / range.low - 1;
  if (value > range.high) return value / range.high - 1;
  return 0;
}

Observation read_observation(const Table& table) {
  Observation observation;
  bool anything = false;
  for (std::size_t i = 0; i < metric_specs.size(); ++i) {
    if (!table.has(metric_specs[i].name)) continue;
    anything = true;
    const auto [low, high] = table.range(metric_specs[i].name, metric_specs[i].dimension);
    if (low <= 0) table.problem(metric_specs[i].name, "must be above zero");
    observation.figures[i] = Range{low, high};
  }
  if (table.has("memory_counts")) {
    const std::vector<std::string> words(memory_kind_names.begin(), memory_kind_names.end());
    const std::string word = table.choice("memory_counts", words);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == word) observation.memory_counts = static_cast<MemoryKind>(i);
    if (!observation.of(Metric::memory)) table.problem("memory_counts", "of which memory?");
  }
  if (table.has("verdict")) {
    anything = true;
    observation.fits = table.choice("verdict", {"fits", "oom"}) == "fits";
  }
  if (const auto bands = table.table_if("bands"))
    for (std::size_t i = 0; i < metric_specs.size(); ++i) {
      const std::string_view name = metric_specs[i].name;
      if (!bands->has(name)) continue;
      if (!observation.figures[i]) bands->problem(name, "belongs to no figure of this block");
      observation.bands[i] = bands->range(name, Dimension::ratio).first;
    }
  observation.source = table.text("source");
  observation.note = table.text_or("note", "");
  if (!anything) table.problem("source", "belongs to no figure: what was observed?");
  return observation;
}

}  // namespace stepsim
