// A run on disk: HDF5, schema versioned, equal bytes for equal input. docs/trace-format.md says
// what stands where.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/column_file.hpp"
#include "sim/trace.hpp"

namespace stepsim {

inline constexpr std::string_view stepsim_version = "0.1.0";
inline constexpr std::uint32_t run_schema_version = 3;

// Returns what an HDF5 file of ours holds, by its attributes; nullopt if another program wrote it.
enum class Stored : std::uint8_t { run, sweep };
std::optional<Stored> stored_in(const ColumnReader& file);
// Throws UserError when it is something else, or was written by an older or a later stepsim.
void require_stored(const ColumnReader& file, const std::string& path, Stored wanted,
                    std::uint32_t schema_version);

// Writes to a temporary name beside `path` and renames, so a half-written run is never seen.
// Throws UserError when the place cannot be written or the disk is full, and std::logic_error when
// the run contradicts itself.
void write_run(const std::string& path, const Run& run);

// Returns whether the file begins like HDF5: it is a saved run then, and not a scenario.
bool is_run_file(const std::string& path);

// The run as it was written, except that memory effects come in order of time, and lane sizes are
// empty when all of them are one. Throws UserError when the file is missing, damaged, no run, or of
// another schema version.
Run read_run(const std::string& path);

// These do the same with what a file would hold. `path` is only a name for messages.
std::string encode_run(const Run& run);
Run decode_run(std::string image, const std::string& path);

}  // namespace stepsim
