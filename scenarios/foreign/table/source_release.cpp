#include "scenarios/foreign/table/source_release.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "scenarios/read/releases.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

// Package names have no case, and dashes and low lines are one.
std::string plain_name(std::string_view text) {
  std::string name = in_small_letters(std::string(text));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

bool goes_on(char c) {
  return (c >= 'a' && c <= 'z') || is_digit(c) || c == '-' || c == '.';
}

std::string number_at(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string number(text.substr(0, end));
  while (number.ends_with('.')) number.pop_back();
  return is_release(number) ? number : "";
}

// Reads the release after a package's name: quotes, extras in brackets, a sign, a number. Bounds
// from below name no release.
std::string number_behind(std::string_view rest) {
  std::size_t at = 0;
  if (!rest.empty() && rest.front() == '[') at = std::min(rest.find(']'), rest.size() - 1) + 1;
  rest.remove_prefix(at);
  const std::size_t begins = rest.find_first_not_of(" \"'=~^<:v");
  if (begins == std::string_view::npos || begins == 0 || !is_digit(rest[begins])) return "";
  const std::string_view sign = rest.substr(0, begins);
  const bool bound = sign.find('<') != std::string_view::npos;
  const bool said = sign.find_first_of("=^:") != std::string_view::npos;
  return said && (!bound || sign.find('=') != std::string_view::npos)
             ? number_at(rest.substr(begins))
             : "";
}

std::string number_in_line(const std::string& line, const std::string& package) {
  for (std::size_t at = line.find(package); at != std::string::npos;
       at = line.find(package, at + 1)) {
    const std::size_t end = at + package.size();
    if ((at > 0 && goes_on(line[at - 1])) || (end < line.size() && goes_on(line[end]))) continue;
    if (std::string number = number_behind(std::string_view(line).substr(end)); !number.empty())
      return number;
  }
  return "";
}

// A notebook or a script installs what it runs: !pip install trl==0.4.7.
std::string installing_lines(const std::string& text) {
  std::string lines;
  for (const std::string_view line : lines_in(text)) {
    if (line.find("==") != std::string_view::npos && line.find("install") != std::string_view::npos)
      lines += line;
    lines += '\n';
  }
  return lines;
}

}  // namespace

std::optional<FoundRelease> release_in(std::string_view text, const std::string& package) {
  const std::string wanted = plain_name(package), named = fmt::format("name = \"{}\"", wanted);
  int count = 0;
  bool locked = false;  // the line before names the package in a lock file
  for (const std::string_view each : lines_in(text)) {
    ++count;
    const std::string line = plain_name(each);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == std::string::npos || line[first] == '#') continue;
    std::string number = locked && line.starts_with("version")
                             ? number_behind(std::string_view(line).substr(7))
                             : number_in_line(line, wanted);
    locked = line == named;
    if (!number.empty()) return FoundRelease{std::move(number), fmt::format("{}", count)};
  }
  return std::nullopt;
}

std::optional<FoundRelease> release_around(const SourceQuestion& question,
                                           const std::string& program,
                                           const std::vector<std::string>& keys) {
  const std::string key = fmt::format("{}.{}", releases_block, program);
  if (const std::string set = said(question.settings, key); !set.empty())
    return FoundRelease{set, "--release"};
  if (!is_on(question.data, release_shelf, program)) return std::nullopt;
  const std::vector<std::string> packages =
      open_entry(question.data, release_shelf, program).root().texts("packages");
  constexpr std::array files{"requirements.txt", "pyproject.toml",   "uv.lock",  "poetry.lock",
                             "environment.yml",  "environment.yaml", "setup.py", "Dockerfile"};
  constexpr int most_folders = 4;
  constexpr std::uintmax_t most_bytes = 4 << 20;
  std::error_code failed;
  if (fs::is_regular_file(question.file, failed) &&
      fs::file_size(question.file, failed) <= most_bytes) {
    const std::string own = installing_lines(read_text(question.file));
    for (const std::string& package : packages)
      if (auto found = release_in(own, package))
        return FoundRelease{found->release, fmt::format("installed in line {}", found->where)};
  }
  fs::path folder = fs::path(question.file).parent_path();
  for (int up = 0; up < most_folders; ++up, folder = folder.parent_path()) {
    for (const char* name : files) {
      const fs::path file = folder / name;
      if (!fs::is_regular_file(file, failed) || fs::file_size(file, failed) > most_bytes) continue;
      const std::string text = read_text(file.string());
      for (const std::string& package : packages)
        if (auto found = release_in(text, package))
          return FoundRelease{found->release,
                              fmt::format("beside {}:{}", file.filename().string(), found->where)};
    }
    // A repository ends here, and what lies above it is somebody else's.
    if (folder.empty() || folder == folder.root_path() || fs::exists(folder / ".git", failed))
      break;
  }
  if (const auto told = release_with(question.data, program, keys))
    return FoundRelease{*told, "release of its keys"};
  if (question.known != nullptr)
    for (const auto& [other, release] : question.known->releases)
      if (other == program) return FoundRelease{release, question.known->title};
  return std::nullopt;
}

}  // namespace stepsim
