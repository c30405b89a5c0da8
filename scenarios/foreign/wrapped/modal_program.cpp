#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "scenarios/foreign/text/python_values.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {
namespace {

using Kind = PythonValue::Kind;

constexpr std::array starters{"accelerate", "torchrun", "deepspeed", "axolotl", "llamafactory-cli",
                              "swift",      "trl",      "tune",      "python",  "python3"};

// "A100:2", "A100-80GB", a list of which the first is taken, modal.gpu.A100(count=2, size="80GB").
void read_gpu(const PythonFile& file, const PythonPlace& place, const PythonTokens& tokens,
              WrappedSource& source) {
  PythonValue value = value_of(file, place, tokens);
  if (value.kind == Kind::list && !value.items.empty()) value = value.items.front();
  std::string said = value.kind == Kind::text ? value.text : "";
  if (said.empty()) {
    std::size_t at = 0;
    for (std::size_t i = 0; i + 2 < tokens.size(); ++i)
      if (tokens[i].text == "gpu" && tokens[i + 1].text == ".") at = i + 2;
    if (at == 0) return;
    said = tokens[at].text;
    std::string size, count;
    for (std::size_t i = at; i + 2 < tokens.size(); ++i) {
      if (tokens[i].text == "size" && tokens[i + 1].text == "=") size = tokens[i + 2].text;
      if (tokens[i].text == "count" && tokens[i + 1].text == "=") count = tokens[i + 2].text;
    }
    if (!size.empty()) said += "-" + size;
    if (!count.empty()) said += ":" + count;
  }
  const std::size_t colon = std::min(said.find(':'), said.size());
  std::int64_t count = 1;
  if (colon < said.size())
    std::from_chars(said.data() + colon + 1, said.data() + said.size(), count);
  source.gpu = said.substr(0, colon);
  source.gpus = std::clamp<std::int64_t>(count, 1, 1 << 10);
  source.why_gpu = source.why_gpus = fmt::format("gpu={} of Modal", said);
}

std::string first_word(const std::string& text) {
  const std::size_t from = text.find_first_not_of(" \n");
  if (from == std::string::npos) return "";
  const std::size_t end = text.find_first_of(" \n", from);
  return text.substr(from, end == std::string::npos ? end : end - from);
}

bool starts_one(const std::string& word) {
  return std::ranges::any_of(starters, [&](const char* each) { return word == each; });
}

// Fills what only a run knows into a text as a variable: f"train {config}" is "train $config".
std::string with_variables(const std::string& text) {
  std::string result;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t end = text.find('}', at);
    if (text[at] != '{' || end == std::string::npos) {
      result += text[at];
      continue;
    }
    std::string name = text.substr(at + 1, end - at - 1);
    name = name.substr(0, name.find_first_of(":!"));
    result += fmt::format("${{{}}}", name.substr(name.rfind('.') + 1));
    at = end;
  }
  return result;
}

// Returns the command of a call of subprocess.run and the like; empty: it starts nothing.
std::string command_in(const PythonFile& file, const PythonCall& call) {
  if (call.positional.empty()) return "";
  PythonValue value = value_of(file, place_of(call), call.positional.front());
  const PythonToken& first = call.positional.front().front();
  if (value.kind == Kind::unknown && first.kind == PythonKind::template_text)
    value = {.kind = Kind::text, .text = with_variables(first.text)};
  // The interpreter that runs the program itself.
  if (value.kind == Kind::list && value.items.size() > 1 &&
      value.items.front().text.starts_with("sys.executable"))
    value.items.front() = {.kind = Kind::text, .text = "python"};
  if (value.kind == Kind::text && starts_one(first_word(value.text))) return value.text;
  if (value.kind != Kind::list || value.items.empty() || value.items.front().kind != Kind::text)
    return "";
  const std::vector<PythonValue>& words = value.items;
  const bool shell = words.size() > 2 && words[0].text.ends_with("sh") &&
                     words[1].text.starts_with('-') && words[2].kind == Kind::text;
  if (shell) return words[2].text;
  if (!starts_one(words.front().text)) return "";
  std::string command;
  for (const PythonValue& word : words) {
    if (word.kind == Kind::text)
      command += shell_quoted(word.text) + " ";
    else if (word.kind == Kind::number)
      command += fmt::format("{} ", word.number);
    else
      command += word.variable.empty() ? "$unknown " : fmt::format("${} ", word.variable);
  }
  return command;
}

}  // namespace

std::optional<WrappedSource> read_modal_program(std::string_view text, const std::string& file) {
  if (text.find("import modal") == std::string_view::npos &&
      text.find("from modal") == std::string_view::npos)
    return std::nullopt;
  const PythonFile program = read_python(text, file);
  WrappedSource source{.title = "a program for Modal", .python = std::string(text)};
  for (const PythonCall& call : calls_in(
           program, [](const std::string& name) { return name == "function" || name == "cls"; }))
    for (const PythonCall::Keyword& keyword : call.keywords)
      if (keyword.name == "gpu" && source.gpu.empty())
        read_gpu(program, place_of(call), keyword.value, source);
  const std::vector<PythonCall> calls = calls_in(program, [](const std::string& name) {
    return name == "run" || name == "system" || name == "Popen" || name == "check_call" ||
           name == "check_output" || name == "call" || name == "run_cmd" || name == "run_command" ||
           name == "exec" || name == "_run";
  });
  int line = 1;
  for (const PythonCall& call : calls) {
    const std::string command = command_in(program, call);
    if (command.empty()) continue;
    source.shell += in_line(std::max(call.line - line, 0) + 1, command) + "\n";
    line = static_cast<int>(std::ranges::count(source.shell, '\n')) + 1;
  }
  source.nothing =
      "it calls no trainer of transformers or TRL, and starts no training in a process "
      "of its own";
  return source;
}

}  // namespace stepsim
