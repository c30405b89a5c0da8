#include "analysis/studies/sweep/expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using FormulaPart = Statement::Part;
using Kind = FormulaPart::Kind;

struct Token {
  enum class Kind { end, number, word, text, sign };
  Kind kind{};
  std::string text{};
  std::size_t place = 0;
  ParsedQuantity quantity{};
};

constexpr int deepest = 200;
// A sum is as deep as it has terms, without parentheses.
constexpr std::size_t longest = 10'000;

bool in_word(char c) {
  return is_letter_or_digit(c) || c == '_' || c == '.' || c == '-';
}

// A side of a comparison while it is read: what it measures decides what it may be compared with.
struct Operand {
  FormulaPart part;
  std::optional<Dimension> dimension;  // nothing: a text
  bool literal = false;                // a bare number, or a word that may be a text
};

class Parser {
 public:
  Parser(std::string_view text, const Vocabulary& vocabulary, std::string_view where)
      : text_(text), vocabulary_(vocabulary), where_(where) {
    advance();
  }

  FormulaPart parse() {
    FormulaPart whole = any();
    if (token_.kind != Token::Kind::end)
      fail(fmt::format("expected \"and\", \"or\" or the end, found {}", found()));
    return whole;
  }

 private:
  [[noreturn]] void fail(std::string_view message) const {
    throw UserError(
        fmt::format("{}: {}\n  {}\n  {:>{}}", where_, message, text_, '^', token_.place + 1));
  }
  std::string found() const {
    return token_.kind == Token::Kind::end ? "the end" : fmt::format("\"{}\"", token_.text);
  }

  void advance() {
    at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size());
    token_ = {};
    token_.place = at_;
    if (at_ == text_.size()) return;
    const char c = text_[at_];
    if (is_digit(c) || c == '.') return number();
    if (c == '"' || c == '\'') return quoted(c);
    if (is_letter(c) || c == '_') {
      std::size_t end = at_;
      while (end < text_.size() && in_word(text_[end])) ++end;
      return take(Token::Kind::word, end);
    }
    constexpr std::array<std::string_view, 4> long_signs{"<=", ">=", "==", "!="};
    for (const std::string_view sign : long_signs)
      if (text_.substr(at_).starts_with(sign)) return take(Token::Kind::sign, at_ + 2);
    take(Token::Kind::sign, at_ + 1);
  }
  void take(Token::Kind kind, std::size_t end) {
    token_.kind = kind;
    token_.text = text_.substr(at_, end - at_);
    at_ = end;
  }
  void quoted(char mark) {
    const std::size_t end = text_.find(mark, at_ + 1);
    if (end == std::string_view::npos) fail("a quote is never closed");
    token_.kind = Token::Kind::text;
    token_.text = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
  }
  // The number and, if the next word is a unit, the unit with it.
  void number() {
    std::size_t end = at_;
    while (end < text_.size() && (in_word(text_[end]) && text_[end] != '-')) ++end;
    const bool exponent =
        end < text_.size() && (text_[end - 1] == 'e' || text_[end - 1] == 'E') && text_[end] == '-';
    if (exponent)
      for (++end; end < text_.size() && is_digit(text_[end]);) ++end;
    std::size_t unit = std::min(text_.find_first_not_of(' ', end), text_.size());
    const std::size_t first = unit;
    while (unit < text_.size() && (is_letter(text_[unit]) || (unit > first && text_[unit] == '/')))
      ++unit;
    if (const auto with = parse_quantity(text_.substr(at_, unit - at_)); with && unit > first) {
      token_.quantity = *with;
      return take(Token::Kind::number, unit);
    }
    const auto bare = parse_quantity(text_.substr(at_, end - at_));
    if (!bare) fail(fmt::format("\"{}\" is no number", text_.substr(at_, end - at_)));
    token_.quantity = *bare;
    const bool percent = first < text_.size() && text_[first] == '%';
    if (percent) token_.quantity.value /= 100;
    take(Token::Kind::number, percent ? first + 1 : end);
  }

  bool is_word(std::string_view word) const {
    return token_.kind == Token::Kind::word && token_.text == word;
  }
  bool is_sign(std::string_view sign) const {
    return token_.kind == Token::Kind::sign && token_.text == sign;
  }

  FormulaPart any() { return chain(Kind::any, "or", &Parser::all); }
  FormulaPart all() { return chain(Kind::all, "and", &Parser::negation); }
  FormulaPart chain(Kind kind, std::string_view between, FormulaPart (Parser::*next)()) {
    FormulaPart part{kind, "", 0, {(this->*next)()}};
    while (is_word(between)) {
      advance();
      part.parts.push_back((this->*next)());
    }
    return part;
  }
  // Parts in parts, each a call of these functions: a limit, so that no text ends the program.
  class Nesting {
   public:
    explicit Nesting(Parser& parser) : depth_(parser.depth_) {
      if (++depth_ > deepest)
        parser.fail(fmt::format("more than {} parts stand in each other here", deepest));
    }
    Nesting(const Nesting&) = delete;
    Nesting& operator=(const Nesting&) = delete;
    ~Nesting() { --depth_; }

   private:
    int& depth_;
  };

  FormulaPart negation() {
    const Nesting nesting(*this);
    if (is_word("not")) {
      advance();
      return {Kind::inverse, "", 0, {negation()}};
    }
    if (is_sign("(") && holds_a_comparison()) {
      advance();
      FormulaPart inside = any();
      close();
      return inside;
    }
    return comparison();
  }
  // Returns whether a parenthesis holds a statement, or a part of a sum.
  bool holds_a_comparison() const {
    int depth = 0;
    for (std::size_t i = token_.place; i < text_.size(); ++i) {
      depth += text_[i] == '(' ? 1 : text_[i] == ')' ? -1 : 0;
      if (depth == 0) {
        const std::size_t next = text_.find_first_not_of(' ', i + 1);
        return next == std::string_view::npos ||
               std::string_view("<>=!+-*/").find(text_[next]) == std::string_view::npos;
      }
    }
    return true;
  }
  void close() {
    if (!is_sign(")")) fail(fmt::format("expected \")\", found {}", found()));
    advance();
  }

  FormulaPart comparison() {
    const std::size_t begin = token_.place;
    Operand left = sum();
    constexpr std::array<std::string_view, 6> signs{"<", "<=", ">", ">=", "==", "!="};
    if (token_.kind != Token::Kind::sign || !holds(signs, token_.text)) {
      if (left.part.kind == Kind::name && left.part.word == "fits")
        return {Kind::truth, "", 0, {std::move(left.part)}};
      fail(fmt::format("expected one of < <= > >= == != after \"{}\", found {}",
                       trimmed(text_.substr(begin, token_.place - begin)), found()));
    }
    const std::string sign = token_.text;
    const std::size_t place = token_.place;
    advance();
    Operand right = sum();
    const std::size_t next = std::exchange(token_.place, place);  // complaints point to the sign
    settle_words(left, right);
    check(left, right, sign);
    token_.place = next;
    return {Kind::comparison, sign, 0, {std::move(left.part), std::move(right.part)}};
  }
  static std::string_view trimmed(std::string_view text) {
    return text.substr(0, text.find_last_not_of(' ') + 1);
  }
  // A word that is no name is a text, if a text stands on the other side.
  void settle_words(Operand& left, Operand& right) const {
    for (auto [one, other] : {std::pair{&left, &right}, std::pair{&right, &left}}) {
      if (!one->literal || one->part.kind != Kind::text) continue;
      if (!other->dimension && !(other->literal && other->part.kind == Kind::text)) continue;
      fail(fmt::format("nothing is called \"{}\"{}", one->part.word,
                       did_you_mean(one->part.word, vocabulary_.names)));
    }
  }
  void check(const Operand& left, const Operand& right, std::string_view sign) const {
    if (!left.dimension && !right.dimension) {
      if (sign != "==" && sign != "!=") fail("texts are compared with == or != only");
      return;
    }
    if (!left.dimension || !right.dimension) fail("a number is compared with a text");
    if (*left.dimension == *right.dimension) return;
    const bool missing = *right.dimension == Dimension::ratio;
    if (missing)
      fail(fmt::format("the unit is missing on the right: expected {} such as \"{}\"",
                       describe(*left.dimension), example(*left.dimension)));
    fail(fmt::format("{} is compared with {}", describe(*left.dimension),
                     describe(*right.dimension)));
  }

  static Operand joined(Operand left, const std::string& sign, Operand right, Dimension dimension) {
    FormulaPart part{Kind::sum, sign, 0, {}};
    part.parts.push_back(std::move(left.part));
    part.parts.push_back(std::move(right.part));
    return {std::move(part), dimension, false};
  }

  Operand sum() {
    Operand left = product();
    while (is_sign("+") || is_sign("-")) {
      const std::string sign = token_.text;
      advance();
      Operand right = product();
      if (!left.dimension || !right.dimension) fail("text values cannot be used in arithmetic");
      if (*left.dimension != *right.dimension)
        fail(fmt::format("{} and {} cannot be added", describe(*left.dimension),
                         describe(*right.dimension)));
      const Dimension result = *left.dimension;
      left = joined(std::move(left), sign, std::move(right), result);
    }
    return left;
  }
  Operand product() {
    Operand left = atom();
    while (is_sign("*") || is_sign("/")) {
      const std::string sign = token_.text;
      advance();
      Operand right = atom();
      if (!left.dimension || !right.dimension) fail("text values cannot be used in arithmetic");
      const Dimension plain = Dimension::ratio;
      Dimension result = *left.dimension;
      if (sign == "/" && *left.dimension == *right.dimension)
        result = plain;
      else if (*right.dimension != plain && (sign == "/" || *left.dimension != plain))
        fail(fmt::format("{} {} {} measures nothing known", describe(*left.dimension),
                         sign == "*" ? "times" : "over", describe(*right.dimension)));
      else if (*left.dimension == plain)
        result = *right.dimension;
      left = joined(std::move(left), sign, std::move(right), result);
    }
    return left;
  }
  Operand atom() {
    const Nesting nesting(*this);
    const Token token = token_;
    if (is_sign("(")) {
      advance();
      Operand inside = sum();
      close();
      return inside;
    }
    if (is_sign("-")) {
      advance();
      Operand below = atom();
      if (!below.dimension) fail("text values cannot be used in arithmetic");
      const FormulaPart zero{Kind::number, "0", 0, {}};
      return {{Kind::sum, "-", 0, {zero, std::move(below.part)}}, below.dimension, false};
    }
    if (token.kind == Token::Kind::number) {
      advance();
      return {{Kind::number, token.text, token.quantity.value, {}}, token.quantity.dimension, true};
    }
    if (token.kind == Token::Kind::text) {
      advance();
      return {{Kind::text, token.text, 0, {}}, std::nullopt, false};
    }
    if (token.kind != Token::Kind::word)
      fail(fmt::format("expected a name or a number, found {}", found()));
    if (const auto dimension = vocabulary_.dimension(token.text)) {
      advance();
      return {{Kind::name, token.text, 0, {}}, dimension, false};
    }
    advance();
    const bool named = vocabulary_.is_text(token.text);
    return {{named ? Kind::name : Kind::text, token.text, 0, {}}, std::nullopt, !named};
  }

  std::string_view text_;
  const Vocabulary& vocabulary_;
  std::string_view where_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Token token_;
};

using WordFacts = std::function<Fact(std::string_view)>;

Fact value_of(const FormulaPart& part, const WordFacts& fact) {
  if (part.kind == Kind::number) return part.number;
  if (part.kind == Kind::text) return part.word;
  if (part.kind == Kind::name) return fact(part.word);
  const Fact left = value_of(part.parts[0], fact), right = value_of(part.parts[1], fact);
  const auto *a = std::get_if<double>(&left), *b = std::get_if<double>(&right);
  if (a == nullptr || b == nullptr) return {};
  switch (part.word.front()) {
    case '+':
      return *a + *b;
    case '-':
      return *a - *b;
    case '*':
      return *a * *b;
    default:
      return *a / *b;
  }
}

template <class Value>
bool compare(const Value& a, std::string_view sign, const Value& b) {
  if (sign == "<") return a < b;
  if (sign == "<=") return a <= b;
  if (sign == ">") return a > b;
  if (sign == ">=") return a >= b;
  return sign == "==" ? a == b : a != b;
}

bool truth_of(const FormulaPart& part, const WordFacts& fact) {
  const auto holds = [&](const FormulaPart& each) { return truth_of(each, fact); };
  switch (part.kind) {
    case Kind::any:
      return std::ranges::any_of(part.parts, holds);
    case Kind::all:
      return std::ranges::all_of(part.parts, holds);
    case Kind::inverse:
      return !truth_of(part.parts[0], fact);
    case Kind::truth: {
      const Fact value = value_of(part.parts[0], fact);
      return std::holds_alternative<double>(value) && std::get<double>(value) != 0;
    }
    default:
      break;
  }
  const Fact left = value_of(part.parts[0], fact), right = value_of(part.parts[1], fact);
  if (left.index() != right.index() || left.index() == 0) return false;
  if (const auto* a = std::get_if<double>(&left))
    return compare(*a, part.word, std::get<double>(right));
  return compare(std::get<std::string>(left), part.word, std::get<std::string>(right));
}

}  // namespace

Statement Statement::parse(std::string_view text, const Vocabulary& vocabulary,
                           std::string_view where) {
  if (text.size() > longest)
    throw UserError(fmt::format("{}: a condition of {} characters; at most {} are read", where,
                                text.size(), longest));
  Statement statement;
  statement.text_ = text;
  statement.root_ = Parser(text, vocabulary, where).parse();
  return statement;
}

bool Statement::holds(const std::function<Fact(std::string_view)>& fact) const {
  return truth_of(root_, fact);
}

}  // namespace stepsim
