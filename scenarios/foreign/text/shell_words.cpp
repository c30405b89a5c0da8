#include "scenarios/foreign/text/shell_words.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <optional>

#include "scenarios/foreign/text/near_files.hpp"
#include "scenarios/foreign/text/shell_expansion.hpp"
#include "scenarios/foreign/text/shell_tests.hpp"
#include "scenarios/foreign/text/slurm_words.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_commands = 5000, most_turns = 64;
constexpr int deepest_call = 24;

class ScriptReader {
 public:
  ScriptReader(const std::string& file, std::span<const std::pair<std::string, std::string>> given)
      : memory_{file, {given.begin(), given.end()}} {
    result_.file = file;
  }

  ShellScript read(std::string_view text) {
    read_directives(text);
    walk_text(shell_text(text, 1));
    result_.names = std::move(memory_.names);
    return std::move(result_);
  }

 private:
  ShellState& state() { return memory_.state; }
  bool stopped() {
    return state().ended || state().returned || result_.commands.size() >= most_commands ||
           steps_ >= 20 * most_commands;
  }

  // Lines for the queue, which are comments to the shell.
  void read_directives(std::string_view text) {
    int line = 0;
    std::map<std::string, int> lines;
    for (const std::string_view all : lines_in(text)) {
      ++line;
      constexpr std::string_view mark = "#SBATCH ";
      if (!all.starts_with(mark)) continue;
      std::string_view said = all.substr(mark.size());
      said = said.substr(0, said.find('#'));
      std::vector<std::string> words;
      for (std::size_t begin = said.find_first_not_of(" \t\r"); begin < said.size();
           begin = said.find_first_not_of(" \t\r")) {
        said.remove_prefix(begin);
        words.emplace_back(said.substr(0, said.find_first_of(" \t\r")));
        said.remove_prefix(words.back().size());
      }
      for (const auto& [key, value] : slurm_options(words)) {
        result_.directives[key] = value;
        lines[key] = line;
      }
    }
    // The queue gives the job a number, which a script asks for to know whether it runs there.
    if (!result_.directives.empty())
      for (const char* name : {"SLURM_JOB_ID", "SLURM_JOBID"})
        state().variables[name] = {{{memory_.unknown("the number of the job", name, 1)}}, false};
    const SlurmCounts counts = slurm_counts(result_.directives);
    const auto tell = [&](std::initializer_list<const char*> names,
                          const std::optional<std::int64_t>& count, const char* key) {
      if (!count) return;
      for (const char* name : names)
        state().variables[name] = {{shell_text(std::to_string(*count), lines[key])}, false};
    };
    tell({"SLURM_NNODES", "SLURM_JOB_NUM_NODES"}, counts.nodes, "nodes");
    tell({"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"}, counts.gpus, "gres");
    tell({"SLURM_NTASKS_PER_NODE"}, counts.tasks, "ntasks-per-node");
    if (counts.tasks)
      tell({"SLURM_NTASKS", "SLURM_NPROCS"}, *counts.tasks * counts.nodes.value_or(1), "ntasks");
  }

  ShellVerdict walk_text(const ShellText& text) {
    nodes_.push_back(parse_shell(text, memory_.file));
    return walk(nodes_.back());
  }

  ShellVerdict walk(const ShellNode& node) {
    if (stopped()) return ShellVerdict::open;
    ++steps_;
    return turned(walk_kind(node), node.negated);
  }

  ShellVerdict walk_kind(const ShellNode& node) {
    switch (node.kind) {
      case ShellKind::simple:
        return simple(node);
      case ShellKind::list:
        return list(node);
      case ShellKind::condition:
        return condition(node, 0);
      case ShellKind::cases:
        return cases(node);
      case ShellKind::repetition:
        return repetition(node);
      case ShellKind::loop:
        return loop(node);
      case ShellKind::function:
        functions_[plain(node.words.front())] = &node.nodes.front();
        return ShellVerdict::yes;
      case ShellKind::subshell:
        return subshell(node);
    }
    return ShellVerdict::open;
  }

  ShellVerdict list(const ShellNode& node) {
    ShellVerdict last = ShellVerdict::yes;
    for (const ShellNode& each : node.nodes) {
      if (stopped()) break;
      if (each.link == ShellLink::then || each.link == ShellLink::pipe) {
        last = walk(each);
        continue;
      }
      const ShellVerdict wanted =
          each.link == ShellLink::if_well ? ShellVerdict::yes : ShellVerdict::no;
      if (last == ShellVerdict::ran) last = ShellVerdict::yes;
      if (last == wanted) {
        last = walk(each);
      } else if (last == ShellVerdict::open) {
        perhaps(each, each.line, each.link == ShellLink::if_well ? "&&" : "||");
      }
    }
    return last;
  }

  // Read, but it may be that a run would not come to it.
  void perhaps(const ShellNode& node, int line, std::string_view block) {
    const ShellState without = state();
    walk(node);
    merge(without, line, block);
  }

  // Merges the states of two ways through the script: what they set differently is not known behind
  // them.
  void merge(const ShellState& other, int line, std::string_view block) {
    if (other.ended || other.returned) return;
    if (state().ended || state().returned) {
      state() = other;
      return;
    }
    std::set<std::string> names;
    for (const auto& [name, value] : state().variables) names.insert(name);
    for (const auto& [name, value] : other.variables) names.insert(name);
    for (const std::string& name : names) {
      const auto one = state().variables.find(name);
      const auto two = other.variables.find(name);
      const bool both = one != state().variables.end() && two != other.variables.end();
      if (both && texts(one->second) == texts(two->second)) continue;
      state().variables[name] = {
          {{memory_.unknown(fmt::format("the `{}` of line {}", block, line), name, line)}}, false};
    }
    state().exported.insert(other.exported.begin(), other.exported.end());
  }
  static std::vector<std::string> texts(const ShellValue& value) {
    std::vector<std::string> result;
    for (const ShellText& item : value.items) {
      std::string& text = result.emplace_back(plain(item));
      for (const Letter& letter : item)
        if (letter.unknown >= 0) text += fmt::format("\n{}", letter.unknown);
    }
    return result;
  }

  // Returns whether none of the commands from this one on starts anything.
  bool only_talks(std::size_t from) const {
    const auto begin = result_.commands.begin() + static_cast<std::ptrdiff_t>(from);
    return std::all_of(begin, result_.commands.end(), [](const ShellCommand& command) {
      const std::string& name = command.words.front().text;
      return name == "echo" || name == "printf" || name == "cat";
    });
  }

  // A script that wants words on its command line fails where it has none. Nobody starts it so.
  ShellVerdict decided_yes(const ShellNode& node, const ShellNode& block) {
    ShellState before = state();
    const std::size_t commands = result_.commands.size();
    const ShellVerdict last = walk(block);
    if (!state().failed || !only_talks(commands)) return last;
    state() = std::move(before);
    result_.notes.push_back(
        fmt::format("the `if` of line {} ends the script with a failure: read on as if it did not "
                    "hold",
                    node.line));
    return ShellVerdict::yes;
  }

  ShellVerdict condition(const ShellNode& node, std::size_t from) {
    if (from >= node.nodes.size()) return ShellVerdict::yes;
    if (from + 1 == node.nodes.size()) return walk(node.nodes[from]);
    const ShellVerdict decided = walk(node.nodes[from]);
    if (decided == ShellVerdict::yes) return decided_yes(node, node.nodes[from + 1]);
    if (decided == ShellVerdict::no) return condition(node, from + 2);
    ShellState before = state();
    walk(node.nodes[from + 1]);
    std::swap(before, state());
    condition(node, from + 2);
    merge(before, node.line, "if");
    return ShellVerdict::open;
  }

  ShellVerdict cases(const ShellNode& node) {
    const ShellText subject = expand_text(node.words.front(), memory_);
    if (has_unknown(subject)) {
      for (const ShellNode& each : node.nodes) perhaps(each, node.line, "case");
      return ShellVerdict::open;
    }
    const std::string text = plain(subject);
    for (std::size_t i = 0; i < node.nodes.size(); ++i)
      for (const ShellText& pattern : node.patterns[i])
        if (fnmatch(plain(expand_text(pattern, memory_)).c_str(), text.c_str(), 0) == 0)
          return walk(node.nodes[i]);
    return ShellVerdict::yes;
  }

  ShellVerdict repetition(const ShellNode& node) {
    if (node.words.empty()) {  // for ((...)) sets what nobody counts here
      perhaps(node.nodes.front(), node.line, "for");
      return ShellVerdict::open;
    }
    std::vector<ShellText> values;
    for (std::size_t i = 1; i < node.words.size(); ++i)
      for (ShellText& each : expand_word(node.words[i], memory_)) values.push_back(std::move(each));
    if (values.size() > 1)
      result_.notes.push_back(
          fmt::format("the `for` of line {} is read turn by turn, first with {}", node.line,
                      plain(values.front())));
    for (std::size_t i = 0; i < std::min(values.size(), most_turns) && !stopped(); ++i) {
      memory_.assign(plain(node.words.front()), {{values[i]}, false});
      walk(node.nodes.front());
    }
    return ShellVerdict::yes;
  }

  ShellVerdict loop(const ShellNode& node) {
    std::size_t turns = 0;
    ShellVerdict decided = walk(node.nodes[0]);
    while (decided == ShellVerdict::yes && ++turns < most_turns && !stopped()) {
      walk(node.nodes[1]);
      decided = walk(node.nodes[0]);
    }
    if (decided == ShellVerdict::open || decided == ShellVerdict::ran)
      perhaps(node.nodes[1], node.line, "while");
    return ShellVerdict::yes;
  }

  ShellVerdict subshell(const ShellNode& node) {
    const ShellState before = state();
    const ShellVerdict last = walk(node.nodes.front());
    state() = before;
    return last;
  }

  // ---- single commands ----

  // NAME=value, NAME+=value, NAME=(...) or NAME[2]=value.
  struct Assignment {
    std::string name{};
    ShellText value{};
    bool adds = false, list = false, part = false;
  };
  static std::optional<Assignment> assignment_in(const ShellText& word) {
    const std::string text = plain(word);
    const std::size_t sign = text.find('=');
    if (sign == std::string::npos || sign == 0 ||
        has_unknown({word.begin(), word.begin() + static_cast<std::ptrdiff_t>(sign)}))
      return std::nullopt;
    Assignment result;
    result.adds = text[sign - 1] == '+';
    result.name = text.substr(0, sign - (result.adds ? 1 : 0));
    if (const std::size_t bracket = result.name.find('[');
        bracket != std::string::npos && result.name.ends_with(']')) {
      result.part = true;
      result.name.resize(bracket);
    }
    if (!is_shell_name(result.name)) return std::nullopt;
    result.value.assign(word.begin() + static_cast<std::ptrdiff_t>(sign) + 1, word.end());
    result.list =
        !result.value.empty() && result.value.front().c == '(' && result.value.back().c == ')';
    return result;
  }

  ShellValue value_in(const Assignment& said) {
    if (!said.list) return {{expand_text(said.value, memory_)}, false};
    ShellValue result{{}, true};
    const ShellText inside(said.value.begin() + 1, said.value.end() - 1);
    for (const ShellText& raw : words_of_list(inside, memory_.file))
      for (ShellText& item : expand_word(raw, memory_)) result.items.push_back(std::move(item));
    return result;
  }

  void assign(const Assignment& said) {
    ShellValue value = value_in(said);
    const auto before = state().variables.find(said.name);
    if (said.part) {
      const int line = said.value.empty() ? 0 : said.value.front().line;
      value = {{{memory_.unknown(fmt::format("single entries of {}", said.name), said.name, line)}},
               true};
    } else if (said.adds && before != state().variables.end()) {
      ShellValue whole = before->second;
      if (said.list || whole.list) {
        whole.list = true;
        whole.items.insert(whole.items.end(), value.items.begin(), value.items.end());
      } else if (!value.items.empty() && !whole.items.empty()) {
        ShellText& text = whole.items.front();
        text.insert(text.end(), value.items.front().begin(), value.items.front().end());
      }
      value = std::move(whole);
    }
    std::size_t size = 0;
    for (const ShellText& item : value.items) size += item.size() + 1;
    if (size > largest_script)
      throw UserError({{memory_.file, 0, "", fmt::format("{} becomes too long", said.name)}});
    memory_.assign(said.name, std::move(value));
  }

  ShellVerdict simple(const ShellNode& node) {
    std::size_t from = 0;
    std::vector<Assignment> before;
    for (; from < node.words.size(); ++from)
      if (auto said = assignment_in(node.words[from]))
        before.push_back(std::move(*said));
      else
        break;
    if (from == node.words.size()) {
      for (const Assignment& said : before) assign(said);
      return ShellVerdict::yes;
    }
    const std::string first = plain(node.words[from]);
    if (first == "((") return arithmetic(node);
    if (is_declaration(first)) return declaration(node, from);
    std::vector<ShellText> words;
    for (; from < node.words.size(); ++from)
      for (ShellText& word : expand_word(node.words[from], memory_))
        words.push_back(std::move(word));
    if (words.empty()) return ShellVerdict::yes;
    return command(node, words, before);
  }

  ShellVerdict arithmetic(const ShellNode& node) {
    const ShellText value = expand_arithmetic(node.words[1], node.line, memory_);
    return has_unknown(value) ? ShellVerdict::open : verdict(plain(value) != "0");
  }

  static bool is_declaration(std::string_view word) {
    return word == "export" || word == "declare" || word == "local" || word == "readonly" ||
           word == "typeset";
  }
  ShellVerdict declaration(const ShellNode& node, std::size_t from) {
    const bool exports = plain(node.words[from]) == "export";
    while (++from < node.words.size()) {
      const auto said = assignment_in(node.words[from]);
      if (said) assign(*said);
      if (exports) state().exported.insert(said ? said->name : plain(node.words[from]));
    }
    return ShellVerdict::yes;
  }

  // Makes what nothing sets empty, as a test and ${X:-Y} take it; elsewhere it is not known.
  std::vector<ShellText> with_unset_empty(Fields words) const {
    std::vector<ShellText> result(words.begin(), words.end());
    for (ShellText& word : result)
      std::erase_if(word, [&](const Letter& letter) {
        return letter.unknown >= 0 &&
               memory_.unknowns[static_cast<std::size_t>(letter.unknown)].unset;
      });
    return result;
  }

  ShellVerdict command(const ShellNode& node, std::vector<ShellText>& words,
                       const std::vector<Assignment>& before) {
    const std::string first = plain(words.front());
    keep_file(node, first);
    if (const auto place = functions_.find(first); place != functions_.end())
      return call(*place->second, words);
    if (first == "[[" || first == "[" || first == "test") {
      Fields rest(words.begin() + 1, words.end());
      if (first == "[" && !rest.empty()) rest = rest.first(rest.size() - 1);
      if (asks_for_emptiness(rest)) return tested(with_unset_empty(rest));
      return tested(rest);
    }
    if (first == "exit" || first == "return") {
      const bool well = words.size() < 2 || plain(words[1]) == "0";
      (first == "exit" ? state().ended : state().returned) = true;
      state().failed = first == "exit" && !well && !has_unknown(words[1]);
      return verdict(well);
    }
    if (const auto done = builtin(node, first, words)) return *done;
    record(node, words, before);
    return ShellVerdict::ran;
  }

  std::optional<ShellVerdict> builtin(const ShellNode& node, const std::string& first,
                                      std::vector<ShellText>& words) {
    if (first == "true" || first == ":") return ShellVerdict::yes;
    if (first == "false") return ShellVerdict::no;
    if (first == "read" || first == "mapfile" || first == "readarray") return read_in(node, words);
    if (first == "unset") {
      for (const ShellText& word : words) state().variables.erase(plain(word));
      return ShellVerdict::yes;
    }
    if (first == "shift") {
      auto& arguments = state().variables["@"].items;
      const std::size_t count =
          words.size() > 1 ? static_cast<std::size_t>(std::max<std::int64_t>(
                                 0, number_from<std::int64_t>(plain(words[1])).value_or(1)))
                           : 1;
      arguments.erase(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(std::min(
                                                                 count, arguments.size())));
      return ShellVerdict::yes;
    }
    if (first == "set" && words.size() > 1 && plain(words[1]) == "--") {
      state().variables["@"] = {{words.begin() + 2, words.end()}, true};
      return ShellVerdict::yes;
    }
    if (first == "eval") return nested(words, 1);
    if ((first == "source" || first == ".") && words.size() > 1) return included(node, words[1]);
    return std::nullopt;
  }

  // Words that are a script of their own: of eval, and of bash -c.
  ShellVerdict nested(const std::vector<ShellText>& words, std::size_t from) {
    ShellText text;
    for (std::size_t i = from; i < words.size(); ++i) {
      text.insert(text.end(), words[i].begin(), words[i].end());
      text.push_back({' ', words[i].empty() ? 0 : words[i].back().line});
    }
    if (++depth_ > deepest_call) return --depth_, ShellVerdict::open;
    const ShellVerdict last = walk_text(text);
    --depth_;
    return last;
  }

  // Finds a file of commands beside the script, or in the repository that it lies in. Others are
  // the machine's own.
  std::optional<std::string> file_of_commands(const ShellText& name) const {
    namespace fs = std::filesystem;
    const std::string said = plain(name);
    const fs::path folder = fs::path(memory_.file).parent_path();
    std::error_code failed;
    const bool below = fs::path(said).is_relative() || said.starts_with(folder.string() + "/");
    std::optional<std::string> found;
    for (const fs::path& place : {fs::path(said), folder / said})
      if (below && !found && !has_unknown(name) && fs::is_regular_file(place, failed))
        found = place.string();
    if (!found) found = find_above(memory_.file, said);
    if (found && fs::file_size(*found, failed) > largest_script) found.reset();
    return found;
  }

  // Reads such a file as if it stood here; what one that is not found sets is not known.
  ShellVerdict included(const ShellNode& node, const ShellText& name, bool queued = false) {
    const auto found = file_of_commands(name);
    if (!found) {
      memory_.elsewhere = true;
      return ShellVerdict::ran;
    }
    if (++depth_ > deepest_call) return --depth_, ShellVerdict::open;
    const std::string script = read_text(*found);
    if (queued && result_.directives.empty()) read_directives(script);
    ShellText text = shell_text(script, node.line);
    for (Letter& letter : text) letter.line = node.line;
    const ShellVerdict last = walk_text(text);
    state().returned = false;
    --depth_;
    return last == ShellVerdict::no ? ShellVerdict::yes : last;
  }

  // Another script that a command starts, `srun bash train.sh 8`, is read as if it stood here, in a
  // process of its own. Returns false where none is there, or the script starts itself.
  bool started(const ShellNode& node, const std::vector<ShellText>& words,
               const std::vector<Assignment>& before) {
    constexpr std::array starters{"bash", "sh", "sbatch", "srun", "nohup", "exec", "time"};
    const auto is_script = [](const ShellText& word) {
      const std::string text = plain(word);
      return text.ends_with(".sh") || text.ends_with(".slurm") || text.ends_with(".sbatch");
    };
    constexpr std::array others{"python", "torchrun", "accelerate", "deepspeed"};
    const auto place = std::ranges::find_if(words, is_script);
    const bool an_argument = std::any_of(words.begin(), place, [&](const ShellText& word) {
      return std::ranges::any_of(
          others, [text = plain(word)](const char* each) { return text.starts_with(each); });
    });
    const std::string first = plain(words.front());
    const std::string name = std::filesystem::path(first).filename().string();
    if (place == words.end() || an_argument ||
        (place != words.begin() && std::ranges::find(starters, name) == starters.end()))
      return false;
    const auto file = file_of_commands(*place);
    if (!file ||
        std::filesystem::path(*file).filename() == std::filesystem::path(memory_.file).filename())
      return false;
    const ShellState outer = state();
    for (const Assignment& said : before) {
      assign(said);
      state().exported.insert(said.name);
    }
    state().variables["@"] = {{place + 1, words.end()}, true};
    const std::size_t known = result_.commands.size();
    included(node, *place, name == "sbatch");
    state() = outer;
    if (result_.commands.size() > known)
      result_.notes.push_back(fmt::format("line {} starts {}, which is read as a part of it",
                                          node.line, plain(*place)));
    return true;
  }

  ShellVerdict call(const ShellNode& body, std::vector<ShellText>& words) {
    if (++depth_ > deepest_call) return --depth_, ShellVerdict::open;
    const ShellValue outer = state().variables["@"];
    state().variables["@"] = {{words.begin() + 1, words.end()}, true};
    const ShellVerdict last = walk(body);
    state().variables["@"] = outer;
    state().returned = false;
    --depth_;
    return last;
  }

  // Plays read -r -d '' NAME <<EOF, and the like.
  ShellVerdict read_in(const ShellNode& node, const std::vector<ShellText>& words) {
    std::vector<std::string> names;
    bool whole = false;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string word = plain(words[i]);
      constexpr std::string_view with_value = "dnNtupiks";
      if (!word.starts_with('-')) {
        if (is_shell_name(word)) names.push_back(word);
      } else if (word.size() > 1 && with_value.find(word.back()) != std::string_view::npos) {
        whole = whole || word.back() == 'd';
        ++i;
      }
    }
    if (names.empty()) return ShellVerdict::open;
    for (const ShellRedirection& each : node.redirections) {
      if (names.size() > 1 || !whole || (!each.sign.starts_with("<<"))) continue;
      ShellText text = each.sign == "<<<" ? expand_text(each.target, memory_) : body_of(each);
      const auto is_end = [](const Letter& letter) {
        return letter.c == '\n' && letter.unknown < 0;
      };
      while (!text.empty() && is_end(text.back())) text.pop_back();
      memory_.assign(names.front(), {{std::move(text)}, false});
      return ShellVerdict::yes;
    }
    for (const std::string& name : names)
      memory_.assign(name, {{{memory_.unknown(fmt::format("`{}` of line {}, which is not run",
                                                          plain(words.front()), node.line),
                                              name, node.line)}},
                            false});
    return ShellVerdict::open;
  }

  ShellText body_of(const ShellRedirection& here) {
    return here.literal ? here.body : expand_document(here.body, memory_);
  }

  // Keeps the file of cat > FILE << EOF, or cat << EOF > FILE.
  void keep_file(const ShellNode& node, const std::string& first) {
    if (first != "cat" && first != "tee") return;
    const ShellRedirection *target = nullptr, *here = nullptr;
    for (const ShellRedirection& each : node.redirections) {
      if (each.sign == ">" || each.sign == ">|") target = &each;
      if (each.sign == "<<" || each.sign == "<<-") here = &each;
    }
    if (here == nullptr || (target == nullptr && first == "cat")) return;
    const ShellText name = target != nullptr       ? target->target
                           : node.words.size() > 1 ? node.words[1]
                                                   : ShellText{};
    const ShellText body = body_of(*here);
    result_.files[plain(expand_text(name, memory_))] = {
        plain(body), body.empty() ? node.line : body.front().line};
  }

  ShellWord word_of(const ShellText& text, int line) const {
    ShellWord word{plain(text), text.empty() ? line : text.front().line};
    const auto last = std::find_if(text.rbegin(), text.rend(),
                                   [](const Letter& letter) { return letter.unknown >= 0; });
    if (last != text.rend()) word.tail = plain({last.base(), text.end()});
    for (const Letter& letter : text) {
      if (letter.unknown < 0) continue;
      const ShellUnknown& unknown = memory_.unknowns[static_cast<std::size_t>(letter.unknown)];
      word.unknown = unknown.reason;
      word.variable = unknown.variable;
      break;
    }
    return word;
  }

  // NAME=value before a shell's own words: of env, of docker's -e, and by the names that
  // Singularity and Apptainer hand on.
  void export_into_container(const ShellText& word) {
    const auto sign =
        std::ranges::find_if(word, [](const Letter& letter) { return letter.c == '='; });
    if (sign == word.end()) return;
    std::string name = plain({word.begin(), sign});
    for (const std::string_view front : {"SINGULARITYENV_", "APPTAINERENV_"})
      if (name.starts_with(front)) name.erase(0, front.size());
    if (!is_shell_name(name)) return;
    state().exported.insert(name);
    memory_.assign(name, {{ShellText{sign + 1, word.end()}}, false});
  }

  void record(const ShellNode& node, const std::vector<ShellText>& words,
              const std::vector<Assignment>& before) {
    // bash -c "..." has a script in its last word.
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      const std::string shell = plain(words[i]), option = plain(words[i + 1]);
      if ((shell == "bash" || shell == "sh" || shell.ends_with("/bash") ||
           shell.ends_with("/sh")) &&
          option.starts_with('-') && !option.starts_with("--") && option.ends_with('c')) {
        for (std::size_t j = 0; j < i; ++j) export_into_container(words[j]);
        nested({words[i + 2]}, 0);
        return;
      }
    }
    if (started(node, words, before)) return;
    ShellCommand& command = result_.commands.emplace_back();
    command.line = node.line;
    for (const ShellText& word : words) command.words.push_back(word_of(word, node.line));
    for (const std::string& name : state().exported) {
      const auto place = state().variables.find(name);
      if (place == state().variables.end() || place->second.items.empty()) continue;
      command.environment[name] = word_of(place->second.items.front(), node.line);
      if (const auto given = memory_.given.find(name); given != memory_.given.end())
        command.environment[name] = {given->second, node.line};
    }
    for (const Assignment& said : before)
      command.environment[said.name] = word_of(expand_text(said.value, memory_), node.line);
  }

  ShellMemory memory_;
  ShellScript result_{};
  std::deque<ShellNode> nodes_{};  // functions point into these
  std::map<std::string, const ShellNode*> functions_{};
  std::size_t steps_ = 0;
  int depth_ = 0;
};

}  // namespace

const ShellFile* written_file(const ShellScript& script, const std::string& name) {
  for (const std::string& each : {name, std::filesystem::path(name).filename().string()})
    if (const auto place = script.files.find(each); place != script.files.end())
      return &place->second;
  return nullptr;
}

ShellScript read_shell_script(std::string_view text, const std::string& file,
                              std::span<const std::pair<std::string, std::string>> given) {
  if (text.size() > largest_script)
    throw UserError({{file, 0, "", "is too large for a script: more than 1 MiB"}});
  if (text.find('\0') != std::string_view::npos)
    throw UserError({{file, 0, "", "is no text: it holds a byte that is 0"}});
  return ScriptReader(file, given).read(text);
}

}  // namespace stepsim
