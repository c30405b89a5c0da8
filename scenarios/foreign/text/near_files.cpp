#include "scenarios/foreign/text/near_files.hpp"

#include <filesystem>
#include <vector>

namespace stepsim {

std::optional<std::string> find_above(const std::string& file, const std::string& said) {
  namespace fs = std::filesystem;
  constexpr int most_folders = 6;
  const fs::path whole = fs::path(said).relative_path().lexically_normal();
  std::vector<fs::path> parts(whole.begin(), whole.end());
  std::error_code failed;
  // A name alone is too little to find a file by.
  for (std::size_t from = 0; from + 1 < parts.size(); ++from) {
    fs::path wanted;
    for (std::size_t i = from; i < parts.size(); ++i) wanted /= parts[i];
    if (parts[from] == "..") continue;
    fs::path folder = fs::path(file).parent_path();
    for (int up = 0; up < most_folders && !(folder.has_root_path() && folder == folder.root_path());
         ++up) {
      if (fs::is_regular_file(folder / wanted, failed)) return (folder / wanted).string();
      if (folder.empty()) break;
      folder = folder.parent_path();
    }
  }
  return std::nullopt;
}

}  // namespace stepsim
