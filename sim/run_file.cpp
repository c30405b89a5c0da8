// A run is an HDF5 file: its columns, and the version that says how to read them.
#include "sim/run_file.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/run_columns.hpp"

namespace stepsim {
namespace {

#ifdef STEPSIM_VERSION
static_assert(stepsim_version == STEPSIM_VERSION, "CMakeLists.txt and run_file.hpp disagree");
#endif

constexpr std::array<std::string_view, 8> groups{"constants", "ops",   "edges",   "patterns",
                                                 "memory",    "links", "devices", "summary"};

// Returns an attribute of the whole file; nothing where it has none of that name.
template <class T>
std::optional<T> attribute_of(const ColumnReader& file, const std::string& name) {
  Column column{name, ColumnKind::attribute, std::vector<T>{}};
  try {
    file.fill(column);
    return std::get<std::vector<T>>(column.values).at(0);
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

constexpr std::array<std::string_view, 2> stored_names{"run", "sweep"};
std::string_view stored_name(Stored kind) {
  return stored_names[static_cast<std::size_t>(kind)];
}

}  // namespace

std::optional<Stored> stored_in(const ColumnReader& file) {
  if (attribute_of<std::string>(file, "scenario_digest")) return Stored::run;
  if (attribute_of<std::string>(file, "digest")) return Stored::sweep;
  return std::nullopt;
}

void require_stored(const ColumnReader& file, const std::string& path, Stored wanted,
                    std::uint32_t schema_version) {
  const auto found = stored_in(file);
  if (found && *found != wanted)
    fail(path, fmt::format("is a {}, not a {}", stored_name(*found), stored_name(wanted)));
  const auto version = attribute_of<std::uint32_t>(file, "schema_version");
  if (!version)
    fail(path, fmt::format("is damaged or no {}: schema_version: is missing", stored_name(wanted)));
  if (*version == schema_version) return;
  fail(path, fmt::format(
                 "was written by {} stepsim, {}: it has schema version {}, and this one reads "
                 "version {}",
                 *version > schema_version ? "a later" : "an older",
                 attribute_of<std::string>(file, "stepsim_version").value_or("of unknown version"),
                 *version, schema_version));
}

bool is_run_file(const std::string& path) {
  return is_file(path) && is_column_file(read_file(path, column_file_signature.size()));
}

std::string encode_run(const Run& run) {
  return image_of_columns(groups, [&](const ColumnSink& sink) {
    sink({"schema_version", ColumnKind::attribute, std::vector<std::uint32_t>{run_schema_version}});
    sink({"stepsim_version", ColumnKind::attribute, std::vector{std::string(stepsim_version)}});
    write_columns(run, sink);
  });
}

void write_run(const std::string& path, const Run& run) {
  write_file(path, encode_run(run));
}

Run read_run(const std::string& path) {
  return decode_run(read_file(path), path);
}

Run decode_run(std::string image, const std::string& path) {
  if (!is_column_file(image)) fail(path, "is no run: not an HDF5 file");
  try {
    const ColumnReader reader(std::move(image));
    require_stored(reader, path, Stored::run, run_schema_version);
    return read_columns({[&](Column& column) { reader.fill(column); },
                         [&](const std::string& group) { return reader.list(group); }});
  } catch (const UserError&) {
    throw;
  } catch (const std::bad_alloc&) {  // no damage of the file
    throw;
  } catch (const std::exception& error) {
    fail(path, fmt::format("is damaged or no run: {}", error.what()));
  }
}

}  // namespace stepsim
