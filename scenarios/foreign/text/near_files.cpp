#include "scenarios/foreign/text/near_files.hpp"

#include <algorithm>
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

namespace {

namespace fs = std::filesystem;

// Returns whether a path is the folder, or lies in it.
bool lies_in(const fs::path& path, const fs::path& folder) {
  const auto [end, at] = std::mismatch(folder.begin(), folder.end(), path.begin(), path.end());
  (void)at;
  return end == folder.end();
}

fs::path whole_path(const fs::path& path) {
  std::error_code failed;
  const fs::path whole = fs::weakly_canonical(fs::absolute(path, failed), failed);
  return failed ? path : whole;
}

fs::path current_folder() {
  std::error_code failed;
  const fs::path folder = fs::current_path(failed);
  return failed ? fs::path() : folder;
}

}  // namespace

std::string repository_of(const std::string& file) {
  std::error_code failed;
  const fs::path own = whole_path(file).parent_path();
  for (fs::path folder = own; folder.has_relative_path(); folder = folder.parent_path())
    if (fs::exists(folder / ".git", failed)) return folder.string();
  const fs::path here = current_folder();
  return here.has_relative_path() && lies_in(own, here) ? here.string() : own.string();
}

std::optional<std::string> find_in_repository(const std::string& file, const std::string& said) {
  if (said.empty() || said.front() == '/') return std::nullopt;
  const fs::path top = repository_of(file);
  std::vector<fs::path> folders;
  for (fs::path folder = whole_path(file).parent_path(); lies_in(folder, top);
       folder = folder.parent_path()) {
    folders.push_back(folder);
    if (folder == top) break;
  }
  if (const fs::path here = current_folder(); lies_in(here, top)) folders.push_back(here);
  std::error_code failed;
  for (const fs::path& folder : folders)
    for (const fs::path& place : {folder / said, folder / "src" / said, folder / "scripts" / said})
      if (fs::is_regular_file(place, failed) && lies_in(whole_path(place), top))
        return place.lexically_relative(current_folder()).string().starts_with("..")
                   ? place.string()
                   : place.lexically_relative(current_folder()).string();
  return std::nullopt;
}

}  // namespace stepsim
