#include "scenarios/foreign/text/shell_expansion.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

#include "scenarios/foreign/text/shell_arithmetic.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

bool is_name_letter(char c) {
  return is_letter_or_digit(c) || c == '_';
}

ShellText part(const ShellText& text, std::size_t from, std::size_t to) {
  to = std::min(to, text.size());
  if (from >= to) return {};
  return {text.begin() + static_cast<std::ptrdiff_t>(from),
          text.begin() + static_cast<std::ptrdiff_t>(to)};
}

// Quotes the text as a message does: in one line, not too long.
std::string quoted_short(const ShellText& text) {
  constexpr std::size_t longest = 48;
  std::string result;
  for (const char c : plain(text)) {
    if (result.size() >= longest) return result + "...";
    result += c == '\n' || c == '\t' ? ' ' : c;
  }
  return result;
}

// Puts words together piece by piece.
class Expansion {
 public:
  enum class Quotes : bool { open_words, letters };
  Expansion(ShellMemory& memory, bool splits, Quotes quotes = Quotes::open_words)
      : memory_(memory), splits_(splits), quotes_(quotes) {}

  void read(const ShellText& raw, bool quoted) {
    for (std::size_t i = 0; i < raw.size();) {
      const Letter& letter = raw[i];
      const char c = letter.unknown < 0 ? letter.c : '\0';
      const bool quote = quoted && (c == '\'' || c == '"');
      const std::size_t end = quote ? i + 1 : behind_piece(raw, i, memory_.file);
      if (quote) {
        // "${X:-"y"}": those inside do nothing.
        if (c == '\'' || quotes_ == Quotes::letters) append({letter});
      } else if (c == '\\') {
        backslash(raw, i, quoted);
      } else if (c == '\'') {
        append(part(raw, i + 1, end - 1));
      } else if (c == '"') {
        emptied_ = false;
        read(part(raw, i + 1, end - 1), true);
        open_ = open_ || !emptied_;
      } else if (c == '`') {
        substitution(part(raw, i, end), letter.line);
      } else if (c == '$') {
        i = dollar(raw, i, end, quoted);
        continue;
      } else if ((c == '<' || c == '>') && !quoted && i + 1 < raw.size() && raw[i + 1].c == '(') {
        substitution(raw, letter.line);
        return;
      } else {
        append({letter});
      }
      i = end;
    }
  }

  std::vector<ShellText> finish() {
    if (open_) fields_.push_back(std::move(current_));
    return std::move(fields_);
  }

 private:
  void append(const ShellText& text) {
    open_ = true;
    size_ += text.size();
    if (size_ > largest_script)
      throw UserError({{memory_.file, text.front().line, "", "a word becomes too long"}});
    current_.insert(current_.end(), text.begin(), text.end());
  }
  void break_here() {
    if (open_) fields_.push_back(std::move(current_));
    current_.clear();
    open_ = false;
  }
  // Appends the value of something without quotes.
  void append_splitting(const ShellText& text) {
    for (const Letter& letter : text)
      if (letter.unknown < 0 && (letter.c == ' ' || letter.c == '\t' || letter.c == '\n'))
        break_here();
      else
        append({letter});
  }
  void append_value(const ShellText& text, bool quoted) {
    if (quoted || !splits_) {
      append(text);
    } else {
      append_splitting(text);
    }
  }
  void append_values(const std::vector<ShellText>& values, bool quoted) {
    emptied_ = values.empty();
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (i > 0 && splits_) break_here();
      if (i > 0 && !splits_) append({{' ', values[i].empty() ? 0 : values[i].front().line}});
      append_value(values[i], quoted);
      if (quoted) open_ = true;
    }
  }

  void backslash(const ShellText& raw, std::size_t at, bool quoted) {
    if (at + 1 >= raw.size()) return append({raw[at]});
    const char next = raw[at + 1].c;
    if (next == '\n') return;
    if (quoted && next != '$' && next != '`' && next != '"' && next != '\\') append({raw[at]});
    append({raw[at + 1]});
  }

  void substitution(const ShellText& text, int line) {
    append({memory_.unknown(
        fmt::format("{} of line {}, which is not run", quoted_short(text), line), "", line)});
  }

  // Returns what dirname, basename, realpath, `cd FOLDER && pwd` and pwd would print, which only
  // turn a path, as far as it is known.
  std::optional<std::string> path_found(const ShellText& inside) {
    namespace fs = std::filesystem;
    constexpr int deepest = 8;
    if (depth_of_paths_ >= deepest) return std::nullopt;
    std::vector<ShellText> raw = words_of_list(inside, memory_.file);
    std::erase_if(raw, [](const ShellText& word) {
      const std::string text = plain(word);
      return text == "--" || text == "-f" || text == "-P" || text == "-L" || text == "/dev/null";
    });
    const std::string first = raw.empty() ? "" : plain(raw.front());
    if (first == "pwd" && raw.size() == 1) return ".";
    const bool enters = first == "cd" && raw.size() == 3 && plain(raw[2]) == "pwd";
    const bool turns =
        first == "dirname" || first == "basename" || first == "realpath" || first == "readlink";
    if (!enters && (!turns || raw.size() != 2)) return std::nullopt;
    ++depth_of_paths_;
    Expansion expansion(memory_, false);
    expansion.depth_of_paths_ = depth_of_paths_;
    expansion.read(raw[1], false);
    --depth_of_paths_;
    ShellText text;
    for (const ShellText& field : expansion.finish())
      text.insert(text.end(), field.begin(), field.end());
    if (text.empty() || std::any_of(text.begin(), text.end(),
                                    [](const Letter& letter) { return letter.unknown >= 0; }))
      return std::nullopt;
    const fs::path path(plain(text));
    if (first == "basename") return path.filename().string();
    if (first != "dirname") return path.lexically_normal().string();
    return path.has_parent_path() ? path.parent_path().string() : ".";
  }

  // Expands what begins with a dollar at `at`, and returns the place behind it.
  std::size_t dollar(const ShellText& raw, std::size_t at, std::size_t end, bool quoted) {
    const char next = at + 1 < raw.size() && raw[at + 1].unknown < 0 ? raw[at + 1].c : '\0';
    const int line = raw[at].line;
    if (next == '(' && end - at > 4 && raw[at + 2].c == '(' && raw[end - 2].c == ')') {
      append_value(expand_arithmetic(part(raw, at + 3, end - 2), line, memory_), quoted);
      return end;
    }
    constexpr std::string_view reckoned = "$(expr ";  // the same in an older form
    if (const std::size_t begin = at + reckoned.size();
        begin < end && plain(part(raw, at, begin)) == reckoned) {
      append_value(expand_arithmetic(part(raw, begin, end - 1), line, memory_), quoted);
      return end;
    }
    if (next == '(') {
      if (const auto path = path_found(part(raw, at + 2, end - 1)))
        append_value(shell_text(*path, line), quoted);
      else
        substitution(part(raw, at, end), line);
      return end;
    }
    if (next == '{') {
      braces(part(raw, at + 2, end - 1), line, quoted);
      return end;
    }
    if (next == '\'' && !quoted) {
      append(part(raw, at + 2, end - 1));
      return end;
    }
    std::size_t stop = at + 1;
    if (std::string_view("@*#?$!-0123456789").find(next) != std::string_view::npos && next != '\0')
      ++stop;
    else
      while (stop < raw.size() && raw[stop].unknown < 0 && is_name_letter(raw[stop].c)) ++stop;
    if (stop == at + 1)
      append({raw[at]});
    else
      variable(plain(part(raw, at + 1, stop)), "", line, quoted);
    return stop;
  }

  std::optional<ShellValue> value_of(const std::string& name, int line) const {
    const auto& variables = memory_.state.variables;
    memory_.names.insert(name);
    const auto text = [&](std::string_view said) {
      return ShellValue{{shell_text(said, line)}, false};
    };
    if (const auto place = memory_.given.find(name); place != memory_.given.end())
      return text(place->second);
    if (name == "0" || name == "BASH_SOURCE") return text(memory_.file);
    if (name == "?") return text("0");
    const auto arguments = variables.find("@");
    const std::size_t count = arguments == variables.end() ? 0 : arguments->second.items.size();
    if (name == "#") return text(std::to_string(count));
    if (name == "@" || name == "*")
      return ShellValue{count > 0 ? arguments->second.items : std::vector<ShellText>{}, true};
    if (is_digit(name.front())) {
      const std::size_t number = std::stoul(name.substr(0, 4));
      if (number >= 1 && number <= count)
        return ShellValue{{arguments->second.items[number - 1]}, false};
      return std::nullopt;
    }
    const auto place = variables.find(name);
    if (place != variables.end()) return place->second;
    // It does not matter where these are, but what lies below.
    if (name == "HOME") return text("~");
    if (name == "PWD") return text(".");
    return std::nullopt;
  }

  void unset(const std::string& name, int line) {
    const bool argument = is_digit(name.front());
    append({memory_.unknown(fmt::format("{}{}, which nothing sets", argument ? "$" : "", name),
                            name, line)});
    memory_.unknowns.back().unset = true;
  }

  void variable(const std::string& name, const std::string& subscript, int line, bool quoted) {
    const auto value = value_of(name, line);
    if (!value) return unset(name, line);
    append_found(*value, name == "@" || name == "*" ? "@" : subscript, quoted);
  }

  void append_found(const ShellValue& value, const std::string& subscript, bool quoted) {
    if (subscript == "@" || subscript == "*") return append_values(value.items, quoted);
    std::size_t number = 0;
    std::from_chars(subscript.data(), subscript.data() + subscript.size(), number);
    if (number < value.items.size()) append_value(value.items[number], quoted);
    open_ = open_ || quoted;
  }

  struct Parameter {
    std::string name{}, subscript{};
    ShellText rest{};  // the operator, and what stands behind it
    bool length = false;
  };
  static std::optional<Parameter> parameter_in(const ShellText& inside) {
    Parameter result;
    std::size_t at = 0;
    const auto c = [&](std::size_t place) {
      return place < inside.size() && inside[place].unknown < 0 ? inside[place].c : '\0';
    };
    if (c(0) == '#' && inside.size() > 1) {
      result.length = true;
      ++at;
    }
    std::size_t end = at;
    if (std::string_view("@*#?").find(c(at)) != std::string_view::npos && c(at) != '\0')
      ++end;
    else
      while (is_name_letter(c(end))) ++end;
    if (end == at) return std::nullopt;
    result.name = plain(part(inside, at, end));
    if (c(end) == '[') {
      const std::size_t from = ++end;
      while (end < inside.size() && c(end) != ']') ++end;
      result.subscript = plain(part(inside, from, end++));
    }
    result.rest = part(inside, end, inside.size());
    return result;
  }

  void braces(const ShellText& inside, int line, bool quoted) {
    const auto parameter = parameter_in(inside);
    if (!parameter) return not_read(inside, line);
    const auto value = value_of(parameter->name, line);
    if (parameter->length) {
      if (!value) return unset(parameter->name, line);
      const bool list = parameter->subscript == "@" || parameter->subscript == "*";
      const std::size_t size = list                   ? value->items.size()
                               : value->items.empty() ? 0
                                                      : value->items.front().size();
      return append(shell_text(std::to_string(size), line));
    }
    const bool all = parameter->name == "@" || parameter->name == "*";
    const std::string subscript = all ? "@" : parameter->subscript;
    std::string sign = plain(part(parameter->rest, 0, 2));
    const bool colon = sign.starts_with(':');
    if (!colon) sign = sign.substr(0, 1);
    const char kind = sign.empty() ? '\0' : sign.back();
    const ShellText word = part(parameter->rest, sign.size(), parameter->rest.size());
    const bool empty = !value || (colon && is_empty(*value));
    // No environment has lists: one that nothing sets is empty.
    const bool whole_list = subscript == "@" || subscript == "*";
    if (kind == '\0' && !value && whole_list && !memory_.elsewhere)
      return append_values({}, quoted);
    if (kind == '\0') return variable(parameter->name, subscript, line, quoted);
    if (kind == '-' || kind == '=') {
      if (!empty) return append_found(*value, subscript, quoted);
      if (kind == '=') memory_.assign(parameter->name, {{expand_text(word, memory_)}, false});
      open_ = open_ || quoted;
      return read(word, quoted);
    }
    if (kind == '+') return empty ? void() : read(word, quoted);
    if (kind == '?')
      return empty ? unset(parameter->name, line) : append_found(*value, subscript, quoted);
    if (!value) return unset(parameter->name, line);
    if ((kind == '#' || kind == '%') && !colon && value->items.size() == 1)
      return append_value(trimmed(value->items.front(), parameter->rest), quoted);
    not_read(inside, line);
  }

  static bool is_empty(const ShellValue& value) {
    return value.items.empty() || (!value.list && value.items.front().empty());
  }

  void not_read(const ShellText& inside, int line) {
    append({memory_.unknown(
        fmt::format("${{{}}} of line {}, which is not read", quoted_short(inside), line), "",
        line)});
  }

  // Expands ${X%pattern} and the like.
  ShellText trimmed(const ShellText& value, const ShellText& rest) {
    const char sign = rest.front().c;
    const bool longest = rest.size() > 1 && rest[1].c == sign;
    const std::string pattern =
        plain(expand_text(part(rest, longest ? 2 : 1, rest.size()), memory_));
    std::optional<std::size_t> found;
    constexpr std::size_t most = 4096;
    for (std::size_t size = 0; size <= std::min(value.size(), most); ++size) {
      const std::string piece = plain(sign == '#' ? part(value, 0, size)
                                                  : part(value, value.size() - size, value.size()));
      if (fnmatch(pattern.c_str(), piece.c_str(), 0) != 0) continue;
      found = size;
      if (!longest) break;
    }
    if (!found) return value;
    return sign == '#' ? part(value, *found, value.size()) : part(value, 0, value.size() - *found);
  }

  ShellMemory& memory_;
  bool splits_;
  Quotes quotes_;
  bool open_ = false;
  bool emptied_ = false;  // "${LIST[@]}" of nothing is no word
  std::size_t size_ = 0;
  int depth_of_paths_ = 0;
  ShellText current_{};
  std::vector<ShellText> fields_{};
};

ShellText joined(std::vector<ShellText> fields) {
  ShellText result;
  for (ShellText& field : fields) result.insert(result.end(), field.begin(), field.end());
  return result;
}

}  // namespace

Letter ShellMemory::unknown(std::string reason, std::string variable, int line) {
  unknowns.push_back({std::move(reason), std::move(variable)});
  return {0, line, static_cast<int>(unknowns.size()) - 1};
}

void ShellMemory::assign(const std::string& name, ShellValue value) {
  names.insert(name);
  for (const ShellText& item : value.items)
    for (const Letter& letter : item)
      if (letter.unknown >= 0 &&
          unknowns[static_cast<std::size_t>(letter.unknown)].variable.empty())
        unknowns[static_cast<std::size_t>(letter.unknown)].variable = name;
  state.variables[name] = std::move(value);
}

std::vector<ShellText> expand_word(const ShellText& raw, ShellMemory& memory) {
  Expansion expansion(memory, true);
  expansion.read(raw, false);
  return expansion.finish();
}

ShellText expand_text(const ShellText& raw, ShellMemory& memory) {
  Expansion expansion(memory, false);
  expansion.read(raw, false);
  return joined(expansion.finish());
}

ShellText expand_document(const ShellText& raw, ShellMemory& memory) {
  Expansion expansion(memory, false, Expansion::Quotes::letters);
  expansion.read(raw, true);
  return joined(expansion.finish());
}

ShellText expand_arithmetic(const ShellText& raw, int line, ShellMemory& memory) {
  const ShellText text = expand_text(raw, memory);
  for (const Letter& letter : text)
    if (letter.unknown >= 0) return {letter};
  std::optional<Letter> cause;
  const auto value_of = [&](const std::string& name) -> std::optional<std::int64_t> {
    const ShellText found = expand_text(shell_text("$" + name, line), memory);
    for (const Letter& letter : found)
      if (letter.unknown >= 0) {
        cause = letter;
        return std::nullopt;
      }
    return number_from<std::int64_t>(plain(found));
  };
  const auto value = shell_arithmetic(plain(text), value_of);
  if (value) return shell_text(std::to_string(*value), line);
  if (cause) return {*cause};
  return {memory.unknown(
      fmt::format("$(({})) of line {}, which is not read", quoted_short(raw), line), "", line)};
}

bool is_shell_name(std::string_view word) {
  return !word.empty() && !is_digit(word.front()) &&
         std::all_of(word.begin(), word.end(), is_name_letter);
}

}  // namespace stepsim
