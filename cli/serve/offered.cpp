#include "cli/serve/offered.hpp"

#include <fmt/format.h>

#include <filesystem>

#include "cli/tools.hpp"
#include "scenarios/foreign/door/opened_source.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

bool is_settings_file(const fs::path& path) {
  return path.extension() == ".yaml" || path.extension() == ".yml";
}

// Returns the scenarios' names without the folders that they are in.
std::vector<std::string> offered_names(const Serving& serving) {
  return mapped(scenario_names(serving.fence.data),
                [](const std::string& name) { return fs::path(name).filename().string(); });
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  for (const std::string& name : names_in_folder(folder))
    if (is_settings_file(name)) files.push_back((fs::path(folder) / name).string());
  return files;
}

bool is_grpo(const Document& content) {
  return content.peek("job.method").value_or("") == "grpo";
}

void require_within(const Serving& serving, const std::string& file) {
  std::error_code failed;
  const fs::path real = fs::canonical(file, failed);
  if (!failed && !is_within(real, serving.fence.readable))
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

// Refuses settings that name such paths: Landlock keeps files from being read, not from being
// looked at.
void require_no_paths_outside(const Serving& serving, const AskedScenario& asked) {
  for (const auto& [key, value] : asked.settings) {
    if (!serving.fence.shut_in && value.find_first_of("/\\") != std::string::npos)
      throw UserError({{"--set", 0, key, fmt::format("no path is taken: {}", no_landlock)}});
    if (names_path_outside(serving.fence.readable, value))
      throw UserError({{"--set", 0, key, "no path outside what is served is taken"}});
  }
}

}  // namespace

Offered read_offered(const Serving& serving) {
  Offered offered{offered_names(serving)};
  // A GRPO job has no training step to show, and a template is there to be copied.
  std::erase_if(offered.sources, [&](const std::string& name) {
    return name.starts_with("template") ||
           is_grpo(read_document(find_scenario(serving.fence.data, name)));
  });
  for (const std::string& folder : serving.fence.folders) add_folder(serving, folder, offered);
  return offered;
}

void require_served(const Serving& serving, const Question& question, const AskedScenario& asked) {
  require_no_paths_outside(serving, asked);
  const std::string &source = asked.source, folder = fs::path(source).parent_path().string();
  if (holds(question.files, source, &PostedFile::name)) return;
  const std::vector<std::string> offered = offered_names(serving);
  if (holds(offered, source)) return;
  if (holds(serving.fence.folders, folder) && holds(files_in(folder), source))
    return require_within(serving, source);
  throw UserError(
      fmt::format("no scenario \"{}\" is served{}", source, did_you_mean(source, offered)));
}

}  // namespace stepsim
