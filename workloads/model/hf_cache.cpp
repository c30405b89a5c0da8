#include "workloads/model/hf_cache.hpp"

#include <algorithm>
#include <fstream>
#include <vector>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

bool may_be_in_name(char c) {
  return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.';
}

bool holds_config(const fs::path& folder) {
  std::error_code failed;
  return fs::exists(folder / "config.json", failed);
}

std::string first_word(const fs::path& file) {
  std::ifstream stream(file);
  std::string word;
  stream >> word;
  return word;
}

}  // namespace

bool is_hf_id(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size()) return false;
  if (text.front() == '.' || text.ends_with(".json")) return false;
  const std::string_view name = text.substr(slash + 1);
  std::error_code failed;
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(slash),
                     may_be_in_name) &&
         std::all_of(name.begin(), name.end(), may_be_in_name) && !fs::exists(text, failed);
}

fs::path hf_folder(const fs::path& hub, const std::string& id) {
  const std::size_t slash = id.find('/');
  return hub / ("models--" + id.substr(0, slash) + "--" + id.substr(slash + 1));
}

std::optional<std::string> cached_config(const fs::path& hub, const std::string& id) {
  if (hub.empty()) return {};
  const fs::path folder = hf_folder(hub, id);
  if (const std::string commit = first_word(folder / "refs" / "main"); !commit.empty())
    if (const fs::path snapshot = folder / "snapshots" / commit; holds_config(snapshot))
      return (snapshot / "config.json").string();
  std::vector<fs::path> snapshots;
  std::error_code failed;
  for (const auto& entry : fs::directory_iterator(folder / "snapshots", failed))
    if (holds_config(entry.path())) snapshots.push_back(entry.path());
  if (snapshots.empty()) return {};
  return (*std::max_element(snapshots.begin(), snapshots.end()) / "config.json").string();
}

std::optional<std::string> name_of_snapshot(const fs::path& folder) {
  constexpr std::string_view mark = "models--";
  if (folder.parent_path().filename() != "snapshots") return {};
  const std::string name = folder.parent_path().parent_path().filename().string();
  const std::size_t end_of_org = name.find("--", mark.size());
  if (!name.starts_with(mark) || end_of_org == std::string::npos) return {};
  return name.substr(end_of_org + 2);
}

}  // namespace stepsim
