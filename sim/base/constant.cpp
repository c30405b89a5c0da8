#include "sim/base/constant.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepsim {

std::string_view to_text(Grade grade) {
  for (const GradeName& entry : grade_names)
    if (entry.grade == grade) return entry.name;
  return "";
}

std::string value_text(const NamedConstant& constant, double value) {
  if (constant.words.empty())
    return constant.whole ? fmt::format("{:.0f}", value) : to_text(value, constant.dimension);
  const double last = static_cast<double>(constant.words.size() - 1);
  return constant.words[static_cast<std::size_t>(std::clamp(std::round(value), 0.0, last))];
}

}  // namespace stepsim
