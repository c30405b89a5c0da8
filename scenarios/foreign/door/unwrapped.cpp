#include "scenarios/foreign/door/unwrapped.hpp"

#include <filesystem>

#include "scenarios/foreign/launch/script_source.hpp"
#include "scenarios/foreign/wrapped/job_file.hpp"
#include "scenarios/foreign/wrapped/modal_program.hpp"
#include "scenarios/foreign/wrapped/notebook.hpp"
#include "scenarios/foreign/wrapped/recipe_lines.hpp"
#include "scenarios/foreign/wrapped/run_record.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {

namespace {

std::string name_of(const std::string& file) {
  return std::filesystem::path(file).filename().string();
}
bool is_makefile(const std::string& file) {
  const std::string name = name_of(file);
  return name == "Makefile" || name == "makefile" || name == "GNUmakefile" || name.ends_with(".mk");
}
bool is_dockerfile(const std::string& file) {
  const std::string name = name_of(file);
  return name.starts_with("Dockerfile") || name.ends_with(".dockerfile") ||
         name.ends_with(".Dockerfile") || name == "Containerfile";
}
bool is_yaml(const std::string& file) {
  return file.ends_with(".yaml") || file.ends_with(".yml");
}

}  // namespace

bool is_wrapping(const std::string& file) {
  if (file.ends_with(".ipynb") || is_makefile(file) || is_dockerfile(file)) return true;
  // A file of several documents of YAML is none that is read as one.
  return is_yaml(file) && is_file(file) && is_job_file(read_text(file));
}

std::optional<WrappedSource> unwrapped(const std::string& data, const std::string& file,
                                       Settings settings) {
  if (file.ends_with(".ipynb"))
    return read_notebook(
        data, file, static_cast<std::size_t>(count_said(settings, launch_setting, "--launch")));
  if (is_makefile(file)) return read_makefile(read_text(file));
  if (is_dockerfile(file)) return read_dockerfile(read_text(file));
  if (file.ends_with(".py")) return read_modal_program(read_text(file), file);
  if (file.ends_with(".json")) return read_run_metadata(read_text(file), file);
  if (!is_yaml(file)) return std::nullopt;
  const std::string text = read_text(file);
  if (auto record = read_run_config(text, file)) return record;
  return read_job_file(data, text, file);
}

}  // namespace stepsim
