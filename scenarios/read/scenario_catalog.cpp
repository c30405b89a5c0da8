#include "scenarios/read/scenario_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "sim/base/error.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

namespace fs = std::filesystem;

std::vector<std::string> scenario_names(const Catalogue& data) {
  std::vector<std::string> names;
  std::error_code failed;
  for (const fs::path root : data.places("scenarios"))
    for (fs::recursive_directory_iterator at(root, failed), end; at != end; ++at) {
      const fs::path name = at->path().filename();
      for (const char* no_scenarios : {"recipes", "foreign", "keys"})
        if (name == no_scenarios) at.disable_recursion_pending();
      if (at->path().extension() == ".yaml")
        names.push_back(at->path().lexically_relative(root).replace_extension().generic_string());
    }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string scenario_file(const Catalogue& data, std::string_view name) {
  return data.file(fmt::format("scenarios/{}.yaml", name));
}

namespace {

// Draws and points of a sweep ask for the same names again: one keeps its file while that is there.
struct KnownScenarios {
  std::map<std::string, std::string> files;  // by name
};

}  // namespace

std::string find_scenario(const Catalogue& data, const std::string& path_or_name) {
  const fs::path path(path_or_name);
  std::error_code failed;
  if (path.extension() == ".yaml" || path.extension() == ".yml" || fs::exists(path, failed))
    return path_or_name;
  std::string& file = data.kept<KnownScenarios>().files[path_or_name];
  if (!file.empty() && fs::exists(file, failed)) return file;
  std::vector<std::string> known;
  for (const std::string& name : scenario_names(data)) {
    const std::string last = fs::path(name).filename().string();
    if (path_or_name == name || path_or_name == last) return file = scenario_file(data, name);
    known.push_back(last);
  }
  throw UserError(
      fmt::format("no file and no scenario \"{}\"{}; `stepsim list scenarios` names them",
                  path_or_name, did_you_mean(path_or_name, known)));
}

}  // namespace stepsim
