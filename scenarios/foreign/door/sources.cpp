#include "scenarios/foreign/door/sources.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/door/opened_source.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "workloads/model/other_models.hpp"

namespace stepsim {
namespace {

// Blames the settings for problems of keys that were set: these are no mistake of the file.
std::vector<Problem> blame_settings(std::vector<Problem> problems, Settings settings) {
  for (Problem& problem : problems)
    for (const auto& [key, value] : settings)
      if (problem.key == key) {
        problem.file = "--set";
        problem.line = 0;
      }
  return problems;
}

// Returns the text in quotes of YAML, whatever it holds.
std::string escaped(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f || c == '"' || c == '\\')
      result += fmt::format("\\x{:02x}", byte);
    else
      result += c;
  }
  return result + '"';
}

// Keeps what the launch's environment says of PyTorch's allocator.
void keep_allocator(const SourceQuestion& question, Translation& translation) {
  if (question.launch == nullptr) return;
  for (const std::string name : {"PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF"}) {
    const auto place = question.launch->environment.find(name);
    if (place == question.launch->environment.end()) continue;
    const ShellWord& said = place->second;
    if (said.text.find("expandable_segments:True") != std::string::npos &&
        !question.decides("strategy.expandable_segments"))
      translation.lines.push_back(
          {"strategy.expandable_segments", "true", name, said.line, "of the launch's environment"});
  }
}

// Tells that a run alone knows how many nodes or GPUs the launcher is told.
void tell_unknown_counts(const SourceQuestion& question, Translation& translation) {
  if (question.launch == nullptr) return;
  for (const UnknownCount& each : question.launch->unknown) {
    if (question.decides(each.nodes ? "cluster.nodes" : "cluster.gpus_per_node")) continue;
    const std::string set =
        each.word.variable.empty() ? "" : fmt::format("--set {}=N or ", each.word.variable);
    translation.assumptions.push_back(
        {each.nodes ? "number of nodes" : "GPUs of each node",
         each.nodes ? "1" : "as if that were not said",
         fmt::format("{} depends on {}", each.option, each.word.unknown),
         set + (each.nodes ? "--nodes N" : "--set cluster.gpus_per_node=N")});
  }
}

// What a script says beside the program that it starts has no line in that, and is no less said.
void name_arguments(const SourceQuestion& question, Translation& translation) {
  if (question.launch == nullptr) return;
  std::vector<std::string> said;
  for (const ShellWord& word : question.launch->arguments)
    if (word.text.starts_with("--"))
      said.push_back(low_lined(word).text.substr(2, word.text.find('=') - 2));
  for (TranslatedLine& line : translation.lines)
    if (line.line == 0 && holds(said, line.key) && !holds(translation.set, line.key))
      line.key.insert(0, "--");
}

// Lines of a notebook are those of its cells: "max_length of code cell 3, line 2".
void name_cells(const std::vector<CodeCell>& cells, Translation& translation) {
  if (cells.empty()) return;
  for (std::string& note : translation.notes) note = with_cells(cells, note);
  for (Assumption& each : translation.assumptions) each.why = with_cells(cells, each.why);
  for (TranslatedLine& line : translation.lines) {
    line.remark = with_cells(cells, line.remark);
    const CodeCell* cell = cell_of(cells, line.line);
    if (cell == nullptr || line.key.empty()) continue;
    line.key += fmt::format(" of code cell {}", cell->number);
    line.line -= cell->first_line - 1;
  }
  for (SourceKey& key : translation.keys) {
    if (key.line <= 0) continue;
    key.remark = place_text(cells, key.line) + (key.remark.empty() ? "" : ": " + key.remark);
    key.line = 0;
  }
}

// A file is recognised by few keys: where most of the others mean nothing to that program, it is of
// somebody's own, and defaults of the program would be taken for it in silence.
void refuse_foreign_keys(const OpenedSource& opened, const SourceQuestion& question,
                         const Translation& translation) {
  constexpr std::size_t many = 5;
  if (opened.script || !said(question.settings, source_kind_setting).empty()) return;
  std::vector<std::string> strange;
  for (const SourceKey& key : translation.keys)
    if (key.fate == KeyFate::unknown) strange.push_back(key.key);
  const std::size_t all = translation.keys.size();
  if (strange.size() < many || 2 * strange.size() <= all) return;
  const std::size_t number = strange.size();
  strange.resize(many);
  throw UserError(
      {{opened.file, 0, "",
        fmt::format("looks like {}, but {} of its {} keys are none of that program's ({}, ...): "
                    "settings of a program of your own are read with it: give the program, or the "
                    "script that starts it; --from {} reads the file all the same",
                    opened.kind->title, number, all, fmt::join(strange, ", "),
                    opened.kind->name)}});
}

std::optional<Translation> translated(const Catalogue& data, const std::string& file,
                                      Settings settings) {
  OpenedSource opened = open_source(data, file, settings);
  if (opened.kind->translate == nullptr) {
    for (const std::string_view key : {set_tokens_setting, set_samples_setting})
      if (!said(settings, key).empty())
        throw UserError(
            "--tokens and --samples-in-set are for files of other programs: a scenario says "
            "job.tokens or job.samples");
    return std::nullopt;
  }
  SourceQuestion question{.data = data, .file = opened.file, .settings = settings};
  question.variables = settle_variables(opened.document);
  question.set_tokens = count_said(settings, set_tokens_setting, "--tokens");
  question.set_samples = count_said(settings, set_samples_setting, "--samples-in-set");
  if (question.set_tokens > 0 && question.set_samples > 0)
    throw UserError(
        "--tokens and --samples-in-set: both say how much data there is, say one of them; rows "
        "that are not packed are counted by --samples-in-set");
  if (opened.script) {
    question.script = file;
    question.shell = &opened.script->script;
    question.launch = &opened.script->launch;
    question.earlier = opened.script->earlier;
    question.known = opened.known ? &*opened.known : nullptr;
    const std::string& program = opened.script->launch.program;  // a file, or a module: a.b
    const bool named =
        program.ends_with(".py") || (program.find('.') != std::string::npos &&
                                     program.find_first_of("/ ") == std::string::npos);
    question.own_program = named && !is_called(*opened.kind, opened.script->launch);
  }
  try {
    refuse_unknown(question, opened);
    Translation translation = opened.kind->translate(question, opened.document);
    refuse_foreign_keys(opened, question, translation);
    for (const auto& [key, value] : question.settings) translation.set.push_back(key);
    name_arguments(question, translation);
    keep_allocator(question, translation);
    tell_unknown_counts(question, translation);
    for (const UnknownArgument& each : opened.unknown)
      translation.keys.push_back(
          {each.key, each.word.line, KeyFate::without_effect, "not known without a run"});
    if (opened.script)
      translation.notes.insert(translation.notes.begin(), opened.script->notes.begin(),
                               opened.script->notes.end());
    name_cells(opened.cells, translation);
    return translation;
  } catch (const UserError& error) {
    throw UserError(blame_settings(mapped(error.problems(),
                                          [&](const Problem& problem) {
                                            return problem.file == file
                                                       ? in_cell(opened.cells, problem)
                                                       : problem;
                                          }),
                                   settings));
  }
}

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

bool is_script(const std::string& file) {
  return file.ends_with(".py") || is_shell_script(file) || is_wrapping(file);
}

Document content_of(const std::string& file) {
  if (!is_script(file)) return open_document(file);
  Document document = parse_document("{}", file);
  document.set("script", escaped(read_text(file)));
  return document;
}

void refuse_diffusion(const Catalogue& data, const std::string& file) {
  constexpr std::uintmax_t longest = 1U << 20U;
  std::error_code failed;
  if (const auto size = std::filesystem::file_size(file, failed); failed || size > longest) return;
  // A line that is longer than people write is data: images of a notebook.
  constexpr std::size_t longest_line = 2000;
  const std::string whole = read_text(file);
  std::string text;
  const bool notebook = file.ends_with(".ipynb");
  bool written = !notebook;  // names of cells, and what they show, are nobody's words
  for (const std::string_view line : lines_in(whole)) {
    const auto has = [&](std::string_view key) { return line.find(key) != std::string_view::npos; };
    if (notebook && (has("\"outputs\":") || has("\"metadata\":"))) written = false;
    if (has("\"source\":")) written = true;
    if (line.size() <= longest_line && written) text += line;
    text += '\n';
  }
  if (const auto found = diffusion_in(data, text))
    throw UserError({{file, found->line, "", found->message}});
}

std::optional<Translation> translate_source(const Catalogue& data, const std::string& file,
                                            Settings settings) {
  try {
    return translated(data, file, settings);
  } catch (const UserError&) {
    refuse_diffusion(data, file);
    throw;
  }
}

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
