#include "workloads/strategy/stack_operators.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/error.hpp"
#include "workloads/strategy/operators.hpp"

namespace stepsim {

std::vector<std::pair<std::string, std::string>> operators_of_stack(const Table& stack) {
  std::vector<std::pair<std::string, std::string>> own;
  const auto block = stack.table_if("operators");
  if (!block) return own;
  const std::vector<std::string> names(operator_names.begin(), operator_names.end());
  for (const std::string& name : block->keys()) {
    const Table counts = block->table(name);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      block->problem(name, "no operator is called so" + did_you_mean(name, names), Fault::form);
      continue;
    }
    for (const std::string& key : counts.keys())
      own.emplace_back(fmt::format("{}.{}", name, key), counts.one_line(key));
  }
  return own;
}

}  // namespace stepsim
