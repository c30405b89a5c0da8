#include "scenarios/foreign/door/unwrapped.hpp"

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/door/opened_source.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"
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

// A file with holes is no YAML before something fills them.
void refuse_template(const std::string& text, const std::string& file) {
  std::size_t hole = text.find("{{");
  if (hole == std::string::npos) hole = text.find("{%");
  if (hole == std::string::npos) return;
  try {
    parse_document(text, file);
  } catch (const UserError&) {
    const auto line =
        1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(hole), '\n');
    throw UserError({{file, static_cast<int>(line), "",
                      "is a template: Helm, Jinja or the like fill it in; give the file that comes "
                      "out of that (helm template CHART)"}});
  }
}

// Returns nothing for a text that is no YAML: who reads it next says what is wrong with it.
std::optional<WrappedSource> dialect_of(const Catalogue& data, const std::string& file) {
  std::optional<Document> document;
  try {
    document = open_document(file);
  } catch (const UserError&) {
    return std::nullopt;
  }
  return read_dialect(data, *document);
}

}  // namespace

bool is_wrapping(const std::string& file) {
  if (file.ends_with(".ipynb") || is_makefile(file) || is_dockerfile(file)) return true;
  // A file of several documents of YAML is none that is read as one.
  return is_yaml(file) && is_file(file) && is_job_file(read_text(file));
}

std::optional<WrappedSource> unwrapped(const Catalogue& data, const std::string& file,
                                       Settings settings) {
  if (file.ends_with(".ipynb"))
    return read_notebook(
        data, file, static_cast<std::size_t>(count_said(settings, launch_setting, "--launch")));
  if (is_makefile(file)) return read_makefile(read_text(file));
  if (is_dockerfile(file)) return read_dockerfile(read_text(file));
  if (file.ends_with(".py")) return read_modal_program(read_text(file), file);
  if (!is_yaml(file) && !file.ends_with(".json")) return std::nullopt;
  const std::string text = read_text(file);
  refuse_template(text, file);
  if (file.ends_with(".json")) {
    auto record = read_run_metadata(text, file);
    return record ? std::move(record) : dialect_of(data, file);
  }
  if (auto record = read_run_config(data, text, file)) return record;
  auto job = read_job_file(data, text, file);
  return job ? std::move(job) : dialect_of(data, file);
}

}  // namespace stepsim
