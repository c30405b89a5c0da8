#include "cli/front_options.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

bool holds_data(const std::string& folder) {
  std::error_code failed;
  return std::ranges::any_of(
      std::array{"topology", "workloads", "scenarios", "claims", "anchors"},
      [&](const char* part) { return fs::is_directory(fs::path(folder) / part, failed); });
}

// Returns the user's own data folder as the XDG base directory specification has it; "" where there
// is none.
std::string user_data() {
  const char* config = std::getenv("XDG_CONFIG_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder;
  if (config != nullptr && *config == '/')
    folder = fs::path(config) / "stepsim";
  else if (home != nullptr && *home == '/')
    folder = fs::path(home) / ".config" / "stepsim";
  return !folder.empty() && holds_data(folder.string()) ? folder.string() : "";
}

// Returns the folder where huggingface_hub keeps models.
std::string hub_folder() {
  const auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return fs::path(value == nullptr ? "" : value);
  };
  if (const fs::path hub = variable("HF_HUB_CACHE"); !hub.empty()) return hub.string();
  if (const fs::path own = variable("HF_HOME"); !own.empty()) return (own / "hub").string();
  return (variable("HOME") / ".cache" / "huggingface" / "hub").string();
}

void require_data(const std::string& folder) {
  if (!holds_data(folder))
    throw UserError(
        {{folder, 0, "",
          "has none of the folders topology/, workloads/, scenarios/, claims/ and anchors/"}});
}

}  // namespace

std::string installed_data() {
  std::error_code failed;
  const auto self = fs::read_symlink("/proc/self/exe", failed);
  const auto installed = self.parent_path() / STEPSIM_INSTALL_DATA;
  if (!failed && fs::is_directory(installed / "topology", failed))
    return installed.lexically_normal().string();
  return STEPSIM_SOURCE_DATA;
}

FrontOptions take_front_options(std::vector<std::string>& words) {
  FrontOptions options;
  while (!words.empty()) {
    const std::string word = words.front();
    std::ptrdiff_t taken = 1;
    if (word == "--no-user-data") {
      options.user_data = false;
    } else if (word == "--data" || word.starts_with("--data=")) {
      std::string value = word.size() > 6 ? word.substr(7) : "";
      if (word == "--data" && words.size() > 1) {
        value = words[1];
        taken = 2;
      }
      if (value.empty()) throw UserError("--data: expected a value");
      options.given.push_back(std::move(value));
    } else {
      break;
    }
    words.erase(words.begin(), words.begin() + taken);
  }
  return options;
}

Catalogue catalogue_of(const FrontOptions& options) {
  for (const std::string& folder : options.given) require_data(folder);
  std::vector<std::string> folders;
  std::error_code failed;
  const std::string installed = installed_data();
  // A program that was moved away from its data still runs with a whole catalogue of somebody's.
  if (options.given.empty() || fs::is_directory(fs::path(installed) / "topology", failed)) {
    require_data(installed);
    folders.push_back(installed);
  }
  if (options.user_data)
    if (std::string own = user_data(); !own.empty()) folders.push_back(std::move(own));
  folders.insert(folders.end(), options.given.begin(), options.given.end());
  return Catalogue(std::move(folders), hub_folder());
}

}  // namespace stepsim
