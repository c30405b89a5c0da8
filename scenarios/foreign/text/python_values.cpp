#include "scenarios/foreign/text/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <span>

namespace stepsim {
namespace {

using Kind = PythonValue::Kind;
using Tokens = std::span<const PythonToken>;

constexpr int deepest_literal = 24;             // names that are assigned names
constexpr std::size_t most_reductions = 4000;   // steps of one value: people's take tens
constexpr std::size_t most_in_file = 1u << 16;  // of all values of a file, which may be very many

PythonValue unknown(std::string why, std::string variable = "") {
  return {.kind = Kind::unknown, .text = std::move(why), .variable = std::move(variable)};
}
PythonValue of_text(std::string text) {
  return {.kind = Kind::text, .text = std::move(text)};
}
PythonValue of_number(double number, bool whole) {
  return {.kind = Kind::number, .number = number, .whole = whole && std::abs(number) < 9e15};
}
PythonValue of_truth(bool truth) {
  return {.kind = Kind::truth, .number = truth ? 1.0 : 0.0};
}

bool truth_of(const PythonValue& value) {
  switch (value.kind) {
    case Kind::none:
      return false;
    case Kind::truth:
    case Kind::number:
      return value.number != 0;
    case Kind::text:
      return !value.text.empty();
    case Kind::list:
      return !value.items.empty();
    case Kind::unknown:
      return false;
  }
  return false;
}

bool is_number(const PythonValue& value) {
  return value.kind == Kind::number || value.kind == Kind::truth;
}

PythonValue as_number(const PythonValue& value, bool whole) {
  if (value.kind == Kind::unknown) return value;
  if (is_number(value)) return of_number(whole ? std::trunc(value.number) : value.number, whole);
  double number = 0;
  const std::string& text = value.text;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (value.kind != Kind::text || failed != std::errc() || end != text.data() + text.size())
    return unknown("what is no number");
  return of_number(number, whole);
}

PythonValue calculated(const std::string& sign, const PythonValue& a, const PythonValue& b) {
  if (a.kind == Kind::unknown) return a;
  if (b.kind == Kind::unknown) return b;
  if (sign == "+" && a.kind == Kind::text && b.kind == Kind::text) return of_text(a.text + b.text);
  if (!is_number(a) || !is_number(b)) return unknown("a sum of what are no numbers");
  const bool whole = (a.whole || a.kind == Kind::truth) && (b.whole || b.kind == Kind::truth);
  if (sign == "+") return of_number(a.number + b.number, whole);
  if (sign == "-") return of_number(a.number - b.number, whole);
  if (sign == "*") return of_number(a.number * b.number, whole);
  if (sign == "**") return of_number(std::pow(a.number, b.number), whole && b.number >= 0);
  if (b.number == 0) return unknown("a division by zero");
  if (sign == "/") return of_number(a.number / b.number, false);
  if (sign == "//") return of_number(std::floor(a.number / b.number), whole);
  return of_number(a.number - b.number * std::floor(a.number / b.number), whole);
}

PythonValue compared(const std::string& sign, const PythonValue& a, const PythonValue& b) {
  if (a.kind == Kind::unknown) return a;
  if (b.kind == Kind::unknown) return b;
  const bool numbers = is_number(a) && is_number(b);
  const bool same = numbers ? a.number == b.number : a.kind == b.kind && a.text == b.text;
  if (sign == "==" || sign == "is") return of_truth(same);
  if (sign == "!=") return of_truth(!same);
  if (!numbers) return unknown("a comparison of what are no numbers");
  if (sign == "<") return of_truth(a.number < b.number);
  if (sign == ">") return of_truth(a.number > b.number);
  return of_truth(sign == "<=" ? a.number <= b.number : a.number >= b.number);
}

class Evaluation {
 public:
  explicit Evaluation(const PythonFile& file) : file_(file) {}

  PythonValue value(std::size_t scope, Tokens tokens) {
    if (++depth_ > deepest_literal || steps_ > most_reductions || file_.steps > most_in_file) {
      --depth_;
      return unknown("names that hang on too many others");
    }
    const Tokens outer = rest_;
    const std::size_t outer_scope = scope_;
    rest_ = tokens;
    scope_ = scope;
    PythonValue result = tuple();
    if (!rest_.empty())
      result =
          unknown(fmt::format("what stands in line {}, which is not run", tokens.front().line));
    rest_ = outer;
    scope_ = outer_scope;
    --depth_;
    return result;
  }

 private:
  bool is(std::string_view text) const {
    return !rest_.empty() && rest_.front().text == text &&
           (rest_.front().kind == PythonKind::sign || rest_.front().kind == PythonKind::name);
  }
  bool take(std::string_view text) {
    if (!is(text)) return false;
    rest_ = rest_.subspan(1);
    return true;
  }

  PythonValue tuple() {
    PythonValue first = choice();
    if (!is(",")) return first;
    PythonValue list{.kind = Kind::list, .items = {std::move(first)}};
    while (take(",") && !rest_.empty() && !is(")") && !is("]")) list.items.push_back(choice());
    return list;
  }

  // Brackets in brackets, and signs before signs; with names that are assigned names.
  struct Nested {
    int& depth;
    explicit Nested(int& counter) : depth(counter) { ++depth; }
    Nested(const Nested&) = delete;
    Nested& operator=(const Nested&) = delete;
    ~Nested() { --depth; }
    bool too_deep() const { return depth > 200; }
  };

  PythonValue choice() {
    const Nested nested(nesting_);
    if (nested.too_deep()) return unknown("brackets in brackets, too many of them");
    PythonValue yes = either();
    if (!take("if")) return yes;
    PythonValue condition = either();
    if (!take("else")) return unknown("a condition that is not read");
    PythonValue no = choice();
    if (condition.kind == Kind::unknown) return condition;
    return truth_of(condition) ? yes : no;
  }

  PythonValue either() {
    PythonValue left = both();
    while (take("or")) {
      PythonValue right = both();
      if (left.kind != Kind::unknown && !truth_of(left)) left = std::move(right);
    }
    return left;
  }
  PythonValue both() {
    PythonValue left = negation();
    while (take("and")) {
      PythonValue right = negation();
      if (left.kind != Kind::unknown && truth_of(left)) left = std::move(right);
    }
    return left;
  }
  PythonValue negation() {
    if (!take("not")) return comparison();
    const PythonValue value = comparison();
    return value.kind == Kind::unknown ? value : of_truth(!truth_of(value));
  }

  PythonValue comparison() {
    PythonValue left = sum();
    while (true) {
      std::string sign = rest_.empty() ? "" : rest_.front().text;
      if (sign != "==" && sign != "!=" && sign != "<" && sign != ">" && sign != "<=" &&
          sign != ">=" && sign != "is")
        return left;
      rest_ = rest_.subspan(1);
      if (sign == "is" && take("not")) sign = "!=";
      left = compared(sign, left, sum());
    }
  }

  PythonValue sum() {
    PythonValue left = product();
    while (is("+") || is("-")) {
      const std::string sign = rest_.front().text;
      rest_ = rest_.subspan(1);
      left = calculated(sign, left, product());
    }
    return left;
  }
  PythonValue product() {
    PythonValue left = power();
    while (is("*") || is("/") || is("//") || is("%")) {
      const std::string sign = rest_.front().text;
      rest_ = rest_.subspan(1);
      left = calculated(sign, left, power());
    }
    return left;
  }
  PythonValue power() {
    const Nested nested(nesting_);
    if (nested.too_deep()) return unknown("brackets in brackets, too many of them");
    if (take("-")) return calculated("-", of_number(0, true), power());
    if (take("+")) return power();
    PythonValue left = trailed();
    return take("**") ? calculated("**", left, power()) : left;
  }

  // Reads an atom, and .name, (...) and [...] behind it.
  PythonValue trailed() {
    if (++steps_ > most_reductions || ++file_.steps > most_in_file || rest_.empty())
      return unknown("what is not read");
    const PythonToken first = rest_.front();
    rest_ = rest_.subspan(1);
    if (first.kind == PythonKind::number) return literal_number(first.text);
    if (first.kind == PythonKind::text) return of_text(first.text);
    if (first.kind == PythonKind::template_text) return filled_in(first);
    if (first.kind == PythonKind::name) return named(first);
    if (first.text == "[" || first.text == "(") return listed(first.text == "[" ? "]" : ")");
    if (first.text == "{") {
      skip_brackets();
      return unknown(fmt::format("a table of line {}", first.line));
    }
    return unknown(fmt::format("what stands in line {}, which is not run", first.line));
  }

  static PythonValue literal_number(const std::string& text) {
    double number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc() || end != text.data() + text.size())
      return unknown("a number that is not read");
    return of_number(number, text.find_first_of(".eE") == std::string::npos);
  }

  PythonValue listed(std::string_view end) {
    PythonValue list{.kind = Kind::list};
    bool comma = false;
    while (!rest_.empty() && !is(end)) {
      const std::size_t before = rest_.size();
      list.items.push_back(choice());
      if (is("for")) {
        skip_brackets();
        return unknown("a list that a loop makes");
      }
      comma = take(",") || comma;
      if (rest_.size() == before) break;
    }
    if (!take(end)) return unknown("brackets that are not read");
    if (end == ")" && list.items.size() == 1 && !comma) return list.items.front();
    return list;
  }

  // Up to the bracket that closes the one that was taken.
  void skip_brackets() {
    for (int depth = 1; !rest_.empty() && depth > 0; rest_ = rest_.subspan(1)) {
      const std::string& text = rest_.front().text;
      if (rest_.front().kind != PythonKind::sign) continue;
      if (text == "(" || text == "[" || text == "{") ++depth;
      if (text == ")" || text == "]" || text == "}") --depth;
    }
  }

  PythonValue filled_in(const PythonToken& token) {
    std::string text;
    for (std::size_t i = 0; i < token.text.size(); ++i) {
      if (token.text[i] != '{') {
        text += token.text[i];
        continue;
      }
      const std::size_t end = std::min(token.text.find('}', i), token.text.size());
      std::string inside = token.text.substr(i + 1, end - i - 1);
      inside = inside.substr(0, inside.find_first_of(":!"));
      PythonValue value = lookup(inside, token.line);
      if (value.kind == Kind::unknown) return value;
      text += is_number(value) ? fmt::format("{}", value.number) : value.text;
      i = end;
    }
    return of_text(text);
  }

  // A dotted name, and what is asked of it.
  PythonValue named(const PythonToken& first) {
    if (first.text == "True" || first.text == "False") return of_truth(first.text == "True");
    if (first.text == "None") return {.kind = Kind::none};
    std::string name = first.text;
    while (rest_.size() > 1 && is(".") && rest_[1].kind == PythonKind::name) {
      name += "." + rest_[1].text;
      rest_ = rest_.subspan(2);
    }
    if (take("(")) return called(name, first.line);
    if (take("[")) {
      const Tokens before = rest_;
      const PythonValue key = choice();
      rest_ = before;
      skip_brackets();
      if (name == "os.environ" && key.kind == Kind::text)
        return from_environment(key.text, nullptr);
      return unknown(fmt::format("{}[...] of line {}", name, first.line));
    }
    return lookup(name, first.line);
  }

  PythonValue from_environment(const std::string& name, const PythonValue* fallback) {
    if (const auto place = file_.given.find(name); place != file_.given.end())
      return of_text(place->second);
    if (const auto place = file_.environment.find(name); place != file_.environment.end())
      return of_text(place->second);
    if (name == "WORLD_SIZE" && !file_.processes.empty()) return of_text(file_.processes);
    if (fallback != nullptr) return *fallback;
    return unknown(fmt::format("{}, which nothing sets", name), name);
  }

  PythonValue called(const std::string& name, int line) {
    const Tokens inside = rest_;
    std::vector<PythonValue> arguments;
    while (!rest_.empty() && !is(")")) {
      const std::size_t before = rest_.size();
      arguments.push_back(choice());
      if (rest_.size() == before || !(take(",") || is(")"))) break;
    }
    rest_ = inside;
    skip_brackets();
    const bool whole = name == "int";
    if ((whole || name == "float") && arguments.size() == 1) return as_number(arguments[0], whole);
    if (name == "str" && arguments.size() == 1 && arguments[0].kind == Kind::text)
      return arguments[0];
    if (name == "bool" && arguments.size() == 1 && arguments[0].kind != Kind::unknown)
      return of_truth(truth_of(arguments[0]));
    if ((name == "max" || name == "min") && arguments.size() == 2) {
      PythonValue less = compared("<", arguments[0], arguments[1]);
      if (less.kind == Kind::unknown) return less;
      return truth_of(less) == (name == "min") ? arguments[0] : arguments[1];
    }
    if ((name == "os.environ.get" || name == "os.getenv") && !arguments.empty() &&
        arguments[0].kind == Kind::text)
      return from_environment(arguments[0].text, arguments.size() > 1 ? &arguments[1] : nullptr);
    // Whatever it is called: the launcher says how many there are.
    if (name.find("world_size") != std::string::npos && !file_.processes.empty())
      return value_given(file_.processes);
    for (std::size_t scope = 1; scope < file_.scopes.size(); ++scope)
      if (file_.scopes[scope].name == name) return returned(scope, line);
    return unknown(fmt::format("{}() of line {}, which is not run", name, line));
  }

  PythonValue returned(std::size_t scope, int line) {
    const auto& returns = file_.scopes[scope].returns;
    if (returns.size() != 1)
      return unknown(
          fmt::format("{}() of line {}, which is not run", file_.scopes[scope].name, line));
    return value(scope, returns.front().value);
  }

  PythonValue lookup(const std::string& name, int line) {
    if (const auto place = file_.given.find(name); place != file_.given.end())
      return value_given(place->second);
    if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) {
      const std::string last = name.substr(dot + 1);
      for (const auto* values : {&file_.given, &file_.said})
        if (const auto place = values->find(last);
            place != values->end() && (file_.arguments.contains(last) || values == &file_.said))
          return value_given(place->second);
      if (last == "num_processes" && !file_.processes.empty()) return value_given(file_.processes);
      if (const auto place = file_.arguments.find(last);
          place != file_.arguments.end() && !place->second.empty())
        return value(0, place->second);
      if (name.starts_with("torch.")) return of_text(last);
      return unknown(fmt::format("{} of line {}", name, line), last);
    }
    for (const std::size_t scope : {scope_, std::size_t{0}})
      if (const auto found = assigned(scope, name)) return *found;
    return unknown(fmt::format("{}, which nothing sets", name), name);
  }

  static PythonValue value_given(const std::string& text) {
    if (text == "True" || text == "true") return of_truth(true);
    if (text == "False" || text == "false") return of_truth(false);
    const PythonValue number = literal_number(text);
    return number.kind == Kind::unknown ? of_text(text) : number;
  }

  // Returns what a name is in a scope: if it is assigned several times, all have to say the same.
  std::optional<PythonValue> assigned(std::size_t scope, const std::string& name) {
    std::optional<PythonValue> found;
    int line = 0;
    for (const PythonAssignment& each : file_.scopes[scope].assignments) {
      const auto place = std::find(each.names.begin(), each.names.end(), name);
      if (place == each.names.end()) continue;
      PythonValue next = value(scope, each.value);
      if (each.names.size() > 1 && next.kind == Kind::list &&
          next.items.size() == each.names.size()) {
        const PythonValue item = next.items[static_cast<std::size_t>(place - each.names.begin())];
        next = item;
      }
      if (found && (found->kind != next.kind || found->text != next.text ||
                    found->number != next.number || next.kind == Kind::list))
        return unknown(fmt::format("{}, which lines {} and {} set", name, line, each.line), name);
      if (next.kind == Kind::unknown && next.variable.empty()) next.variable = name;
      found = std::move(next);
      line = each.line;
    }
    return found;
  }

  const PythonFile& file_;
  Tokens rest_{};
  std::size_t scope_ = 0;
  std::size_t steps_ = 0;
  int nesting_ = 0;
  int depth_ = 0;
};

bool opens(const PythonToken& token) {
  return token.kind == PythonKind::sign &&
         (token.text == "(" || token.text == "[" || token.text == "{");
}
bool closes(const PythonToken& token) {
  return token.kind == PythonKind::sign &&
         (token.text == ")" || token.text == "]" || token.text == "}");
}

// The arguments of a call whose bracket opens at `at`.
void read_arguments(const PythonTokens& tokens, std::size_t at, PythonCall& call) {
  int depth = 0;
  PythonTokens part;
  const auto keep = [&] {
    if (part.size() > 1 && part[0].kind == PythonKind::name && part[1].kind == PythonKind::sign &&
        part[1].text == "=")
      call.keywords.push_back({part[0].text, {part.begin() + 2, part.end()}, part[0].line});
    else if (!part.empty())
      call.positional.push_back(part);
    part.clear();
  };
  for (; at < tokens.size(); ++at) {
    if (closes(tokens[at]) && --depth == 0) break;
    if (depth == 1 && tokens[at].kind == PythonKind::sign && tokens[at].text == ",")
      keep();
    else if (depth >= 1)
      part.push_back(tokens[at]);
    if (opens(tokens[at])) ++depth;
  }
  keep();
}

}  // namespace

std::vector<PythonCall> calls_in(const PythonFile& file,
                                 const std::function<bool(const std::string&)>& is_wanted) {
  constexpr std::size_t most_calls = 500;
  std::vector<PythonCall> calls;
  for (std::size_t scope = 0; scope < file.scopes.size(); ++scope)
    for (const PythonTokens& tokens : file.scopes[scope].statements)
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].kind != PythonKind::name || tokens[i + 1].text != "(" ||
            tokens[i + 1].kind != PythonKind::sign || !is_wanted(tokens[i].text) ||
            calls.size() >= most_calls)
          continue;
        PythonCall call{.name = tokens[i].text, .line = tokens[i].line, .scope = scope};
        for (std::size_t at = i;
             at > 1 && tokens[at - 1].text == "." && tokens[at - 2].kind == PythonKind::name;
             at -= 2)
          call.name = tokens[at - 2].text + "." + call.name;
        read_arguments(tokens, i + 1, call);
        calls.push_back(std::move(call));
      }
  return calls;
}

PythonFile read_python(std::string_view text, const std::string& file) {
  PythonFile result{.scopes = parse_python(text, file),
                    .environment = {},
                    .given = {},
                    .arguments = {},
                    .said = {}};
  const auto adds = [](const std::string& name) { return name == "add_argument"; };
  for (const PythonCall& call : calls_in(result, adds)) {
    PythonTokens standard;
    for (const auto& keyword : call.keywords)
      if (keyword.name == "default") standard = keyword.value;
    for (const PythonTokens& name : call.positional)
      if (name.size() == 1 && name[0].kind == PythonKind::text && name[0].text.starts_with("--")) {
        std::string key = name[0].text.substr(2);
        std::replace(key.begin(), key.end(), '-', '_');
        result.arguments[key] = standard;
      }
  }
  return result;
}

PythonValue value_of(const PythonFile& file, std::size_t scope, const PythonTokens& tokens) {
  return Evaluation(file).value(scope, tokens);
}

}  // namespace stepsim
