#include "scenarios/foreign/text/python_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

bool is_word(char c) {
  return is_letter_or_digit(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80;
}
// A line as the interpreter counts it: brackets and backslashes may stretch it over several.
struct Statement {
  std::size_t indent = 0;
  PythonTokens tokens{};
};

class PythonLexer {
 public:
  PythonLexer(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::vector<Statement> statements() {
    while (place_ < text_.size()) {
      const std::size_t indent = skip_indent();
      Statement statement{indent, {}};
      while (place_ < text_.size() && token(statement.tokens)) {
      }
      if (!statement.tokens.empty()) all_.push_back(std::move(statement));
    }
    if (depth_ > 0)
      throw UserError({{file_, opened_, "", "a bracket that begins here is never closed"}});
    return std::move(all_);
  }

 private:
  char at(std::size_t place) const { return place < text_.size() ? text_[place] : '\0'; }

  std::size_t skip_indent() {
    std::size_t indent = 0;
    for (; at(place_) == ' ' || at(place_) == '\t'; ++place_) ++indent;
    return indent;
  }

  // Returns false at the end of the statement.
  bool token(PythonTokens& tokens) {
    const char c = at(place_);
    if (c == '\n') {
      ++place_;
      ++line_;
      return depth_ > 0;
    }
    if (c == ';' && depth_ == 0) {
      ++place_;
      return false;
    }
    if (c == '#') {
      while (place_ < text_.size() && at(place_) != '\n') ++place_;
    } else if (c == '\\' && at(place_ + 1) == '\n') {
      place_ += 2;
      ++line_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f') {
      ++place_;
    } else if (is_digit(c) || (c == '.' && is_digit(at(place_ + 1)))) {
      number(tokens);
    } else if (c == '"' || c == '\'') {
      text(tokens, false, false);
    } else if (is_word(c)) {
      word(tokens);
    } else {
      sign(tokens);
    }
    return true;
  }

  void number(PythonTokens& tokens) {
    const std::size_t from = place_;
    while (is_word(at(place_)) || at(place_) == '.' ||
           ((at(place_) == '-' || at(place_) == '+') &&
            (at(place_ - 1) == 'e' || at(place_ - 1) == 'E')))
      ++place_;
    std::string said(text_.substr(from, place_ - from));
    std::erase(said, '_');
    tokens.push_back({PythonKind::number, said, line_});
  }

  void word(PythonTokens& tokens) {
    const std::size_t from = place_;
    while (is_word(at(place_))) ++place_;
    std::string said(text_.substr(from, place_ - from));
    if (said.size() <= 2 && (at(place_) == '"' || at(place_) == '\'')) {
      said = in_small_letters(said);
      if (said.find_first_not_of("rbfu") == std::string::npos)
        return text(tokens, said.find('f') != std::string::npos,
                    said.find('r') != std::string::npos);
    }
    tokens.push_back({PythonKind::name, std::string(text_.substr(from, place_ - from)), line_});
  }

  void text(PythonTokens& tokens, bool filled_in, bool raw) {
    const int line = line_;
    const char quote = at(place_);
    const bool thrice = at(place_ + 1) == quote && at(place_ + 2) == quote;
    place_ += thrice ? 3 : 1;
    std::string said;
    for (;; ++place_) {
      const char c = at(place_);
      if (place_ >= text_.size() || (c == '\n' && !thrice))
        throw UserError({{file_, line, "", "a text that begins here is never closed"}});
      if (c == quote && (!thrice || (at(place_ + 1) == quote && at(place_ + 2) == quote))) break;
      if (c == '\n') ++line_;
      if (c == '\\' && !raw && place_ + 1 < text_.size()) {
        ++place_;
        if (at(place_) == '\n') ++line_;
        if (at(place_) != '\n') said += at(place_) == 'n' ? '\n' : at(place_);
        continue;
      }
      said += c;
    }
    place_ += thrice ? 3 : 1;
    const bool holes = filled_in && said.find('{') != std::string::npos;
    if (!tokens.empty() && tokens.back().kind == PythonKind::text && !holes) {
      tokens.back().text += said;  // "a" "b"
      return;
    }
    tokens.push_back({holes ? PythonKind::template_text : PythonKind::text, said, line});
  }

  void sign(PythonTokens& tokens) {
    constexpr std::array<std::string_view, 19> longer{"**=", "//=", ">>=", "<<=", "...", "**", "//",
                                                      "==",  "!=",  "<=",  ">=",  "->",  ":=", "+=",
                                                      "-=",  "*=",  "/=",  "|=",  "&="};
    for (const std::string_view each : longer)
      if (text_.substr(place_).starts_with(each)) {
        tokens.push_back({PythonKind::sign, std::string(each), line_});
        place_ += each.size();
        return;
      }
    const char c = at(place_++);
    if (c == '(' || c == '[' || c == '{') {
      if (depth_++ == 0) opened_ = line_;
    }
    if (c == ')' || c == ']' || c == '}') depth_ = std::max(depth_ - 1, 0);
    tokens.push_back({PythonKind::sign, std::string(1, c), line_});
  }

  std::string_view text_;
  const std::string& file_;
  std::size_t place_ = 0;
  int line_ = 1, depth_ = 0, opened_ = 0;
  std::vector<Statement> all_{};
};

bool is_sign(const PythonToken& token, std::string_view sign) {
  return token.kind == PythonKind::sign && token.text == sign;
}

// Reads a, b = value; a: int = value. Returns false where it is no assignment to names.
bool read_assignment(const PythonTokens& tokens, PythonAssignment& result) {
  std::size_t at = 0;
  while (at < tokens.size() && tokens[at].kind == PythonKind::name) {
    result.names.push_back(tokens[at].text);
    if (at + 1 < tokens.size() && is_sign(tokens[at + 1], ","))
      at += 2;
    else
      break;
  }
  if (result.names.empty() || ++at >= tokens.size()) return false;
  if (is_sign(tokens[at], ":"))
    while (at < tokens.size() && !is_sign(tokens[at], "=")) ++at;
  if (at >= tokens.size() || !is_sign(tokens[at], "=")) return false;
  result.line = tokens.front().line;
  result.value.assign(tokens.begin() + static_cast<std::ptrdiff_t>(at) + 1, tokens.end());
  return !result.value.empty();
}

}  // namespace

std::vector<PythonScope> parse_python(std::string_view text, const std::string& file) {
  std::vector<PythonScope> scopes(1);
  struct Open {
    std::size_t scope, indent;
  };
  std::vector<Open> open{{0, 0}};
  for (Statement& statement : PythonLexer(text, file).statements()) {
    while (open.size() > 1 && statement.indent <= open.back().indent) open.pop_back();
    PythonTokens& tokens = statement.tokens;
    PythonScope& scope = scopes[open.back().scope];
    const std::size_t first = tokens.front().text == "async" ? 1 : 0;
    if (tokens.size() > first + 1 && tokens[first].kind == PythonKind::name &&
        tokens[first].text == "def") {
      scopes.push_back({.name = tokens[first + 1].text});
      open.push_back({scopes.size() - 1, statement.indent});
      continue;
    }
    if (tokens.front().kind == PythonKind::name && tokens.front().text == "return") {
      PythonAssignment said{{}, {tokens.begin() + 1, tokens.end()}, tokens.front().line};
      if (!said.value.empty()) scope.returns.push_back(std::move(said));
    }
    PythonAssignment assignment;
    if (read_assignment(tokens, assignment)) scope.assignments.push_back(std::move(assignment));
    scope.statements.push_back(std::move(tokens));
  }
  return scopes;
}

}  // namespace stepsim
