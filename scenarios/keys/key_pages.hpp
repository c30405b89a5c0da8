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

// This is what key_texts.yaml says of a key.
struct KeyTexts {
  std::string sentence;     // what the value means, and nothing about its default
  std::string otherwise{};  // what leaving it out means, where that is not one fixed value
  std::string example{};    // what the template says; empty: the default
  bool left_out = false;    // of the template: its line there is a comment
};
// `block`: "strategy.offload", "" for the top of the file, "grpo" for the job block of GRPO. Job
// blocks have what stands with either of the two.
const KeyTexts& key_texts(std::string_view block, std::string_view key);
// Returns a file of scenarios/keys/ as it was compiled in.
std::string_view key_asset(std::string_view name);

struct KeyRow {
  std::string_view name, kind;
  std::string sentence;
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
