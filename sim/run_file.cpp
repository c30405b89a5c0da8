// A run as an HDF5 file: its columns, and the version that says how to read them.
#include "sim/run_file.hpp"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <stdexcept>
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

struct OtherVersion : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void check_version(const ColumnReader& reader) {
  Column version{"schema_version", ColumnKind::attribute, std::vector<std::uint32_t>{}};
  reader.fill(version);
  const std::uint32_t found = std::get<std::vector<std::uint32_t>>(version.values).at(0);
  if (found != run_schema_version)
    throw OtherVersion(fmt::format("has schema version {}; this stepsim reads version {}", found,
                                   run_schema_version));
}

}  // namespace

bool is_run_file(const std::string& path) {
  std::error_code failed;
  if (!std::filesystem::is_regular_file(path, failed)) return false;  // a pipe would block
  std::ifstream file(path, std::ios::binary);
  std::string head(column_file_signature.size(), '\0');
  return file.read(head.data(), static_cast<std::streamsize>(head.size())) && is_column_file(head);
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
  if (!is_column_file(image)) throw UserError({{path, 0, "", "is no run: not an HDF5 file"}});
  try {
    const ColumnReader reader(std::move(image));
    check_version(reader);
    return read_columns({[&](Column& column) { reader.fill(column); },
                         [&](const std::string& group) { return reader.list(group); }});
  } catch (const OtherVersion& error) {
    throw UserError({{path, 0, "", error.what()}});
  } catch (const std::exception& error) {
    throw UserError({{path, 0, "", fmt::format("is damaged or no run: {}", error.what())}});
  }
}

}  // namespace stepsim
