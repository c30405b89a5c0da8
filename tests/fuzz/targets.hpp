// A target is a reader of what people write, as a function of bytes: fuzzers call it, and the kept
// corpus is read by it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/column_file.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim::fuzz {

struct Target {
  std::string_view name;
  // A UserError may come out of it, and nothing else.
  void (*read)(const std::string& bytes);
};
std::span<const Target> file_targets();      // shapes of files, whatever they are about
std::span<const Target> scenario_targets();  // scenarios, the catalogue and files of other programs
std::span<const Target> study_targets();     // tables, claims, sweeps, command lines

// Reads bytes by the target of this name. Throws std::runtime_error when there is none. A message
// that nobody would read to its end is a mistake, too.
void read_by(std::string_view target, const std::string& bytes);

// A file of this process, which the next call with the same name writes over.
std::string as_file(std::string_view name, std::string_view bytes);

// True for one of sixteen inputs: for what takes longer than all else and reads what we wrote.
bool is_turn_of(const std::string& bytes);

// Sound columns with as many changes as the bytes ask for.
std::vector<Column> mutated(std::vector<Column> columns, const std::string& bytes);

inline const Catalogue& data = source_data();

}  // namespace stepsim::fuzz
