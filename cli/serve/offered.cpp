#include "cli/serve/offered.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/door/opened_source.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/machine_error.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

bool is_settings_file(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

// Returns the scenarios' names without the folders that they are in.
std::vector<std::string> offered_names(const Serving& serving) {
  return mapped(scenario_names(serving.data),
                [](const std::string& name) { return fs::path(name).filename().string(); });
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& name : names_in_folder(folder))
    if (is_settings_file(name)) files.push_back((fs::path(folder) / name).string());
  return files;
}

bool is_within(const fs::path& path, const std::vector<std::string>& folders) {
  return std::ranges::any_of(folders, [&](const std::string& folder) {
    const fs::path way = path.lexically_relative(folder);
    return !way.empty() && *way.begin() != "..";
  });
}

bool is_grpo(const Document& content) {
  return content.peek("job.method").value_or("") == "grpo";
}

void require_within(const Serving& serving, const std::string& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (!failed && !is_within(real, serving.readable))
    fail(file, "is a link to a file that is not served");
}

void require_startable(const Serving& serving, const std::string& file) {
  require_within(serving, file);
  const Document content = open_document(file);
  kind_of(content, "");
  if (is_grpo(content)) fail(file, std::string(no_grpo));
}

void add_folder(const Serving& serving, const std::string& folder, Offered& offered) {
  const auto leave_out_what_fails = [&](const auto& act) {
    try {
      act();
    } catch (const UserError& error) {
      offered.left_out.push_back(error.problems().front());
    } catch (const MachineError& error) {
      offered.left_out.push_back({.message = error.what()});
    }
  };
  leave_out_what_fails([&] {
    for (const std::string& file : files_in(folder))
      leave_out_what_fails([&] {
        require_startable(serving, file);
        offered.sources.push_back(file);
      });
  });
}

// Looks at the words of the YAML. A backslash could write any other letter, so none is taken.
bool names_path_outside(const Serving& serving, const std::string& value) {
  constexpr std::string_view between = " \t\r\n,:[]{}\"'";
  if (value.find('\\') != std::string::npos) return true;
  for (std::size_t at = 0; (at = value.find_first_not_of(between, at)) != std::string::npos;) {
    const std::size_t end = std::min(value.find_first_of(between, at), value.size());
    const fs::path word = fs::path(value.substr(at, end - at)).lexically_normal();
    const bool leads_up = !word.empty() && *word.begin() == "..";
    if (leads_up || (word.is_absolute() && !is_within(word, serving.readable))) return true;
    at = end;
  }
  return false;
}

// Refuses settings that name such paths: Landlock keeps files from being read, not from being
// looked at.
void require_no_paths_outside(const Serving& serving, const AskedScenario& asked) {
  for (const auto& [key, value] : asked.settings) {
    if (!serving.shut_in && value.find_first_of("/\\") != std::string::npos)
      throw UserError({{"--set", 0, key, fmt::format("no path is taken: {}", no_landlock)}});
    if (names_path_outside(serving, value))
      throw UserError({{"--set", 0, key, "no path outside what is served is taken"}});
  }
}

}  // namespace

Offered read_offered(const Serving& serving) {
  Offered offered{offered_names(serving)};
  // A GRPO job has no training step to show, and a template is there to be copied.
  std::erase_if(offered.sources, [&](const std::string& name) {
    return name.starts_with("template") ||
           is_grpo(read_document(find_scenario(serving.data, name)));
  });
  for (const std::string& folder : serving.folders) add_folder(serving, folder, offered);
  return offered;
}

void require_served(const Serving& serving, const Question& question, const AskedScenario& asked) {
  require_no_paths_outside(serving, asked);
  const std::string &source = asked.source, folder = fs::path(source).parent_path().string();
  if (holds(question.files, source, &PostedFile::name)) return;
  const std::vector<std::string> offered = offered_names(serving);
  if (holds(offered, source)) return;
  if (holds(serving.folders, folder) && holds(files_in(folder), source))
    return require_within(serving, source);
  throw UserError(
      fmt::format("no scenario \"{}\" is served{}", source, did_you_mean(source, offered)));
}

}  // namespace stepsim
