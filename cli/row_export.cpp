#include "cli/row_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Returns the id as a file may be called everywhere.
std::string file_name(const std::string& id) {
  std::string name = id;
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '.' || c == '_' || c == '-';
    if (!plain) c = '-';
  }
  return name.starts_with('.') ? "-" + name : name;
}

std::string text_of(const PredictedRow& row) {
  std::string text;
  for (const std::string& assumed : row.assumed) {
    std::string line = assumed;
    std::replace(line.begin(), line.end(), '\n', ' ');
    text += fmt::format("# assumed: {}\n", line);
  }
  return text + row.scenario;
}

}  // namespace

std::size_t export_rows(const std::string& folder, std::span<const PredictedRow> rows) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw UserError({{folder, 0, "", "cannot be made: " + failed.message()}});
  std::vector<std::string> taken;
  for (const PredictedRow& row : rows) {
    if (!row.predicted() || row.scenario.empty()) continue;
    const std::string name = file_name(row.id);
    std::string free = name;
    for (int next = 2; holds(taken, free); ++next) free = fmt::format("{}-{}", name, next);
    write_file(fmt::format("{}/{}.yaml", folder, free), text_of(row));
    taken.push_back(free);
  }
  return taken.size();
}

}  // namespace stepsim
