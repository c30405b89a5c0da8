#include "scenarios/foreign/door/opened_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <set>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/foreign/programs/trl/python_source.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/text/near_files.hpp"
#include "scenarios/foreign/text/relaxed_json.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

// Finds a file beside the script, or from here.
std::optional<std::string> find_file_beside(const std::string& script, const std::string& text) {
  const std::filesystem::path folder = std::filesystem::path(script).parent_path(), said(text);
  std::error_code failed;
  for (const auto& place : {folder / said, said, folder / said.filename()})
    if (std::filesystem::is_regular_file(place, failed)) return place.string();
  return find_above(script, text);
}

// Finds a file from a folder that the script enters: `cd "$HERE/LLaMA-Factory"` is known by its
// last parts.
std::optional<std::string> find_where_entered(const ShellScript& read, const std::string& said) {
  for (const ShellCommand& command : read.commands) {
    if (command.words.size() != 2 || command.words[0].text != "cd") continue;
    std::string folder = std::filesystem::path(command.words[1].text).relative_path().string();
    while (!folder.empty()) {
      if (auto file = find_in_repository(read.file, fmt::format("{}/{}", folder, said)))
        return file;
      const std::size_t slash = folder.find('/');
      folder = slash == std::string::npos ? "" : folder.substr(slash + 1);
    }
  }
  return std::nullopt;
}

// The program's facts say how one gets at files that come with it, and where they lie in its own
// repository, by names without an ending.
std::string file_beside(const ShellScript& read, const ShellWord& word, const Table& facts) {
  const std::string& script = read.file;
  const std::string own = facts.text_or("own_files", "");
  if (!word.unknown.empty())
    throw UserError({{script, word.line, "",
                      fmt::format("the name of the file of settings {}",
                                  unknown_argument_message({"1", word}))}});
  if (auto file = find_file_beside(script, word.text)) return *file;
  if (auto file = find_where_entered(read, word.text)) return *file;
  if (facts.has("own_folder"))
    if (auto file = find_in_repository(
            script, fmt::format("{}/{}.yaml", facts.text("own_folder"), word.text)))
      return *file;
  const std::filesystem::path place = std::filesystem::path(script).parent_path() / word.text;
  throw UserError({{script, word.line, "",
                    fmt::format("no file {}, which the training is read from{}{}", place.string(),
                                own.empty() ? "" : "; ", own)}});
}

// Returns what the file of settings is that a Python file is given: "scripts/dpo.py --config
// F.yaml", "src/train.py F.yaml". Null where it is nothing that a program is given.
const SourceKind* kind_of_given(const std::string& script, const Launch& launch) {
  if (!launch.program.ends_with(".py")) return nullptr;
  const Arguments arguments = named_arguments(launch.arguments, script);
  const Table root = arguments.document.root();
  const std::string said = root.has("config") && !root.one_line("config").starts_with('[')
                               ? root.text_or("config", "")
                           : arguments.others.empty() ? ""
                                                      : arguments.others.front().text;
  if (!said.ends_with(".yaml") && !said.ends_with(".yml")) return nullptr;
  const auto file = find_file_beside(script, said);
  if (!file) return nullptr;
  try {
    const SourceKind* kind = &kind_of(open_document(*file), "");
    return kind->takes_file ? kind : nullptr;
  } catch (const UserError&) {  // another program's, and the launch is none that is read here
    return nullptr;
  }
}

// Returns what the table of a kind says of its keys; a kind without one knows them in its reader.
Document facts_of(const Catalogue& data, const SourceKind& kind) {
  return kind.table.empty() ? parse_document("{}", "") : import_facts(data, kind.table);
}

// Returns key=value, +key=value and ++key=value as arguments.
std::vector<ShellWord> words_as_arguments(std::vector<ShellWord> words) {
  for (ShellWord& word : words) {
    const std::size_t from = word.text.find_first_not_of('+');
    if (from == std::string::npos || word.text[from] == '-' ||
        word.text.find('=') == std::string::npos)
      continue;
    word.text = fmt::format("--{}", word.text.substr(from));
  }
  return words;
}

// The file of settings that a program is given: by an option, or by a word of its own.
std::optional<ShellWord> named_file(const SourceKind& kind, const Table& arguments,
                                    const std::vector<ShellWord>& words) {
  if (!kind.takes_file) return std::nullopt;
  if (!kind.file_option.empty() && arguments.has(kind.file_option))
    return ShellWord{.text = arguments.text(kind.file_option),
                     .line = arguments.origin(kind.file_option)->line};
  const bool by_option = !kind.first_word.empty() || (kind.sets_keys && !kind.file_option.empty());
  return words.empty() || by_option ? std::nullopt : std::optional(words.front());
}

// A Python file that a script starts, or writes with a here-document.
struct PythonText {
  std::string text, file;
  int first_line = 1;
};

// Finds the program of a launch in the folders of the script's repository: "$HERE/train/sft.py" is
// known by its last parts, a module by its path.
std::optional<std::string> find_program(const std::string& script, std::string program) {
  if (!program.ends_with(".py")) {
    if (program.find_first_of("/ ") != std::string::npos) return std::nullopt;
    std::replace(program.begin(), program.end(), '.', '/');
    if (auto file = find_in_repository(script, program + "/__main__.py")) return file;
    program += ".py";
  }
  std::string tail = std::filesystem::path(program).lexically_normal().relative_path().string();
  while (true) {
    if (auto file = find_in_repository(script, tail)) return file;
    const std::size_t slash = tail.find('/');
    if (slash == std::string::npos) return std::nullopt;
    tail = tail.substr(slash + 1);
  }
}

std::optional<PythonText> python_of(const std::string& script, const Launch& launch,
                                    const ShellScript& read) {
  if (const ShellFile* written = written_file(read, launch.program))
    return PythonText{written->text, script, written->line};
  auto file = find_program(script, launch.program);
  if (!file && launch.program.ends_with(".py")) file = find_where_entered(read, launch.program);
  return file ? std::optional(PythonText{read_text(*file), *file}) : std::nullopt;
}

std::optional<PythonTraining> python_training(const Catalogue& data, const PythonText& python,
                                              const Launch& launch, Settings settings) {
  PythonQuestion question{
      .data = data, .file = python.file, .first_line = python.first_line, .near = python.file};
  for (const auto& [key, value] : settings_of_source(settings)) question.given[key] = value;
  for (const auto& [key, word] : launch.environment)
    if (word.unknown.empty()) question.environment[key] = word.text;
  if (launch.gpus) question.processes = *launch.gpus * launch.nodes.value_or(1);
  const Arguments arguments = named_arguments(launch.arguments, python.file);
  const Table said = arguments.document.root();
  for (const std::string& key : said.keys()) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '-', '_');
    if (!said.one_line(key).starts_with('['))
      question.said[name] = said.text_or(key, "");
    else
      question.lists[name] = said.texts(key);
  }
  for (const UnknownArgument& each : arguments.unknown) {
    std::string name = each.key;
    std::replace(name.begin(), name.end(), '-', '_');
    question.unsaid[name] = {.text = each.word.unknown,
                             .variable = each.word.variable.empty() ? name : each.word.variable};
  }
  // Hydra takes key=value, +key=value and ++key=value.
  for (const ShellWord& word : arguments.others) {
    const std::size_t from = word.text.find_first_not_of('+'), sign = word.text.find('=');
    if (word.unknown.empty() && sign != std::string::npos && from < sign)
      question.said[word.text.substr(from, sign - from)] = word.text.substr(sign + 1);
  }
  auto training = read_python_training(python.text, question);
  if (!training) return std::nullopt;
  if (launch.gpus) training->launch.gpus = launch.gpus;
  if (launch.program.empty()) return training;
  // The script's launch overrules what the file would do by itself.
  training->launch.arguments = launch.arguments;
  training->launch.environment = launch.environment;
  training->launch.options = launch.options;
  training->launch.alone = launch.alone;
  const bool several = !launch.file.text.empty() || launch.nodes;
  if (several && !training->launch.why_gpus.empty()) training->launch.gpus.reset();
  if (several || launch.gpus) training->launch.why_gpus.clear();
  if (launch.gpus) training->launch.gpus = launch.gpus;
  if (launch.nodes) training->launch.nodes = launch.nodes;
  training->launch.gpu = launch.gpu;
  training->launch.queue = launch.queue;
  training->launch.unknown = launch.unknown;
  if (!launch.file.text.empty()) training->launch.file = launch.file;
  return training;
}

// Returns the table of the kind, or of the program where that one is known.
Document facts_of(const Catalogue& data, const OpenedSource& opened) {
  return opened.known ? import_facts(data, opened.known->table) : facts_of(data, *opened.kind);
}

// A model is known by the last part of its path, wherever that lies: "$MODELS/Qwen3-8B".
void name_models(const Table& facts, OpenedSource& opened) {
  const std::vector<std::string> keys = facts.texts_or("names_model");
  std::erase_if(opened.unknown, [&](const UnknownArgument& each) {
    const std::string& tail = each.word.tail;
    const std::size_t last = tail.find_last_not_of('/');
    const std::size_t slash = last == std::string::npos ? last : tail.rfind('/', last);
    if (slash == std::string::npos || !holds(keys, each.key)) return false;
    opened.document.set(each.key, yaml_quoted(tail.substr(slash + 1, last - slash)));
    return true;
  });
}

// A file of DeepSpeed that the script writes stands where its name was.
void put_written_deepspeed(const std::string& script, OpenedSource& opened) {
  constexpr std::string_view key = "deepspeed";
  const Table root = opened.document.root();
  if (!root.has(key) || root.is_mapping(key)) return;
  const ShellFile* written = written_file(opened.script->script, root.text_or(key, ""));
  if (written == nullptr) return;
  std::string text = with_bare_numbers(without_comments(written->text, script));
  parse_document(in_line(written->line, text), script);  // says what is wrong with it, and where
  std::replace(text.begin(), text.end(), '\n', ' ');
  opened.document.set(key, text);
}

// Puts each value of the arguments where the file has it, beside what else the file says there.
void set_leaves(const Table& told, const SourceKind& kind, const std::string& path,
                Document& settings_file) {
  for (const std::string& key : told.keys()) {
    const std::string own = path.empty() ? key : fmt::format("{}.{}", path, key);
    if (told.is_mapping(key) && !told.table(key).keys().empty())
      set_leaves(told.table(key), kind, own, settings_file);
    else if (own != kind.file_option)  // which names the file
      settings_file.set(own, told.one_line(key));
  }
}

// Puts a word that stands alone among the arguments, or tells that it is not known.
void put_word(const std::string& key, const ShellWord& word, OpenedSource& opened) {
  if (word.unknown.empty())
    opened.document.set(key, yaml_quoted(word.text));
  else
    opened.unknown.push_back({key, word});
}

// Opens what the program's arguments, or the file that they name, say.
void open_arguments(const Catalogue& data, const std::string& script, OpenedSource& opened) {
  const SourceKind& kind = *opened.kind;
  const Document facts = facts_of(data, opened);
  const std::vector<std::string> flags = facts.root().texts_or("flags");
  const std::vector<ShellWord> words = kind.low_lines
                                           ? mapped(opened.script->launch.arguments, low_lined)
                                           : opened.script->launch.arguments;
  Arguments arguments =
      named_arguments(kind.sets_keys ? words_as_arguments(words) : words, script, flags);
  for (const ShellWord& word : arguments.others)
    if (!word.unknown.empty())
      opened.script->notes.push_back(
          fmt::format("line {}: arguments that hang on {} are not read", word.line, word.unknown));
  opened.unknown = std::move(arguments.unknown);
  opened.document = std::move(arguments.document);
  if (!kind.first_word.empty() && !arguments.others.empty() &&
      !opened.document.root().has(kind.first_word))
    put_word(kind.first_word, arguments.others.back(), opened);
  name_models(facts.root(), opened);
  put_written_deepspeed(script, opened);
  const Table root = opened.document.root();
  const auto named = named_file(kind, root, arguments.others);
  if (!named) return;
  const ShellFile* written = written_file(opened.script->script, named->text);
  if (written == nullptr) opened.file = file_beside(opened.script->script, *named, facts.root());
  Document settings_file = written == nullptr
                               ? open_document(opened.file)
                               : parse_document(in_line(written->line, written->text), script);
  set_leaves(root, kind, "", settings_file);
  opened.document = std::move(settings_file);
}

// Opens what the constructors of the Python file that is started say.
void open_constructors(const Catalogue& data, const std::string& script, Settings settings,
                       OpenedSource& opened) {
  const Launch launch = opened.script->launch;
  const auto python = python_of(script, launch, opened.script->script);
  auto training = python_training(data, *python, launch, settings);
  opened.script->launch = training->launch;
  opened.document = std::move(training->arguments.document);
  opened.unknown = std::move(training->arguments.unknown);
  // A parser of arguments hands them to the trainer; what a constructor is told stands over them.
  Arguments arguments = named_arguments(mapped(launch.arguments, low_lined), script);
  const Table told = arguments.document.root();
  const Table there = opened.document.root();
  for (const std::string& key : told.keys())
    if (!there.has(key) && !holds(opened.unknown, key, &UnknownArgument::key))
      opened.document.set(key, told.one_line(key));
  for (UnknownArgument& each : arguments.unknown)
    if (!there.has(each.key) && !holds(opened.unknown, each.key, &UnknownArgument::key))
      opened.unknown.push_back(std::move(each));
  opened.file = python->file;
  opened.script->script.names.insert(training->variables.begin(), training->variables.end());
}

// Settings are variables of the script where it has such, else arguments; a name that is a key of
// the program is that key, whatever variables are called.
void set_given(const Catalogue& data, Settings given, const std::set<std::string>& names,
               OpenedSource& opened) {
  const Document facts = facts_of(data, opened);
  const std::vector<std::string> keys = facts.root().texts_or("read");
  for (const auto& setting : given) {
    if (names.contains(setting.first) && !holds(keys, setting.first)) continue;
    opened.document.set(setting.first, setting.second);
    std::erase_if(opened.unknown, [&](const auto& each) { return each.key == setting.first; });
  }
}

// The machine is what the wrapping says, as far as no launcher in it says another.
void take_machine(const WrappedSource& wrapped, Launch& launch) {
  if (launch.gpu.empty()) {
    launch.gpu = wrapped.gpu;
    launch.why_gpu = wrapped.why_gpu;
  }
  if (!launch.nodes) launch.nodes = wrapped.nodes;
  if (launch.gpus || !launch.file.text.empty()) return;
  launch.gpus = wrapped.gpus;
  launch.why_gpus = wrapped.why_gpus;
}

// `wrapped`: what the script is a part of; null where the file is a script.
OpenedSource open_script(const Catalogue& data, const std::string& file, Settings settings,
                         const WrappedSource* wrapped = nullptr) {
  const auto given = settings_of_source(settings);
  const std::string asked = said(settings, source_kind_setting);
  const double number = count_said(settings, launch_setting, "--launch");
  const auto kind_in = [&](const Launch& launch, const ShellScript& script) -> const SourceKind* {
    if (const SourceKind* kind = kind_of(launch, asked)) return kind;
    if (const SourceKind* kind = kind_of_given(file, launch)) return kind;
    const auto python = python_of(file, launch, script);
    if (!python && known_program(data, launch)) return python_kind();
    return python && python_training(data, *python, launch, settings) ? python_kind() : nullptr;
  };
  // A program of people's own is asked what it does with its arguments.
  const auto trains_in_python = [&](const ShellScript& script, const Launch& launch,
                                    const SourceKind& kind) {
    if (&kind != python_kind()) return false;
    const auto python = python_of(file, launch, script);
    return python && python_training(data, *python, launch, settings);
  };
  ScriptQuestion question{
      .data = data,
      .file = file,
      .given = given,
      .is_training = [&](const Launch& launch,
                         const ShellScript& read) { return kind_in(launch, read) != nullptr; },
      .known = known_programs(),
      .number = number > 0 ? static_cast<std::size_t>(number) : 1};
  if (wrapped != nullptr) {
    question.text = wrapped->shell;
    question.title = wrapped->title;
    question.files = wrapped->files;
  }
  ScriptSource script = read_script_source(question);
  const SourceKind* kind = kind_in(script.launch, script.script);
  assert(kind != nullptr);  // only launches that have one are taken
  if (wrapped != nullptr) take_machine(*wrapped, script.launch);
  OpenedSource opened{kind, parse_document("{}", file), file, std::move(script)};
  const Launch& launch = opened.script->launch;
  const bool named = is_called(*kind, launch) || kind_of_given(file, launch) != nullptr;
  if (kind == python_kind() && !python_of(file, launch, opened.script->script))
    opened.known = known_program(data, launch);
  if (!named && kind->sets_keys)
    opened.script->notes.push_back(
        fmt::format("line {}: {} is taken for a form of {}, whose keys it is told: what its own "
                    "code does beside that, as turns with tools, is not counted",
                    launch.line, launch.program, kind->name));
  if (named || opened.known ||
      (is_told(*kind, launch) && !trains_in_python(opened.script->script, launch, *kind)))
    open_arguments(data, file, opened);
  else
    open_constructors(data, file, settings, opened);
  set_given(data, given, opened.script->script.names, opened);
  if (opened.known) lay_under(data, *opened.known, opened.script->launch, file, opened.document);
  return opened;
}

// A program without a language model may train something else, which is said by its name.
void refuse_other(const Catalogue& data, const std::string& text, const std::string& file,
                  const std::optional<PythonTraining>& training) {
  constexpr std::string_view model = "model_name_or_path";
  if (training && (training->arguments.document.root().has(model) ||
                   holds(training->arguments.unknown, model, &UnknownArgument::key)))
    return;
  if (const std::string other = other_training_in(data, text, file); !other.empty())
    throw UserError({{file, 0, "", other}});
}

OpenedSource open_python(const Catalogue& data, const std::string& file, Settings settings) {
  const std::string text = read_text(file);
  auto training = python_training(data, {text, file}, {}, settings);
  refuse_other(data, text, file, training);
  if (!training)
    throw UserError({{file, 0, "",
                      "is a Python file that calls no trainer of transformers or TRL, and has no "
                      "loop of its own that trains; it was read, not run"}});
  OpenedSource opened{python_kind(), std::move(training->arguments.document), file,
                      ScriptSource{{}, std::move(training->launch), {}, {}},
                      std::move(training->arguments.unknown)};
  set_given(data, settings_of_source(settings), training->variables, opened);
  return opened;
}

// Commands beside a program, as lines of a notebook that begin with !, which install releases.
ShellScript commands_beside(const WrappedSource& wrapped, const std::string& file) {
  try {
    return read_shell_script(wrapped.shell, file, {});
  } catch (const UserError&) {  // a program fills in what is not said here
    return {};
  }
}

// Returns whether any command of the wrapping is a launch: else it is told what there is instead.
bool starts_something(const Catalogue& data, const WrappedSource& wrapped,
                      const std::string& file) {
  return !launches_in(data, commands_beside(wrapped, file)).empty();
}

// A script that the wrapping starts is what trains.
std::string why_nothing(const WrappedSource& wrapped) {
  constexpr std::string_view ending = ".sh";
  const std::string& shell = wrapped.shell;
  for (std::size_t end = shell.find(ending); end != std::string::npos;
       end = shell.find(ending, end + 1)) {
    const std::size_t from = shell.find_last_of(" '\"\n=", end);
    const std::size_t begin = from == std::string::npos ? 0 : from + 1;
    const std::string script = shell.substr(begin, end + ending.size() - begin);
    if (script.find("://") == std::string::npos)  // what is fetched there installs something
      return fmt::format("it starts {}: give that script instead", script);
  }
  return wrapped.nothing;
}

OpenedSource open_wrapped(const Catalogue& data, const std::string& file, Settings settings,
                          const WrappedSource& wrapped) {
  if (!wrapped.kind.empty()) {
    Launch launch{.program = wrapped.program};
    take_machine(wrapped, launch);
    OpenedSource opened{&kind_of(parse_document("{}", file), wrapped.kind),
                        document_in_lines(wrapped.settings, file), file,
                        ScriptSource{{}, std::move(launch), {}, wrapped.notes}};
    set_given(data, settings_of_source(settings), {}, opened);
    return opened;
  }
  Launch machine;
  machine.gpus = wrapped.gpus;
  auto training = wrapped.python.empty()
                      ? std::nullopt
                      : python_training(data, {wrapped.python, file}, machine, settings);
  if (!wrapped.python.empty()) refuse_other(data, wrapped.python, file, training);
  if (training) {
    Launch launch = std::move(training->launch);
    launch.gpu = wrapped.gpu;
    launch.why_gpu = wrapped.why_gpu;
    launch.why_gpus = wrapped.why_gpus;
    OpenedSource opened{
        python_kind(), std::move(training->arguments.document), file,
        ScriptSource{commands_beside(wrapped, file), std::move(launch), {}, wrapped.notes},
        std::move(training->arguments.unknown)};
    set_given(data, settings_of_source(settings), training->variables, opened);
    return opened;
  }
  if (!starts_something(data, wrapped, file))
    throw UserError(
        {{file, 0, "",
          fmt::format("is {}: {}; it was read, not run", wrapped.title, why_nothing(wrapped))}});
  OpenedSource opened = open_script(data, file, settings, &wrapped);
  opened.script->notes.insert(opened.script->notes.end(), wrapped.notes.begin(),
                              wrapped.notes.end());
  return opened;
}

}  // namespace

Document open_document(const std::string& file) {
  if (!file.ends_with(".json")) return read_document(file);
  return parse_document(without_comments(read_text(file), file), file);
}

OpenedSource open_source(const Catalogue& data, const std::string& file, Settings settings) {
  if (const auto wrapped = unwrapped(data, file, settings)) {
    try {
      OpenedSource opened = open_wrapped(data, file, settings, *wrapped);
      opened.cells = wrapped->cells;
      return opened;
    } catch (const UserError& error) {
      throw UserError(mapped(error.problems(), [&](const Problem& problem) {
        return problem.file == file ? in_cell(wrapped->cells, problem) : problem;
      }));
    }
  }
  if (is_shell_script(file)) return open_script(data, file, settings);
  if (file.ends_with(".py")) return open_python(data, file, settings);
  if (!said(settings, launch_setting).empty())
    throw UserError(fmt::format("--launch: {} is no script", file));
  Document document = open_document(file);
  const SourceKind& kind = kind_of(document, said(settings, source_kind_setting));
  if (kind.translate != nullptr)
    for (const auto& [key, value] : settings_of_source(settings)) document.set(key, value);
  return {&kind, std::move(document), file};
}

void refuse_unknown(const SourceQuestion& question, const OpenedSource& opened) {
  if (opened.unknown.empty()) return;
  const Document facts = facts_of(question.data, opened);
  const Table root = facts.root();
  std::vector<std::string> spare = root.texts_or("may_be_unknown");
  if (question.decides("model"))
    for (const std::string& key : root.texts_or("names_model")) spare.push_back(key);
  std::vector<std::string> counts = root.texts_or("read");
  for (const std::string& key : root.texts_or("used")) counts.push_back(key);
  if (root.is_mapping("keys"))
    for (const std::string& key : root.table("keys").keys()) counts.push_back(key);
  std::vector<Problem> problems;
  for (const UnknownArgument& each : opened.unknown)
    if (holds(counts, each.key) && !holds(spare, each.key))
      problems.push_back({opened.file, each.word.line, each.key, unknown_argument_message(each)});
  if (!problems.empty()) throw UserError(problems);
}

}  // namespace stepsim
