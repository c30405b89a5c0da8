#include "scenarios/foreign/deepspeed/deepspeed_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Blocks of other parts of DeepSpeed have keys of their own, all of them known.
void take_all(const Table& block) {
  for (const std::string& key : block.keys()) block.has(key);
}

// Notes a key that is not modelled, "pipeline.stages", unless it says what is: one of `usual`.
void note_unmodelled(const Table& table, std::string_view path, std::string_view prefix,
                     const std::vector<std::string>& usual, Notes& notes) {
  const std::size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  if (!table.has(key)) return;
  std::string_view named = key;
  std::string value;
  if (table.is_mapping(key)) {
    const Table block = table.table(key);
    take_all(block);
    if (dot != std::string_view::npos) {
      const std::string_view inner = path.substr(dot + 1);
      if (!block.has(inner)) return;
      named = path;
      value = block.one_line(inner);
    }
  } else {
    value = table.one_line(key);
  }
  std::erase(value, '\'');
  if (!value.empty() && holds(usual, value)) return;
  notes.push_back(fmt::format("{}{}{}{} is not modelled; the result is without it", prefix, named,
                              value.empty() ? "" : ": ", value));
}

void note_table(const Table& facts, const Table& table, std::string_view prefix, Notes& notes) {
  for (const std::string& key : facts.texts("without_effect"))
    if (table.has(key))
      notes.push_back(fmt::format("{}{} changes neither time nor memory here", prefix, key));
  const Table unmodelled = facts.table("not_modelled");
  for (const std::string& path : unmodelled.keys())
    note_unmodelled(table, path, prefix, unmodelled.texts_or(path), notes);
}

// "true", "false", "auto", or nothing when there is no word of it.
std::string switched(const Table& root, std::string_view block) {
  if (!root.is_mapping(block)) return "";
  const Table table = root.table(block);
  take_all(table);
  return table.text_or("enabled", "false");
}

// DeepSpeed ignores keys that it does not have; one that is near to a key of it is a mistake.
void note_unknown(const Table& facts, const Table& root, Notes& notes) {
  std::vector<std::string> known = facts.texts("read");
  append(known, facts.texts("without_effect"));
  for (const std::string& path : facts.table("not_modelled").keys())
    known.push_back(path.substr(0, path.find('.')));
  const Table not_as_hoped = facts.table("not_as_hoped");
  constexpr std::size_t most = 200;  // nobody reads on
  std::size_t count = 0;
  for (const std::string& key : root.keys()) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    root.has(key);
    if (++count > most) continue;
    if (not_as_hoped.has(key)) {
      notes.push_back(fmt::format("{} {}", key, not_as_hoped.text(key)));
      continue;
    }
    if (const std::string near = did_you_mean(key, known); !near.empty())
      root.problem(key, "unknown key" + near);
    else
      notes.push_back(fmt::format("{} is no key of DeepSpeed, which ignores it", key));
  }
  if (count > most)
    notes.push_back(fmt::format("and {} more that are no keys of DeepSpeed", count - most));
}

}  // namespace

bool trains_in_32_bits(const Table& root, bool& half) {
  std::string bf16 = switched(root, "bf16");
  if (bf16.empty()) bf16 = switched(root, "bfloat16");
  const std::string fp16 = switched(root, "fp16");
  if (bf16 == "true" && fp16 == "true")
    root.problem("fp16", "is enabled beside bf16: DeepSpeed takes one of them");
  half = fp16 == "true";
  const auto sixteen_bits = [](const std::string& word) {
    return word == "true" || word == "auto";
  };
  // A file that says nothing of bf16 leaves it to the trainer, which puts in its own
  // (github.com/huggingface/accelerate, DeepSpeedPlugin.set_mixed_precision).
  return !bf16.empty() && !sixteen_bits(bf16) && !sixteen_bits(fp16);
}

Document deepspeed_facts(const Catalogue& data) {
  return read_document(data.file("scenarios/foreign/deepspeed/deepspeed.yaml"));
}

void note_unread(const Table& facts, const Table& root, Notes& notes) {
  note_unknown(facts, root, notes);
  note_table(facts, root, "", notes);
}

void note_unread_of_zero(const Table& facts, const Table& zero, const Strategy& strategy,
                         Notes& notes) {
  const Table own = facts.table("zero_optimization");
  note_table(own, zero, "zero_optimization.", notes);
  if (strategy.sharding == Sharding::zero3) return;
  for (const std::string& key : own.texts("only_at_stage_3"))
    if (zero.has(key))
      notes.push_back(fmt::format("zero_optimization.{} means nothing below stage 3", key));
}

}  // namespace stepsim
