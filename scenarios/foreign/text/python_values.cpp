#include "scenarios/foreign/text/python_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "scenarios/foreign/text/python_evaluation.hpp"
#include "sim/base/letters.hpp"

namespace stepsim::python {

PythonValue unknown(std::string why, std::string variable) {
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
    case Kind::table:
      return !value.items.empty();
    case Kind::object:
      return true;
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
  const auto number = number_from<double>(value.text);
  if (value.kind != Kind::text || !number) return unknown("what is no number");
  return of_number(*number, whole);
}

PythonValue calculated(const std::string& sign, const PythonValue& a, const PythonValue& b) {
  if (a.kind == Kind::unknown) return a;
  if (b.kind == Kind::unknown) return b;
  if (sign == "+" && a.kind == Kind::text && b.kind == Kind::text) return of_text(a.text + b.text);
  if (sign == "/" && a.kind == Kind::text && b.kind == Kind::text)
    return of_text(a.text + "/" + b.text);  // of paths
  if (sign == "+" && a.kind == Kind::list && b.kind == Kind::list && a.items.size() < most_items) {
    PythonValue both = a;
    both.items.insert(both.items.end(), b.items.begin(), b.items.end());
    return both;
  }
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
  if (sign == "in" || sign == "not in") {
    if (b.kind == Kind::text && a.kind == Kind::text)
      return of_truth((b.text.find(a.text) != std::string::npos) == (sign == "in"));
    if (b.kind == Kind::table && a.kind == Kind::text)
      return of_truth((b.at(a.text) != nullptr) == (sign == "in"));
    if (b.kind != Kind::list) return unknown("what stands in what is no list");
    const bool there = std::ranges::any_of(
        b.items, [&](const PythonValue& each) { return truth_of(compared("==", a, each)); });
    return of_truth(there == (sign == "in"));
  }
  if (sign == "==" || sign == "is") return of_truth(same);
  if (sign == "!=") return of_truth(!same);
  if (!numbers) return unknown("a comparison of what are no numbers");
  if (sign == "<") return of_truth(a.number < b.number);
  if (sign == ">") return of_truth(a.number > b.number);
  return of_truth(sign == "<=" ? a.number <= b.number : a.number >= b.number);
}

bool same_values(const PythonValue& a, const PythonValue& b) {
  return a.kind == b.kind && a.text == b.text && a.number == b.number && a.keys == b.keys &&
         std::ranges::equal(a.items, b.items, same_values);
}

std::string joined(const std::string& left, const std::string& right) {
  return left.empty() || left.ends_with('/') ? left + right : left + "/" + right;
}

PythonValue Evaluation::value(const PythonPlace& place, Tokens tokens) {
  if (++depth_ > deepest_literal || steps_ > most_reductions || file_.steps > most_in_file ||
      tokens.empty()) {
    --depth_;
    return unknown(too_many);
  }
  const Tokens outer = rest_;
  const PythonPlace outer_place = place_;
  rest_ = tokens;
  place_ = place;
  PythonValue result = tuple();
  if (!rest_.empty())
    result = unknown(fmt::format("what stands in line {}, which is not run", tokens.front().line));
  rest_ = outer;
  place_ = outer_place;
  --depth_;
  return result;
}

bool Evaluation::is(std::string_view text) const {
  return !rest_.empty() && rest_.front().text == text &&
         (rest_.front().kind == PythonKind::sign || rest_.front().kind == PythonKind::name);
}

bool Evaluation::take(std::string_view text) {
  if (!is(text)) return false;
  rest_ = rest_.subspan(1);
  return true;
}

PythonValue Evaluation::tuple() {
  PythonValue first = choice();
  if (!is(",")) return first;
  PythonValue list{.kind = Kind::list, .items = {std::move(first)}};
  while (take(",") && !rest_.empty() && !is(")") && !is("]")) list.items.push_back(choice());
  return list;
}

PythonValue Evaluation::choice() {
  const Nested nested(nesting_);
  if (nested.too_deep()) return unknown("brackets in brackets, too many of them");
  if (is("lambda")) {
    while (!rest_.empty() && !is(":")) rest_ = rest_.subspan(1);
    take(":");
    return choice();
  }
  PythonValue when_so = either();
  if (!take("if")) return when_so;
  PythonValue condition = either();
  if (!take("else")) return unknown("a condition that is not read");
  PythonValue otherwise = choice();
  if (condition.kind == Kind::unknown)
    return same_values(when_so, otherwise) && when_so.kind != Kind::unknown ? when_so : condition;
  return truth_of(condition) ? when_so : otherwise;
}

PythonValue Evaluation::either() {
  PythonValue left = both();
  while (take("or")) {
    PythonValue right = both();
    const bool decided = right.kind != Kind::unknown && truth_of(right) && is_number(right);
    if (left.kind == Kind::unknown ? decided : !truth_of(left)) left = std::move(right);
  }
  return left;
}

PythonValue Evaluation::both() {
  PythonValue left = negation();
  while (take("and")) {
    PythonValue right = negation();
    const bool decided = right.kind != Kind::unknown && !truth_of(right);
    if (left.kind == Kind::unknown ? decided : truth_of(left)) left = std::move(right);
  }
  return left;
}

PythonValue Evaluation::negation() {
  const Nested nested(nesting_);
  if (nested.too_deep()) return unknown("brackets in brackets, too many of them");
  if (!take("not")) return comparison();
  const PythonValue value = negation();
  return value.kind == Kind::unknown ? value : of_truth(!truth_of(value));
}

PythonValue Evaluation::comparison() {
  PythonValue left = sum();
  while (true) {
    std::string sign = rest_.empty() ? "" : rest_.front().text;
    if (!rest_.empty() && rest_.front().kind == PythonKind::text) return left;
    if (sign == "not" && rest_.size() > 1 && rest_[1].text == "in") {
      rest_ = rest_.subspan(1);
      sign = "not in";
    }
    if (sign != "==" && sign != "!=" && sign != "<" && sign != ">" && sign != "<=" &&
        sign != ">=" && sign != "is" && sign != "in" && sign != "not in")
      return left;
    rest_ = rest_.subspan(1);
    if (sign == "is" && take("not")) sign = "!=";
    left = compared(sign, left, sum());
  }
}

PythonValue Evaluation::sum() {
  PythonValue left = product();
  while (is("+") || is("-") || is("|")) {
    const std::string sign = rest_.front().text;
    rest_ = rest_.subspan(1);
    left = calculated(sign, left, product());
  }
  return left;
}

PythonValue Evaluation::product() {
  PythonValue left = power();
  while (is("*") || is("/") || is("//") || is("%")) {
    const std::string sign = rest_.front().text;
    rest_ = rest_.subspan(1);
    left = calculated(sign, left, power());
  }
  return left;
}

PythonValue Evaluation::power() {
  const Nested nested(nesting_);
  if (nested.too_deep()) return unknown("brackets in brackets, too many of them");
  if (take("-")) return calculated("-", of_number(0, true), power());
  if (take("+")) return power();
  PythonValue left = trailed();
  return take("**") ? calculated("**", left, power()) : left;
}

PythonValue Evaluation::trailed() {
  PythonValue result = atom();
  while (!rest_.empty() && (is(".") || is("[") || is("("))) {
    if (is(".") && (rest_.size() < 2 || rest_[1].kind != PythonKind::name)) return result;
    const int line = rest_.front().line;
    if (take(".")) {
      const std::string name = rest_.front().text;
      rest_ = rest_.subspan(1);
      result = take("(") ? method(result, name, arguments(), line) : field(result, name, line);
    } else if (take("[")) {
      result = subscripted(std::move(result), "", line);
    } else {
      take("(");
      skip_brackets();
      result = unknown(fmt::format("what stands in line {}, which is not run", line));
    }
    if (++steps_ > most_reductions) return unknown("what is not read");
  }
  return result;
}

PythonValue Evaluation::atom() {
  if (++steps_ > most_reductions || ++file_.steps > most_in_file || rest_.empty())
    return unknown("what is not read");
  const PythonToken first = rest_.front();
  rest_ = rest_.subspan(1);
  if (first.kind == PythonKind::number) return literal_number(first.text);
  if (first.kind == PythonKind::text) return of_text(first.text);
  if (first.kind == PythonKind::template_text) return filled_in(first);
  if (first.kind == PythonKind::name) return named(first);
  if (first.text == "[" || first.text == "(") return listed(first.text == "[" ? "]" : ")");
  if (first.text == "{") return dictionary(first.line);
  return unknown(fmt::format("what stands in line {}, which is not run", first.line));
}

PythonValue Evaluation::literal_number(const std::string& text) {
  const auto number = number_from<double>(text);
  if (!number) return unknown("a number that is not read");
  return of_number(*number, text.find_first_of(".eE") == std::string::npos);
}

PythonValue Evaluation::listed(std::string_view end) {
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

PythonValue Evaluation::dictionary(int line) {
  PythonValue table{.kind = Kind::table};
  while (!rest_.empty() && !is("}")) {
    const std::size_t before = rest_.size();
    if (take("**")) {
      const PythonValue other = choice();
      for (std::size_t i = 0; i < other.keys.size() && i < other.items.size(); ++i)
        put(table, other.keys[i], other.items[i]);
    } else {
      const PythonValue key = choice();
      if (!take(":")) break;  // a set
      PythonValue item = choice();
      if (key.kind == Kind::text || is_number(key))
        put(table, key.kind == Kind::text ? key.text : fmt::format("{}", key.number),
            std::move(item));
    }
    if (is("for")) break;
    take(",");
    if (rest_.size() == before) break;
  }
  if (take("}")) return table;
  skip_brackets();
  return unknown(fmt::format("a table of line {}", line));
}

void Evaluation::put(PythonValue& table, const std::string& key, PythonValue item) {
  if (table.items.size() >= most_items) return;
  table.keys.push_back(key);
  table.items.push_back(std::move(item));
}

void Evaluation::skip_brackets() {
  for (int depth = 1; !rest_.empty() && depth > 0; rest_ = rest_.subspan(1)) {
    const std::string& text = rest_.front().text;
    if (rest_.front().kind != PythonKind::sign) continue;
    if (text == "(" || text == "[" || text == "{") ++depth;
    if (text == ")" || text == "]" || text == "}") --depth;
  }
}

PythonValue Evaluation::filled_in(const PythonToken& token) {
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

PythonValue Evaluation::named(const PythonToken& first) {
  if (first.text == "True" || first.text == "False") return of_truth(first.text == "True");
  if (first.text == "None") return {.kind = Kind::none};
  std::string name = first.text;
  while (rest_.size() > 1 && is(".") && rest_[1].kind == PythonKind::name) {
    name += "." + rest_[1].text;
    rest_ = rest_.subspan(2);
  }
  if (take("(")) return called(name, first.line);
  if (take("[")) {
    if (name == "os.environ") {
      const PythonValue key = choice();
      skip_brackets();
      return from_environment(key.text, nullptr);
    }
    return subscripted(lookup(name, first.line), name, first.line);
  }
  return lookup(name, first.line);
}

}  // namespace stepsim::python

namespace stepsim {

PythonValue value_of(const PythonFile& file, const PythonPlace& place, const PythonTokens& tokens) {
  return python::Evaluation(file).value(place, tokens);
}

std::optional<bool> holds_at(const PythonFile& file, std::size_t scope, int guard) {
  return python::Evaluation(file).holds(scope, guard, -1);
}

}  // namespace stepsim
