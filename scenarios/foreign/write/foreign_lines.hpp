// Keys of another program with the values that a scenario gives them, before they are a file.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/read/resolved.hpp"
#include "scenarios/scenario.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

class ForeignLines {
 public:
  // `table` is the file of the program's keys below scenarios/foreign/: "write/axolotl".
  ForeignLines(const Catalogue& data, const Scenario& scenario, std::string_view table);

  // Writes for a program whose keys stand in no table.
  explicit ForeignLines(const Scenario& scenario);

  // Returns what the scenario says, by any way, at a key of its own; "": nothing that counts.
  std::string value(std::string_view path) const;
  bool is(std::string_view path, std::string_view value) const {
    return this->value(path) == value;
  }
  double number(std::string_view path) const;  // 0: not set
  // Returns the model by the name that other programs know it by.
  std::string model() const;

  void say(std::string_view key, const std::string& value);
  void say(std::string_view key, std::int64_t value) { say(key, std::to_string(value)); }
  void say(std::string_view key, bool value) { say(key, std::string(value ? "true" : "false")); }
  void say(std::string_view key, const char* value) { say(key, std::string(value)); }
  // The program's word for how products are multiplied; empty: it has none, or they are not narrow.
  std::string precision() const;
  // All keys of the table that say one key of the scenario each, but those that were said before.
  void say_mapped();

  const Scenario& scenario() const { return scenario_; }
  Table facts() const { return facts_.root(); }
  const std::vector<std::pair<std::string, std::string>>& lines() const { return lines_; }

 private:
  const Scenario& scenario_;
  Catalogue data_;
  Document facts_;
  std::vector<ResolvedKey> keys_;
  std::vector<std::pair<std::string, std::string>> lines_;
};

// Writes "training.seq_len" as seq_len in a table [training].
std::string toml_text(const ForeignLines& lines);
// Dots in keys are blocks.
std::string yaml_text(const ForeignLines& lines);
std::string json_text(const ForeignLines& lines);
// Writes "--num-layers 32", one to a line; `flags` are there or not there, without a value.
std::string argument_text(const ForeignLines& lines, const std::vector<std::string>& flags);
// Writes "trainer.nnodes=2", one to a line.
std::string override_text(const ForeignLines& lines);

}  // namespace stepsim
