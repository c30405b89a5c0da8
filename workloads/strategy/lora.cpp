#include "workloads/strategy/lora.hpp"

#include <algorithm>

namespace stepsim {

bool Lora::chooses(std::string_view matrix) const {
  return modules.empty() || std::ranges::any_of(modules, [&](const std::string& name) {
           if (!matrix.ends_with(name)) return false;
           return matrix.size() == name.size() || matrix[matrix.size() - name.size() - 1] == '.';
         });
}

}  // namespace stepsim
