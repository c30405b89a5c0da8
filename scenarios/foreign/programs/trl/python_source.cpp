#include "scenarios/foreign/programs/trl/python_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "scenarios/foreign/programs/accelerate/accelerate.hpp"
#include "scenarios/foreign/programs/trl/python_arguments.hpp"
#include "scenarios/foreign/table/mapped_source.hpp"
#include "scenarios/foreign/text/shell_words.hpp"
#include "workloads/model/other_models.hpp"

namespace stepsim {
namespace {

// Finds how the file starts itself: ["accelerate", "launch", "--config_file", NAME, ...].
std::optional<Launch> own_launch(const PythonFile& file, const PythonQuestion& question) {
  for (std::size_t scope = 0; scope < file.scopes.size(); ++scope)
    for (const PythonStatement& statement : file.scopes[scope].statements) {
      const PythonTokens& tokens = statement.tokens;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].text != "[" || tokens[i + 1].kind != PythonKind::text ||
            (tokens[i + 1].text != "accelerate" && tokens[i + 1].text != "torchrun" &&
             tokens[i + 1].text != "deepspeed"))
          continue;
        const PythonValue list =
            value_of(file, {scope, tokens.front().line, statement.guard},
                     {tokens.begin() + static_cast<std::ptrdiff_t>(i), tokens.end()});
        if (list.kind != PythonValue::Kind::list) continue;
        ShellScript script;
        script.file = question.file;
        ShellCommand& command = script.commands.emplace_back();
        command.line = tokens[i].line + question.first_line - 1;
        for (const PythonValue& each : list.items) {
          const bool own = each.kind != PythonValue::Kind::text;
          command.words.push_back({own ? "own.py" : each.text, command.line});
        }
        const std::vector<Launch> launches = launches_in(question.data, script);
        if (!launches.empty()) return launches.front();
      }
    }
  return std::nullopt;
}

// Returns where a command ends that begins at `at`: a line may go on after a backslash.
std::size_t end_of_command(const std::string& text, std::size_t at) {
  for (std::size_t end = text.find_first_of("\n`", at);; end = text.find_first_of("\n`", end + 1))
    if (end == std::string::npos || text[end] == '`' || end == 0 || text[end - 1] != '\\')
      return std::min(end, text.size());
}

// Finds how the file says in its own text that it is started: "accelerate launch --config_file
// NAME own.py".
std::optional<Launch> launch_in_text(const PythonFile& file, const PythonQuestion& question) {
  constexpr std::size_t longest = 2000;
  const std::string own = std::filesystem::path(question.file).filename().string();
  for (const PythonStatement& statement : file.scopes.front().statements) {
    if (statement.tokens.size() != 1 || statement.tokens[0].kind != PythonKind::text) continue;
    const std::string& text = statement.tokens[0].text;
    for (const char* launcher : {"accelerate launch ", "torchrun ", "deepspeed "})
      for (std::size_t at = text.find(launcher); at != std::string::npos;
           at = text.find(launcher, at + 1)) {
        const std::size_t end = end_of_command(text, at);
        if (end - at > longest) break;
        try {
          const ShellScript script =
              read_shell_script(text.substr(at, end - at), question.file, {});
          for (Launch& launch : launches_in(question.data, script)) {
            const SourceQuestion beside{
                .data = question.data, .file = question.file, .settings = {}};
            const bool there =
                launch.file.text.empty() || find_beside(beside, launch.file.text).has_value();
            if (std::filesystem::path(launch.program).filename() != own || !there) continue;
            launch.line = statement.tokens[0].line + question.first_line - 1;
            launch.file.line = launch.line;
            launch.why_gpus = "the file's own text says how it is started";
            return launch;
          }
        } catch (const UserError&) {  // no command, but a sentence
        }
      }
  }
  return std::nullopt;
}

// Returns the number of processes as the script, the file's own launch, or the file of Accelerate
// in that has it.
std::string processes_of(const PythonQuestion& question, const std::optional<Launch>& own) {
  if (question.processes) return std::to_string(*question.processes);
  if (!own) return "";
  if (own->gpus) return std::to_string(*own->gpus * own->nodes.value_or(1));
  if (own->file.text.empty()) return "";
  const auto file =
      find_beside({.data = question.data, .file = question.file, .settings = {}}, own->file.text);
  if (!file) return "";
  const AccelerateFile accelerate = read_accelerate(question.data, *file);
  return accelerate.gpus.gpus > 0 ? std::to_string(accelerate.gpus.gpus) : "";
}

// A file that parse_json_file of a parser reads says what the command line would say.
void add_parsed_arguments(PythonFile& file) {
  if (!file.settings_file) return;
  for (const PythonCall& call : calls_in(file, [](const std::string& name) {
         return name == "parse_json_file" || name == "parse_yaml_file";
       })) {
    const auto& keywords = call.keywords;
    const PythonTokens* said = !keywords.empty()          ? &keywords.front().value
                               : !call.positional.empty() ? &call.positional.front()
                                                          : nullptr;
    const PythonValue name =
        said == nullptr ? PythonValue{} : value_of(file, place_of(call), *said);
    if (name.kind != PythonValue::Kind::text) continue;
    const auto settings = file.settings_file(name.text);
    for (std::size_t i = 0; settings && i < settings->keys.size(); ++i)
      if (const PythonValue& item = settings->items[i]; item.kind != PythonValue::Kind::table)
        file.parsed.emplace(settings->keys[i], item);
  }
}

// A class of the program's own is named with the one that it derives from.
std::string program_name(const PythonArguments& arguments) {
  if (arguments.trainer() == arguments.known_trainer()) return arguments.trainer();
  return arguments.trainer() + "(" + arguments.known_trainer() + ")";
}

}  // namespace

std::optional<PythonTraining> read_python_training(std::string_view text,
                                                   const PythonQuestion& question) {
  PythonProgram program = read_python_program(text, question.file, question.near);
  PythonFile& file = program.file;
  file.environment = question.environment;
  file.given = question.given;
  file.said = question.said;
  file.unsaid = question.unsaid;
  auto own = own_launch(file, question);
  if (!own && !question.processes) own = launch_in_text(file, question);
  file.processes = processes_of(question, own);
  add_parsed_arguments(file);
  for (const auto& [name, words] : question.lists) {
    PythonValue list{.kind = PythonValue::Kind::list};
    for (const std::string& word : words)
      list.items.push_back({.kind = PythonValue::Kind::text, .text = word});
    file.parsed.insert_or_assign(name, std::move(list));
  }
  const Document facts = import_facts(question.data, "programs/trl/trl");
  const Table words = facts.root().table("python");
  const Table fields = words.table("known_fields");
  for (const std::string& name : fields.keys())
    file.arguments.emplace(name, PythonTokens{{PythonKind::name, fields.text(name), 0}});
  PythonQuestion own_question = question;
  own_question.counts = facts.root().texts("read");
  const std::vector<std::string> aliases = facts.root().table("also_called").keys();
  own_question.counts.insert(own_question.counts.end(), aliases.begin(), aliases.end());
  PythonArguments arguments(program, own_question, words);
  arguments.add_calls();
  if (arguments.trainer().empty()) return std::nullopt;
  Launch launch;
  launch.alone = !arguments.shards();
  if (own) launch = std::move(*own);
  launch.program = program_name(arguments);
  launch.line = arguments.trainer_line();
  if (arguments.devices() > 1 && !launch.gpus) {
    launch.gpus = arguments.devices();
    launch.why_gpus = "the program says so many devices";
    launch.alone = false;
  }
  PythonTraining training{std::move(launch), arguments.finish(), {}};
  training.variables = std::move(file.asked);
  return training;
}

std::string other_training_in(const Catalogue& data, std::string_view text,
                              const std::string& file) {
  const PythonFile program = read_python(text, file);
  std::string found;
  for (const PythonCall& call : calls_in(program, [](const std::string& name) {
         return name == "from_pretrained" || name == "SentenceTransformer" ||
                name == "CrossEncoder" || name == "DiffusionPipeline";
       })) {
    if (call.name.find("ForCausalLM") != std::string::npos ||
        call.name.find("LanguageModel") != std::string::npos)
      return "";
    if (!found.empty() || call.name.find("Tokenizer") != std::string::npos) continue;
    std::string why = why_not_modelled(data, call.name);
    std::string named = call.name.substr(0, call.name.rfind(".from_pretrained"));
    if (why.empty() && !call.positional.empty()) {
      const PythonValue model = value_of(program, place_of(call), call.positional.front());
      if (model.kind == PythonValue::Kind::text) {
        why = why_not_modelled(data, model.text);
        named = model.text;
      }
    }
    if (!why.empty()) found = fmt::format("loads {} in line {}: that is {}", named, call.line, why);
  }
  return found;
}

}  // namespace stepsim
