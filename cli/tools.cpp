#include "cli/tools.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "cli/failures.hpp"
#include "cli/result_kinds.hpp"
#include "cli/source_options.hpp"
#include "cli/usage_text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array tools{
    Tool{"run", run_command, "scenario", 1, "--brief --changes", {&run_kind, &grpo_kind}},
    Tool{"memory", memory_command, "scenario", 1, "--brief", {&memory_kind, &grpo_memory_kind}},
    Tool{"explain", explain_command, "a b", 1, "--brief", {&explain_kind}},
    Tool{"plan", plan_command, "scenario", 1, "--brief", {&plan_kind}},
    Tool{"sweep", sweep_command, "scenario", 1, "--brief", {&sweep_kind, &search_kind}},
    Tool{"check", check_command, "claims...", 1, "--brief", {&check_kind}},
    Tool{"anchor", anchor_command, "scenario", 1, "--brief", {&anchor_kind}},
    Tool{"diagnose", diagnose_command, "scenario", 1, "--brief", {&diagnosis_kind}},
    Tool{"show", show_command, "name", 1, "", {&scenario_kind, &model_kind, &entry_kind}},
    Tool{"list", list_command, "kind", 0, "", {&list_kind, &keys_kind}}};

// These write files, choose another form of the answer, or are about this machine.
constexpr std::array<std::string_view, 16> kept_back{
    "output", "json", "csv",  "brief",    "full",     "shard",        "yaml",    "workers",
    "engine", "cfg",  "fold", "markdown", "template", "json-schemas", "openapi", "help"};

struct ToolWord {
  std::string name;
  bool list = false;
};

std::vector<ToolWord> words_in(const Tool& tool) {
  return mapped(split(tool.words, ' '), [](std::string_view word) {
    const bool list = word.ends_with("...");
    return ToolWord{std::string(list ? word.substr(0, word.size() - 3) : word), list};
  });
}

std::string property(std::string_view name, std::string_view type, std::string_view help) {
  return fmt::format(R"("{}": {{{}, "description": "{}"}}, )", name, type, json_escaped(help));
}

constexpr std::string_view text_type = R"("type": "string")", flag_type = R"("type": "boolean")",
                           texts_type = R"("type": "array", "items": {"type": "string"})",
                           number_type = R"("type": "number")";

// Options of source files are the same everywhere: they are told once.
std::string property_of(const OptionSpec& option, bool told) {
  const std::string_view type = option.repeats         ? texts_type
                                : option.value.empty() ? flag_type
                                : option.value == "N"  ? number_type
                                                       : text_type;
  const std::string named = told ? "as `run` has it"
                            : option.value.empty() || option.value == "N"
                                ? std::string(option.help)
                                : fmt::format("{}: {}", option.value, option.help);
  return property(option.name, type, named);
}

// A list may be written as what it is a list of: {"strategy.zero": 2} as ["strategy.zero=2"].
std::vector<std::string> values_of(const Table& arguments, const std::string& key) {
  if (arguments.one_line(key).starts_with('[')) return arguments.texts(key);
  if (!arguments.is_mapping(key)) return {arguments.text(key)};
  const Table pairs = arguments.table(key);
  return mapped(pairs.keys(), [&](const std::string& name) {
    return fmt::format("{}={}", name, pairs.text(name));
  });
}

// A file in memory takes the place of a descriptor until its text is taken.
class Diverted {
 public:
  Diverted(int file, std::FILE* stream) : file_(file), stream_(stream) {
    std::fflush(stream_);
    before_ = ::fcntl(file_, F_DUPFD_CLOEXEC, 3);
    memory_ = ::memfd_create("printed", MFD_CLOEXEC);
    if (before_ < 0 || memory_ < 0 || ::dup2(memory_, file_) < 0)
      throw std::system_error(errno, std::generic_category(), "no room for what is printed");
  }
  Diverted(const Diverted&) = delete;
  Diverted& operator=(const Diverted&) = delete;
  ~Diverted() {
    std::fflush(stream_);
    ::dup2(before_, file_);
    ::close(before_);
    ::close(memory_);
  }
  std::string text() const {
    std::fflush(stream_);
    std::string all(static_cast<std::size_t>(std::max<off_t>(0, ::lseek(memory_, 0, SEEK_END))),
                    '\0');
    std::size_t at = 0;
    for (ssize_t size = 1; at < all.size() && size > 0; at += static_cast<std::size_t>(size))
      size =
          std::max<ssize_t>(0, ::pread(memory_, &all[at], all.size() - at, static_cast<off_t>(at)));
    all.resize(at);
    return all;
  }

 private:
  int file_, before_ = -1, memory_ = -1;
  std::FILE* stream_;
};

}  // namespace

std::span<const Tool> all_tools() {
  return tools;
}

const Tool& tool_of(std::string_view name) {
  const auto place = std::ranges::find(tools, name, &Tool::name);
  if (place == tools.end())
    throw UserError(fmt::format("no tool \"{}\"{}", on_one_line(name),
                                did_you_mean(name, texts_of(tools, &Tool::name))));
  return *place;
}

std::string tool_usage_text(const Usage& usage) {
  std::string text =
      fmt::format("{}\n{}\n", on_one_line(usage.summary), split(usage.call, '\n').front());
  const bool first = usage.call.starts_with("stepsim run ");
  for (const OptionSpec& option : usage.options)
    if (!holds(kept_back, option.name)) text += property_of(option, !first && option.of_source);
  return text;
}

ToolUsage usage_of(const Tool& tool, std::string_view own) {
  const std::string said = answer_of(tool, {}, {fmt::format("{}tool", help_as)}).out;
  const auto lines = split(said, '\n');
  std::string properties(own), required;
  std::size_t left = tool.required;
  for (const ToolWord& word : words_in(tool)) {
    properties +=
        property(word.name, word.list ? texts_type : text_type, fmt::format("as in {}", lines[1]));
    if (left == 0) continue;
    required += fmt::format("{}\"{}\"", required.empty() ? "" : ", ", word.name);
    --left;
  }
  properties += lines[2];
  properties.resize(properties.size() - 2);
  return {std::string(lines[0]),
          fmt::format(R"({{"type": "object", "properties": {{{}}}, "required": [{}], )"
                      R"("additionalProperties": false}})",
                      properties, required)};
}

std::vector<std::string> words_of(const Tool& tool, const Table& arguments,
                                  std::span<const std::string_view> own) {
  const std::vector<ToolWord> named = words_in(tool);
  std::vector<std::string> options, words;
  for (const std::string& key : arguments.keys()) {
    if (!arguments.has(key) || holds(own, key) || holds(named, key, &ToolWord::name)) continue;
    if (holds(kept_back, key) || key.find('=') != std::string::npos) {
      arguments.problem(key, "is not taken here");
    } else if (const std::string line = arguments.one_line(key); line == "true") {
      options.push_back("--" + key);
    } else if (line != "false") {
      for (const std::string& value : values_of(arguments, key))
        options.push_back(fmt::format("--{}={}", key, value));
    }
  }
  for (const ToolWord& word : named)
    if (arguments.has(word.name)) {
      if (word.list)
        append(words, arguments.texts(word.name));
      else
        words.push_back(arguments.text(word.name));
    }
  options.emplace_back("--");  // what comes now is no option, whatever it begins with
  append(options, words);
  return options;
}

bool is_within(const fs::path& path, std::span<const std::string> folders) {
  return std::ranges::any_of(folders, [&](const std::string& folder) {
    const fs::path way = path.lexically_relative(folder);
    return !way.empty() && *way.begin() != "..";
  });
}

bool names_path_outside(std::span<const std::string> folders, std::string_view value) {
  constexpr std::string_view between = " \t\r\n,:=[]{}\"'";
  if (value.find('\\') != std::string_view::npos) return true;
  for (std::size_t at = 0; (at = value.find_first_not_of(between, at)) != std::string_view::npos;) {
    const std::size_t end = std::min(value.find_first_of(between, at), value.size());
    fs::path word = fs::path(value.substr(at, end - at)).lexically_normal();
    if (!word.empty() && *word.begin() == "..")
      word = (fs::current_path() / word).lexically_normal();
    if (word.is_absolute() && !is_within(word, folders)) return true;
    at = end;
  }
  return false;
}

void require_inside(std::span<const std::string> words, std::span<const std::string> folders,
                    std::string_view advice) {
  for (const std::string& word : words)
    if (names_path_outside(folders, word))
      throw UserError(fmt::format("\"{}\": no path outside what is served is taken{}",
                                  on_one_line(word), advice));
}

void take_no_input() {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::dup2(nothing, STDIN_FILENO);
  ::close(nothing);
}

Printed caught(const std::function<int()>& act) {
  const Diverted out(STDOUT_FILENO, stdout), err(STDERR_FILENO, stderr);
  Printed printed;
  printed.code = exit_code_of(act);
  printed.out = out.text();
  printed.err = err.text();
  return printed;
}

Printed answer_of(const Tool& tool, const Catalogue& data, std::vector<std::string> words) {
  return caught([&] { return tool.run({data, words}); });
}

std::string complaint_of(const Printed& printed) {
  constexpr std::string_view name = "stepsim: ";
  std::string text = printed.err.starts_with(name) ? printed.err.substr(name.size()) : printed.err;
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

}  // namespace stepsim
