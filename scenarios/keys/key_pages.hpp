// A person reads these of the key tables: a template to copy, and a page.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "workloads/strategy/job.hpp"

namespace stepsim {

// Writes a scenario with every key, its sentence and its default. Of `grpo` it has the keys that
// only such a job has.
std::string template_text(Method method);

struct KeyRow {
  std::string_view name, kind, sentence;
  std::string allowed;  // empty: any text
  std::string usual;    // what leaving it out means, or "required"
  std::span<const std::string_view> words;
};
struct KeyGroup {
  std::string block;  // "strategy.offload"
  std::string_view sentence;
  std::vector<KeyRow> rows;

  std::string path(const KeyRow& row) const;  // "strategy.offload.ratio"
};
// Returns every key there is.
std::vector<KeyGroup> key_groups();

// Writes Markdown: a table for each block.
std::string key_page();

}  // namespace stepsim
