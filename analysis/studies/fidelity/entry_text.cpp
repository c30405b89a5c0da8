#include "analysis/studies/fidelity/entry_text.hpp"

#include <fmt/format.h>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

std::string percent_of(double share) {
  return fmt::format("{:.1f} %", 100 * share);
}

}  // namespace

EntryText::EntryText(std::string_view written_by, const std::string& name, const std::string& like,
                     std::span<const FittedSource> sources) {
  text_ = fmt::format("# Written by `stepsim {}`.\n", written_by);
  for (const FittedSource& source : sources) {
    sources_ += fmt::format("{}{}", sources_.empty() ? "" : ", ", source.name);
    text_ += fmt::format("# {}: {} rows, median error {} as {} has it, {} fitted.\n", source.name,
                         source.rows, percent_of(source.stated), like, percent_of(source.fitted));
  }
  text_ += fmt::format("name: {}\ntitle: {} as it was measured\nlike: {}\n", name, like, like);
}

// Protocols are a list of entries with names, everything else is a mapping.
void EntryText::add(std::string_view name, const std::string& value, const std::string& low,
                    const std::string& high) {
  const std::vector<std::string_view> path = split(name, '.');
  std::size_t same = 0;
  while (same < open_.size() && same + 1 < path.size() && open_[same] == path[same]) ++same;
  open_.resize(same);
  for (; same + 1 < path.size(); ++same) {
    const bool listed = same > 0 && path[same - 1] == "protocols";
    text_ += listed ? fmt::format("{:{}}- name: {}\n", "", 2 * same, path[same])
                    : fmt::format("{:{}}{}:\n", "", 2 * same, path[same]);
    open_.emplace_back(path[same]);
  }
  text_ += fmt::format("{:{}}{}: {{value: {}, low: {}, high: {}, grade: fitted, source: \"{}\"}}\n",
                       "", 2 * same, path.back(), value, low, high, sources_);
}

}  // namespace stepsim
