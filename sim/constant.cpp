#include "sim/constant.hpp"

namespace stepsim {

std::string_view to_text(Grade grade) {
  for (const GradeName& entry : grade_names)
    if (entry.grade == grade) return entry.name;
  return "";
}

}  // namespace stepsim
