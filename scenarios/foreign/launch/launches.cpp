#include "scenarios/foreign/launch/launches.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "scenarios/foreign/text/slurm_words.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

using CommandWords = std::span<const ShellWord>;

std::string program_in(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

bool is_python(const std::string& name) {
  return name == "python" || (name.starts_with("python") && name.size() > 6 && is_digit(name[6]));
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  const auto value = number_from<std::int64_t>(text);
  return value && *value >= 1 && *value <= 1 << 20 ? value : std::nullopt;
}

// Returns "--nproc-per-node=8" as "nproc_per_node".
std::string option_name(const std::string& word) {
  std::string name = word.substr(word.find_first_not_of('-'));
  name = name.substr(0, name.find('='));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

bool is_option(const ShellWord& word) {
  return word.text.size() > 1 && word.text.front() == '-' && !is_digit(word.text[1]) &&
         word.text[1] != '.' && word.text.find_first_not_of('-') != std::string::npos;
}

struct Launcher {
  std::vector<std::string> called, flags;
  std::string gpus, processes, nodes, file, devices, gpus_short, hosts;
};

struct KnownLaunchers {
  std::vector<std::string> wrappers, behind_dashes, programs;
  std::vector<Launcher> launchers;
  std::string nodes_behind, gpus_behind;  // options of those that end with dashes
  // Programs that start their own processes, and the variables that say how many.
  std::vector<std::string> on_their_own;
  std::vector<std::string> on_all_gpus;  // of these, where no variable says how many
  std::string gpus_told, nodes_told;
};

KnownLaunchers known_launchers(const Catalogue& data) {
  const Document document = read_document(data.file("scenarios/foreign/launch/launchers.yaml"));
  const Table root = document.root();
  KnownLaunchers known{root.texts("wrappers"),
                       root.texts("behind_dashes"),
                       root.texts("programs"),
                       {},
                       root.text("nodes_of_dashes"),
                       root.text("gpus_of_dashes"),
                       {},
                       {},
                       "",
                       ""};
  const Table own = root.table("on_their_own");
  known.on_their_own = own.texts("programs");
  known.on_all_gpus = own.texts("on_all_gpus");
  known.gpus_told = own.text("gpus");
  known.nodes_told = own.text("nodes");
  const Table launchers = root.table("launchers");
  for (const std::string& name : launchers.keys()) {
    const Table each = launchers.table(name);
    known.launchers.push_back({each.texts("called"), each.texts("flags"), each.text_or("gpus", ""),
                               each.text_or("processes", ""), each.text_or("nodes", ""),
                               each.text_or("file", ""), each.text_or("devices", ""),
                               each.text_or("gpus_short", ""), each.text_or("hosts", "")});
  }
  document.finish(Leftovers::allowed);
  return known;
}

// Takes the words of a command apart: wrappers, launchers, the program.
class CommandReader {
 public:
  CommandReader(const KnownLaunchers& known, const ShellScript& script, const ShellCommand& command)
      : known_(known), script_(script), words_(command.words), asked_(script.directives) {
    launch_.line = command.line;
    launch_.environment = command.environment;
  }

  std::optional<Launch> read() {
    if (words_.empty() || !skip_wrappers()) return std::nullopt;
    launch_.alone = !by_slurm_;
    constexpr int most = 4;  // launchers that start launchers
    for (int turn = 0; turn < most && !words_.empty(); ++turn) {
      const std::string name = program_in(words_.front().text);
      if (is_python(name)) {
        if (!python()) return std::nullopt;
        interpreted_ = true;
      } else if (const Launcher* launcher = launcher_called(name)) {
        by_slurm_ = false;
        launch_.alone = false;
        options_of(*launcher);
      } else {
        break;
      }
      if (!launch_.program.empty()) break;
    }
    if (launch_.program.empty() && !words_.empty()) named_program();
    if (launch_.program.empty()) return std::nullopt;
    launch_.arguments.assign(words_.begin(), words_.end());
    hand_on_to_launcher();
    launch_.alone = launch_.alone && (interpreted_ || launch_.program.ends_with(".py"));
    count_processes();
    count_devices();
    count_asked();
    return std::move(launch_);
  }

 private:
  void drop(std::size_t count) { words_ = words_.subspan(std::min(count, words_.size())); }

  bool starts_something(const ShellWord& word) const {
    const std::string name = program_in(word.text);
    return is_python(name) || holds(known_.behind_dashes, name) || holds(known_.programs, name) ||
           name.ends_with(".py") ||
           std::any_of(known_.launchers.begin(), known_.launchers.end(), [&](const Launcher& each) {
             return each.called.front().substr(0, each.called.front().find(' ')) == name;
           });
  }

  // Reads what a program that hands on the words behind its dashes says of the machine.
  void read_machine(CommandWords words) {
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (!is_option(words[i])) continue;
      const std::string name = option_name(words[i].text);
      if (name == known_.nodes_behind)
        per_node_ = (launch_.nodes = whole_number(words[i + 1].text)).has_value();
      if (name == known_.gpus_behind) launch_.gpus = whole_number(words[i + 1].text);
    }
  }

  bool skip_wrappers() {
    if (holds(known_.wrappers, program_in(words_.front().text))) {
      const auto place = std::find_if(words_.begin() + 1, words_.end(), [&](const ShellWord& word) {
        return starts_something(word);
      });
      const auto srun = std::find_if(words_.begin(), place, [](const ShellWord& word) {
        return program_in(word.text) == "srun";
      });
      by_slurm_ = srun != place;
      for (const auto& [key, value] :
           slurm_options(texts_of(std::span(srun, place), &ShellWord::text)))
        asked_[key] = value;
      drop(static_cast<std::size_t>(place - words_.begin()));
    }
    if (words_.empty() || !starts_something(words_.front())) return false;
    const bool interpreted = is_python(program_in(words_.front().text)) && words_.size() > 1;
    const ShellWord& starter = words_[interpreted ? 1 : 0];
    if (holds(known_.behind_dashes, program_in(starter.text))) {
      const auto dashes = std::find_if(words_.begin(), words_.end(),
                                       [](const ShellWord& word) { return word.text == "--"; });
      if (dashes == words_.end()) return false;
      read_machine({words_.begin(), dashes});
      drop(static_cast<std::size_t>(dashes - words_.begin()) + 1);
      const auto last = std::find_if(words_.rbegin(), words_.rend(), [](const ShellWord& word) {
        return word.text == "&&" || word.text == ";";
      });
      drop(static_cast<std::size_t>(words_.rend() - last));
      return !words_.empty() && skip_wrappers();
    }
    return true;
  }

  const Launcher* launcher_called(const std::string& name) {
    for (const Launcher& each : known_.launchers)
      for (const std::string& called : each.called) {
        const std::size_t blank = called.find(' ');
        if (called.substr(0, blank) != name) continue;
        if (blank == std::string::npos) {
          drop(1);
          return &each;
        }
        if (words_.size() > 1 && words_[1].text == called.substr(blank + 1)) {
          drop(2);
          return &each;
        }
      }
    return nullptr;
  }

  // Takes off python [-u] [-X y] FILE, -m MODULE; a module that is a launcher is left in front.
  bool python() {
    drop(1);
    while (!words_.empty() && is_option(words_.front())) {
      const std::string option = words_.front().text;
      if (option == "-c") return false;
      const bool with_value = option == "-m" || option == "-X" || option == "-W";
      drop(1);
      if (option == "-m") break;
      if (with_value) drop(1);
    }
    if (words_.empty() || words_.front().text == "-") return false;
    const std::string program = words_.front().text;
    const auto is_it = [&](const Launcher& each) { return holds(each.called, program); };
    if (std::any_of(known_.launchers.begin(), known_.launchers.end(), is_it)) return true;
    take_program();
    return true;
  }

  void take_program() {
    launch_.program = words_.front().text;
    if (words_.front().text.empty() && !words_.front().unknown.empty()) launch_.program = "$";
    drop(1);
  }

  void options_of(const Launcher& launcher) {
    while (!words_.empty() && is_option(words_.front())) {
      const ShellWord option = words_.front();
      const std::string name = option_name(option.text);
      const std::size_t sign = option.text.find('=');
      drop(1);
      ShellWord value = option;
      if (sign != std::string::npos) {
        value.text = option.text.substr(sign + 1);
      } else if (holds(launcher.flags, name) || words_.empty() || is_option(words_.front())) {
        value.text = "true";
      } else {
        value = words_.front();
        drop(1);
      }
      launch_.options[name] = value;
    }
    const auto number = [&](const std::string& name) -> std::optional<std::int64_t> {
      const auto place = launch_.options.find(name);
      if (place == launch_.options.end()) return std::nullopt;
      return whole_number(place->second.text);
    };
    if (const auto nodes = number(launcher.nodes)) launch_.nodes = nodes;
    for (const std::string* said : {&launcher.gpus, &launcher.gpus_short})
      if (const auto gpus = number(*said)) launch_.gpus = gpus;
    count_hosts(launcher);
    for (const std::string* said :
         {&launcher.nodes, &launcher.gpus, &launcher.gpus_short, &launcher.processes})
      if (const auto place = launch_.options.find(*said);
          place != launch_.options.end() && !place->second.unknown.empty())
        launch_.unknown.push_back({said == &launcher.nodes, *said, place->second});
    const std::int64_t nodes = launch_.nodes.value_or(slurm_counts(asked_).nodes.value_or(1));
    // A launcher that hands a command to several nodes takes its processes for those of one.
    if (const auto all = number(launcher.processes); all && per_node_)
      launch_.gpus = *all;
    else if (all && *all % nodes == 0)
      launch_.gpus = *all / nodes;
    if (const auto place = launch_.options.find(launcher.file); place != launch_.options.end())
      launch_.file = place->second;
    if (const auto place = launch_.options.find(launcher.devices); place != launch_.options.end())
      include_devices(place->second.text);
    if (!words_.empty() && !is_python(program_in(words_.front().text))) take_program();
  }

  // Counts lines "name slots=8" of the file beside the script.
  void count_hosts(const Launcher& launcher) {
    const auto option = launch_.options.find(launcher.hosts);
    if (launcher.hosts.empty() || option == launch_.options.end()) return;
    const std::filesystem::path said(option->second.text);
    std::error_code failed;
    std::filesystem::path file = std::filesystem::path(script_.file).parent_path() / said;
    if (!std::filesystem::is_regular_file(file, failed)) file = said;
    if (!std::filesystem::is_regular_file(file, failed)) {
      ShellWord word = option->second;
      if (word.unknown.empty())
        word.unknown = fmt::format("{}, which is not beside the script", word.text);
      return launch_.unknown.push_back({true, launcher.hosts, word});
    }
    std::int64_t hosts = 0;
    std::optional<std::int64_t> slots;
    constexpr std::string_view mark = "slots=";
    const std::string text = read_text(file.string());
    for (std::string_view line : lines_in(text)) {
      line = line.substr(0, line.find('#'));
      const std::size_t at = line.find(mark);
      if (at == std::string_view::npos) continue;
      line.remove_prefix(at + mark.size());
      const auto here = whole_number(std::string(line.substr(0, line.find_first_of(" \t\r"))));
      if (here) slots = std::min(*here, slots.value_or(*here));
      ++hosts;
    }
    if (hosts == 0) return;
    if (!launch_.nodes) launch_.nodes = hosts;
    if (!launch_.gpus) launch_.gpus = slots;
  }

  // Hands on what stands behind the dashes of "axolotl train x.yaml --launcher torchrun --
  // --nproc_per_node=2".
  void hand_on_to_launcher() {
    const auto dashes = std::find_if(words_.begin(), words_.end(),
                                     [](const ShellWord& word) { return word.text == "--"; });
    if (dashes == words_.end() || !launch_.program.starts_with("axolotl")) return;
    const CommandWords own(words_.begin(), dashes);
    std::string name = "accelerate";
    for (std::size_t i = 0; i < own.size(); ++i) {
      constexpr std::string_view option = "--launcher";
      if (own[i].text == option && i + 1 < own.size()) name = own[i + 1].text;
      if (own[i].text.starts_with(fmt::format("{}=", option)))
        name = own[i].text.substr(option.size() + 1);
    }
    launch_.arguments.assign(own.begin(), own.end());
    words_ = CommandWords(dashes + 1, words_.end());
    for (const Launcher& each : known_.launchers)
      if (program_in(each.called.front()).starts_with(name)) options_of(each);
    words_ = {};
  }

  // Counts what the queue is asked for where no launcher says it.
  void count_asked() {
    const SlurmCounts asked = slurm_counts(asked_);
    if (!launch_.nodes) launch_.nodes = asked.nodes;
    if (!launch_.gpus && launch_.file.text.empty())
      launch_.gpus = asked.gpus ? asked.gpus : by_slurm_ ? asked.tasks : std::nullopt;
    launch_.gpu = asked.gpu;
    const auto queue = asked_.find("partition");
    if (queue != asked_.end()) launch_.queue = queue->second;
    std::erase_if(launch_.unknown, [&](const UnknownCount& each) {
      return (each.nodes ? launch_.nodes : launch_.gpus).has_value();
    });
  }

  // Reads "localhost:0,1,2".
  void include_devices(const std::string& text) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos || text.find('@') != std::string::npos) return;
    launch_.gpus =
        1 + std::count(text.begin() + static_cast<std::ptrdiff_t>(colon), text.end(), ',');
  }

  // One that is started by its own name.
  void named_program() {
    const std::string name = program_in(words_.front().text);
    if (holds(known_.programs, name) && words_.size() > 1) {
      const bool by_options = is_option(words_[1]);
      launch_.program = by_options ? name : fmt::format("{} {}", name, words_[1].text);
      by_slurm_ = false;
      drop(by_options ? 1 : 2);
    } else if (name.ends_with(".py")) {
      take_program();
    }
  }

  // One process where the variables do not say it.
  void count_processes() {
    const std::string name = launch_.program.substr(0, launch_.program.find(' '));
    if (launch_.gpus || !holds(known_.on_their_own, name)) return;
    const auto told = [&](const std::string& variable) {
      const auto place = launch_.environment.find(variable);
      return place == launch_.environment.end() ? std::nullopt : whole_number(place->second.text);
    };
    launch_.gpus = told(known_.gpus_told);
    if (!launch_.gpus && !holds(known_.on_all_gpus, name)) launch_.gpus = 1;
    launch_.nodes = told(known_.nodes_told);
  }

  void count_devices() {
    for (const char* name :
         {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"}) {
      const auto place = launch_.environment.find(name);
      if (launch_.gpus || place == launch_.environment.end()) continue;
      const std::string& text = place->second.text;
      if (!text.empty() && place->second.unknown.empty() && is_digit(text.front()))
        launch_.gpus = 1 + std::count(text.begin(), text.end(), ',');
    }
  }

  const KnownLaunchers& known_;
  const ShellScript& script_;
  CommandWords words_;
  std::map<std::string, std::string> asked_;  // of the queue, by name
  Launch launch_{};
  bool per_node_ = false;
  bool by_slurm_ = false;  // srun starts the processes themselves
  bool interpreted_ = false;
};

// Returns a word of a script as a value of YAML: numbers and truths as they are, all else in
// quotes.
std::string yaml_value(const std::string& text) {
  const bool number = !text.empty() &&
                      text.find_first_not_of("0123456789.+-eE") == std::string::npos &&
                      text.find_first_of("0123456789") != std::string::npos;
  if (number || text == "true" || text == "false") return text;
  // Python's int() takes 1_000 for 1000.
  if (!text.empty() && is_digit(text.front()) && is_digit(text.back()) &&
      text.find_first_not_of("0123456789_") == std::string::npos) {
    std::string digits = text;
    std::erase(digits, '_');
    return digits;
  }
  if (text == "True" || text == "False") return text == "True" ? "true" : "false";
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') result += '\\';
    if (byte < 0x20 || byte == 0x7f)
      result += ' ';
    else
      result += c;
  }
  return result + '"';
}

}  // namespace

std::vector<Launch> launches_in(const Catalogue& data, const ShellScript& script) {
  const KnownLaunchers known = known_launchers(data);
  std::vector<Launch> launches;
  for (const ShellCommand& command : script.commands)
    if (auto launch = CommandReader(known, script, command).read())
      launches.push_back(std::move(*launch));
  return launches;
}

ShellWord low_lined(ShellWord word) {
  if (!is_option(word) || !word.text.starts_with("--")) return word;
  const auto begin = word.text.begin() + 2;
  std::replace(begin, std::find(begin, word.text.end(), '='), '-', '_');
  return word;
}

Arguments named_arguments(const std::vector<ShellWord>& words, const std::string& file,
                          std::span<const std::string> flags) {
  std::vector<NamedValue> all;
  std::vector<UnknownArgument> unknown;
  std::vector<ShellWord> others;
  for (std::size_t i = 0; i < words.size();) {
    const ShellWord& word = words[i++];
    if (!is_option(word)) {
      others.push_back(word);
      continue;
    }
    const std::size_t sign = word.text.find('=');
    const std::size_t from = word.text.find_first_not_of('-');
    NamedValue named{word.text.substr(from, sign == std::string::npos ? sign : sign - from), "",
                     word.line};
    std::vector<ShellWord> values;
    if (sign != std::string::npos) {
      values.push_back(word);
      values.back().text = word.text.substr(sign + 1);
    } else if (std::find(flags.begin(), flags.end(), named.key) == flags.end()) {
      while (i < words.size() && !is_option(words[i])) {
        // All that a variable holds is as likely more arguments, if it stands behind a value.
        const bool all_unknown = words[i].text.empty() && !words[i].unknown.empty();
        (all_unknown && !values.empty() ? others : values).push_back(words[i++]);
      }
    }
    if (values.empty()) named.value = "true";
    for (const ShellWord& value : values)
      named.value += (named.value.empty() ? "" : ", ") + yaml_value(value.text);
    if (values.size() > 1) named.value = "[" + named.value + "]";
    std::erase_if(all, [&](const NamedValue& each) { return each.key == named.key; });
    std::erase_if(unknown, [&](const UnknownArgument& each) { return each.key == named.key; });
    const auto place = std::find_if(values.begin(), values.end(),
                                    [](const ShellWord& each) { return !each.unknown.empty(); });
    if (place != values.end())
      unknown.push_back(
          {named.key, {place->text, named.line, place->unknown, place->variable, place->tail}});
    else
      all.push_back(std::move(named));
  }
  return {document_in_lines(std::move(all), file), std::move(others), std::move(unknown)};
}

Document document_in_lines(std::vector<NamedValue> all, const std::string& file) {
  std::stable_sort(all.begin(), all.end(),
                   [](const NamedValue& a, const NamedValue& b) { return a.line < b.line; });
  // A flow mapping may spread over as many lines as there are.
  std::string text = "{";
  int line = 1;
  for (const NamedValue& each : all) {
    for (; line < each.line; ++line) text += '\n';
    text += fmt::format(" {}: {},", yaml_value(each.key), each.value);
  }
  return parse_document(text + "}", file);
}

std::string unknown_argument_message(const UnknownArgument& argument) {
  const std::string& name = argument.word.variable.empty() ? argument.key : argument.word.variable;
  return fmt::format("depends on {}: --set {}=... says it", argument.word.unknown, name);
}

}  // namespace stepsim
