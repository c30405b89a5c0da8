#include "cli/serve/fence.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/screen.hpp"
#include "cli/serve/child.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

std::string absolute_folder(const std::string& folder) {
  std::error_code failed;
  if (!fs::is_directory(folder, failed)) throw UserError({{folder, 0, "", "is no folder"}});
  return fs::canonical(folder).string();
}

// Returns the parts of each catalogue alone, as it may stand in a checkout with other things.
std::vector<std::string> catalogue_folders(const Catalogue& data) {
  std::vector<std::string> folders;
  for (const std::string& folder : data.folders())
    for (const std::string_view part : {"scenarios", "topology", "workloads", "claims", "anchors"})
      folders.push_back(fmt::format("{}/{}", folder, part));
  return folders;
}

}  // namespace

Fence fence_around(const Catalogue& data, const std::vector<std::string>& folders) {
  // The models that other programs keep are left out: those folders were not given.
  Fence fence{.data = Catalogue(mapped(data.folders(), absolute_folder)),
              .folders = mapped(folders, absolute_folder),
              .shut_in = can_shut_in()};
  fence.readable = catalogue_folders(fence.data);
  append(fence.readable, fence.folders);
  try {
    load_simgrid();  // before questions are kept from other files
    fence.player = Player(EngineChoice::automatic);
  } catch (const MachineError& error) {
    say(stderr, "stepsim: note: {}\n", error.what());
  }
  return fence;
}

}  // namespace stepsim
