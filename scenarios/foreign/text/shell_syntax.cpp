#include "scenarios/foreign/text/shell_syntax.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr int deepest_block = 60;  // blocks in blocks, brackets in brackets

char at(const ShellText& text, std::size_t place) {
  return place < text.size() && text[place].unknown < 0 ? text[place].c : '\0';
}

[[noreturn]] void never_closed(const ShellText& text, std::size_t from, std::string_view what,
                               const std::string& file) {
  throw UserError({{file, text[from].line, "", fmt::format("{} is never closed", what)}});
}

std::size_t behind(const ShellText& text, std::size_t from, char end, const std::string& file) {
  for (std::size_t i = from + 1; i < text.size(); ++i)
    if (at(text, i) == end) return i + 1;
  never_closed(text, from, fmt::format("a {}", end), file);
}

std::size_t behind_double_quotes(const ShellText& text, std::size_t from, const std::string& file,
                                 int depth) {
  for (std::size_t i = from + 1; i < text.size();) {
    const char c = at(text, i);
    if (c == '"') return i + 1;
    if (c == '\\')
      i += 2;
    else
      i = c == '$' || c == '`' ? behind_piece(text, i, file, depth) : i + 1;
  }
  never_closed(text, from, "a \"", file);
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r';
}

// The word that ends a here-document, behind << in `from`.
std::string ending_word(const ShellText& text, std::size_t& from) {
  while (at(text, from) == '-' || is_blank(at(text, from))) ++from;
  std::string word;
  for (; from < text.size(); ++from) {
    const char c = at(text, from);
    if (c == '\n' || is_blank(c) || c == ')' || c == ';' || c == '|' || c == '>' || c == '&') break;
    if (c != '\'' && c != '"' && c != '\\') word += c;
  }
  return word;
}

// Lines from `from` on up to the one that is `word` alone: where that line begins and ends.
struct HereEnd {
  std::size_t begin, end;
};
HereEnd end_of_here(const ShellText& text, std::size_t from, const std::string& word) {
  while (from < text.size()) {
    std::size_t stop = from;
    std::string line;
    for (; stop < text.size() && at(text, stop) != '\n'; ++stop) line += at(text, stop);
    const std::size_t first = line.find_first_not_of(" \t");
    while (!line.empty() && is_blank(line.back())) line.pop_back();
    if (first != std::string::npos && line.substr(first) == word)
      return {from, std::min(stop + 1, text.size())};
    from = stop + 1;
  }
  return {text.size(), text.size()};
}

// Returns the place behind the bracket that closes the one at `from`; here-documents in it may hold
// anything.
std::size_t behind_bracket(const ShellText& text, std::size_t from, char open, char close,
                           const std::string& file, int outer = 0) {
  int depth = 0;
  std::string here;
  for (std::size_t i = from; i < text.size();) {
    const char c = at(text, i);
    if (c == open) ++depth;
    if (c == close && --depth == 0) return i + 1;
    if (c == '\n' && !here.empty()) {
      i = end_of_here(text, i + 1, here).end;
      here.clear();
    } else if (open == '(' && c == '<' && at(text, i + 1) == '<' && at(text, i + 2) != '<') {
      i += 2;
      here = ending_word(text, i);
    } else if (c == '#' && open == '(' && i > 0 &&
               (is_blank(at(text, i - 1)) || at(text, i - 1) == '\n')) {
      while (i < text.size() && at(text, i) != '\n') ++i;
    } else {
      i = c == open ? i + 1 : behind_piece(text, i, file, outer);
    }
  }
  never_closed(text, from, fmt::format("a {}", open), file);
}

enum class TokenKind : std::uint8_t { word, sign, line_end, end };
struct Token {
  TokenKind kind = TokenKind::end;
  ShellText text{};
  std::string sign{};
  int line = 0;
  bool apart = false;  // a blank stands before it
};

constexpr std::array<std::string_view, 23> signs{";;&", "<<<", "<<-", "&>>", ";;", ";&", "&&", "||",
                                                 "|&",  "<<",  "<&",  "<>",  ">>", ">&", ">|", "&>",
                                                 ";",   "&",   "|",   "<",   ">",  "(",  ")"};

class ShellLexer {
 public:
  ShellLexer(const ShellText& text, const std::string& file) : text_(text), file_(file) {}

  Token next() {
    const std::size_t from = place_;
    skip_blanks();
    Token token;
    token.apart = place_ > from;
    token.line = line();
    if (place_ >= text_.size()) return token;
    if (at(text_, place_) == '\n') {
      place_ = place_ == here_line_ ? here_end_ : place_ + 1;
      token.kind = TokenKind::line_end;
      return token;
    }
    token.sign = is_substitution(place_) ? "" : sign_here();
    if (!token.sign.empty()) {
      place_ += token.sign.size();
      token.kind = TokenKind::sign;
      return token;
    }
    token.kind = TokenKind::word;
    token.text = word();
    return token;
  }

  // Reads behind << the document that begins in the next line.
  ShellRedirection here_document(std::string sign) {
    ShellRedirection result{std::move(sign), {}};
    skip_blanks();
    for (std::size_t i = place_; i < text_.size() && at(text_, i) != '\n'; ++i)
      if (!is_blank(at(text_, i))) {
        result.literal = at(text_, i) == '\'' || at(text_, i) == '"' || at(text_, i) == '\\';
        break;
      }
    const std::string end = ending_word(text_, place_);
    std::size_t from = here_line_ >= place_ && here_line_ < text_.size() ? here_end_ : place_;
    if (from == place_) {
      while (from < text_.size() && at(text_, from) != '\n') ++from;
      here_line_ = from++;
    }
    from = std::min(from, text_.size());
    const HereEnd place = end_of_here(text_, from, end);
    result.body = part(from, place.begin);
    here_end_ = place.end;
    return result;
  }

  // Reads all up to )) of an arithmetic command.
  ShellText arithmetic() {
    const std::size_t from = place_;
    for (int depth = 0; place_ < text_.size(); ++place_) {
      const char c = at(text_, place_);
      if (c == '(') ++depth;
      if (c == ')' && depth-- == 0) break;
    }
    ShellText result = part(from, place_);
    place_ = std::min(place_ + 2, text_.size());
    return result;
  }

  int line() const { return text_.empty() ? 1 : text_[std::min(place_, text_.size() - 1)].line; }

 private:
  ShellText part(std::size_t from, std::size_t to) const {
    to = std::min(to, text_.size());
    if (from >= to) return {};
    return {text_.begin() + static_cast<std::ptrdiff_t>(from),
            text_.begin() + static_cast<std::ptrdiff_t>(to)};
  }

  bool is_substitution(std::size_t place) const {
    return (at(text_, place) == '<' || at(text_, place) == '>') && at(text_, place + 1) == '(';
  }

  void skip_blanks() {
    while (place_ < text_.size()) {
      const char c = at(text_, place_);
      if (is_blank(c)) {
        ++place_;
      } else if (c == '\\' && at(text_, place_ + 1) == '\n') {
        place_ += 2;
      } else if (c == '#') {
        while (place_ < text_.size() && at(text_, place_) != '\n') ++place_;
      } else {
        return;
      }
    }
  }

  std::string sign_here() const {
    for (const std::string_view sign : signs) {
      std::size_t i = 0;
      while (i < sign.size() && at(text_, place_ + i) == sign[i]) ++i;
      if (i == sign.size()) return std::string(sign);
    }
    return "";
  }

  // Returns the place behind the piece of a word at `place_`; `place_` itself where the word ends.
  std::size_t behind_part_of_word(std::size_t from) const {
    const char c = at(text_, place_);
    const char before = place_ > from ? at(text_, place_ - 1) : '\0';
    if (c == '(' && (before == '=' || before == '@' || before == '?' || before == '!'))
      return behind_bracket(text_, place_, '(', ')', file_);
    if (is_substitution(place_)) return behind_bracket(text_, place_ + 1, '(', ')', file_);
    if (c == '\n' || is_blank(c) || std::string_view(";&|<>()").find(c) < 7) return place_;
    return behind_piece(text_, place_, file_);
  }

  ShellText word() {
    const std::size_t from = place_;
    ShellText result;
    while (place_ < text_.size()) {
      if (at(text_, place_) == '\\' && at(text_, place_ + 1) == '\n') {
        place_ += 2;
        continue;
      }
      const std::size_t end = std::min(behind_part_of_word(from), text_.size());
      if (end == place_) break;
      const ShellText piece = part(place_, end);
      result.insert(result.end(), piece.begin(), piece.end());
      place_ = end;
    }
    return result;
  }

  const ShellText& text_;
  const std::string& file_;
  std::size_t place_ = 0;
  std::size_t here_line_ = std::string::npos, here_end_ = 0;  // the line's end before a document
};

class Parser {
 public:
  Parser(const ShellText& text, const std::string& file) : lexer_(text, file), file_(file) {
    advance();
  }

  ShellNode script() {
    ShellNode all = list();
    while (token_.kind != TokenKind::end) {  // a stray `done` or `)`: what follows is read as well
      advance();
      ShellNode more = list();
      for (ShellNode& node : more.nodes) all.nodes.push_back(std::move(node));
    }
    return all;
  }

 private:
  void advance() { token_ = lexer_.next(); }
  bool is_word(std::string_view word) const {
    return token_.kind == TokenKind::word && plain(token_.text) == word;
  }
  bool is_sign(std::string_view sign) const {
    return token_.kind == TokenKind::sign && token_.sign == sign;
  }
  bool take_word(std::string_view word) {
    if (!is_word(word)) return false;
    advance();
    return true;
  }
  void expect(std::string_view word, std::string_view block, int line) {
    if (!take_word(word))
      throw UserError(
          {{file_, line, "", fmt::format("`{}` begins here and has no `{}`", block, word)}});
  }
  void skip_line_ends() {
    while (token_.kind == TokenKind::line_end) advance();
  }
  bool ends() const {
    constexpr std::array always{"fi", "done", "esac", "}", "then", "else", "elif", "do"};
    if (token_.kind == TokenKind::end || is_sign(")") || is_sign(";;") || is_sign(";&") ||
        is_sign(";;&"))
      return true;
    return std::any_of(always.begin(), always.end(), [&](auto word) { return is_word(word); });
  }

  ShellNode list() {
    if (++depth_ > deepest_block)
      throw UserError({{file_, token_.line, "", "blocks in blocks, too many of them"}});
    ShellNode result{.kind = ShellKind::list, .line = token_.line};
    ShellLink link = ShellLink::then;
    while (true) {
      while (token_.kind == TokenKind::line_end || is_sign(";") || is_sign("&")) {
        if (token_.kind != TokenKind::line_end) link = ShellLink::then;
        advance();
      }
      if (ends()) break;
      ShellNode node = command();
      node.link = link;
      result.nodes.push_back(std::move(node));
      link = ShellLink::then;
      if (is_sign("&&")) link = ShellLink::if_well;
      if (is_sign("||")) link = ShellLink::if_not;
      if (is_sign("|") || is_sign("|&")) link = ShellLink::pipe;
      if (link != ShellLink::then) advance();
    }
    --depth_;
    return result;
  }

  ShellNode command() {
    bool negated = false;
    while (is_word("!") || is_word("time")) {
      negated = negated != is_word("!");
      advance();
    }
    ShellNode node = compound();
    node.negated = negated;
    if (node.kind != ShellKind::simple) read_redirections(node);
    return node;
  }

  ShellNode compound() {
    const int line = token_.line;
    if (take_word("if")) return condition(line);
    if (take_word("case")) return cases(line);
    if (take_word("for") || take_word("select")) return repetition(line);
    if (is_word("while") || is_word("until")) {
      advance();
      ShellNode node{.kind = ShellKind::loop, .line = line};
      node.nodes.push_back(list());
      node.nodes.push_back(body(line, "while"));
      return node;
    }
    if (take_word("{")) {
      ShellNode node = list();
      expect("}", "{", line);
      return node;
    }
    if (is_sign("(")) return brackets(line);
    if (take_word("function")) {
      const ShellText name = token_.text;
      advance();
      return function(name, line);
    }
    if (is_word("[[")) return test(line);
    return simple(line);
  }

  ShellNode brackets(int line) {
    advance();
    if (is_sign("(") && token_.line == line) {
      ShellNode node{.kind = ShellKind::simple, .line = line};
      node.words = {shell_text("((", line), lexer_.arithmetic()};
      advance();
      return node;
    }
    ShellNode node{.kind = ShellKind::subshell, .line = line};
    node.nodes.push_back(list());
    if (is_sign(")")) advance();
    return node;
  }

  ShellNode condition(int line) {
    ShellNode node{.kind = ShellKind::condition, .line = line};
    node.nodes.push_back(list());
    expect("then", "if", line);
    node.nodes.push_back(list());
    while (take_word("elif")) {
      node.nodes.push_back(list());
      expect("then", "elif", line);
      node.nodes.push_back(list());
    }
    if (take_word("else")) node.nodes.push_back(list());
    expect("fi", "if", line);
    return node;
  }

  ShellNode body(int line, std::string_view block) {
    while (token_.kind == TokenKind::line_end || is_sign(";")) advance();
    expect("do", block, line);
    ShellNode node = list();
    expect("done", block, line);
    return node;
  }

  ShellNode repetition(int line) {
    ShellNode node{.kind = ShellKind::repetition, .line = line};
    if (is_sign("(")) {  // for ((...)): what the variable begins with is all that is known
      advance();
      lexer_.arithmetic();
      advance();
    } else {
      node.words.push_back(token_.text);
      advance();
      skip_line_ends();
      if (take_word("in"))
        for (; token_.kind == TokenKind::word; advance()) node.words.push_back(token_.text);
    }
    node.nodes.push_back(body(line, "for"));
    return node;
  }

  ShellNode cases(int line) {
    ShellNode node{.kind = ShellKind::cases, .line = line};
    node.words.push_back(token_.text);
    advance();
    skip_line_ends();
    expect("in", "case", line);
    for (skip_line_ends(); token_.kind != TokenKind::end && !is_word("esac"); skip_line_ends()) {
      std::vector<ShellText>& patterns = node.patterns.emplace_back();
      while (is_sign("(") || is_sign("|") || token_.kind == TokenKind::word) {
        if (token_.kind == TokenKind::word) patterns.push_back(token_.text);
        advance();
      }
      if (!is_sign(")")) break;
      advance();
      node.nodes.push_back(list());
      if (token_.kind == TokenKind::sign) advance();
    }
    node.patterns.resize(node.nodes.size());
    expect("esac", "case", line);
    return node;
  }

  ShellNode function(const ShellText& name, int line) {
    while (is_sign("(") || is_sign(")")) advance();
    skip_line_ends();
    ShellNode node{.kind = ShellKind::function, .line = line};
    node.words.push_back(name);
    if (++depth_ > deepest_block)
      throw UserError({{file_, line, "", "blocks in blocks, too many of them"}});
    node.nodes.push_back(command());
    --depth_;
    return node;
  }

  // Reads a test: signs are words in [[ ]].
  ShellNode test(int line) {
    ShellNode node{.kind = ShellKind::simple, .line = line};
    for (; token_.kind != TokenKind::end && !is_word("]]"); advance()) {
      if (token_.kind == TokenKind::word) node.words.push_back(token_.text);
      if (token_.kind == TokenKind::sign)
        node.words.push_back(shell_text(token_.sign, token_.line));
    }
    expect("]]", "[[", line);
    return node;
  }

  bool read_redirection(ShellNode& node) {
    constexpr std::string_view known = "<<< <<- << <& <> < >> >& >| > &> &>>";
    if (token_.kind != TokenKind::sign || token_.sign.find_first_of("<>") == std::string::npos)
      return false;
    if (known.find(token_.sign) == std::string_view::npos) return false;
    const std::string sign = token_.sign;
    if (sign == "<<" || sign == "<<-") {
      node.redirections.push_back(lexer_.here_document(sign));
      advance();
      return true;
    }
    advance();
    if (token_.kind == TokenKind::word) {
      node.redirections.push_back({sign, token_.text});
      advance();
    }
    return true;
  }
  void read_redirections(ShellNode& node) {
    while (read_redirection(node)) {
    }
  }

  // The 2 of 2>&1 is no word, that of 2 >log is one.
  bool is_descriptor(const ShellText& word) const {
    return !word.empty() && token_.kind == TokenKind::sign && !token_.apart &&
           (token_.sign.front() == '<' || token_.sign.front() == '>') &&
           std::all_of(word.begin(), word.end(),
                       [](const Letter& letter) { return is_digit(letter.c); });
  }

  ShellNode simple(int line) {
    ShellNode node{.kind = ShellKind::simple, .line = line};
    while (true) {
      if (token_.kind == TokenKind::word) {
        node.words.push_back(token_.text);
        advance();
        if (is_descriptor(node.words.back())) node.words.pop_back();
        if (node.words.size() == 1 && is_sign("(")) return function(node.words.front(), line);
      } else if (!read_redirection(node)) {
        break;
      }
    }
    if (node.words.empty() && node.redirections.empty()) advance();  // a sign that means nothing
    return node;
  }

  ShellLexer lexer_;
  const std::string& file_;
  Token token_{};
  int depth_ = 0;
};

}  // namespace

std::size_t behind_piece(const ShellText& text, std::size_t from, const std::string& file,
                         int depth) {
  if (++depth > deepest_block)
    throw UserError({{file, text[from].line, "", "brackets in brackets, too many of them"}});
  const char c = at(text, from), next = at(text, from + 1);
  if (c == '\\') return std::min(from + 2, text.size());
  if (c == '\'') return behind(text, from, '\'', file);
  if (c == '`') return behind(text, from, '`', file);
  if (c == '"') return behind_double_quotes(text, from, file, depth);
  if (c == '$' && next == '(') return behind_bracket(text, from + 1, '(', ')', file, depth);
  if (c == '$' && next == '{') return behind_bracket(text, from + 1, '{', '}', file, depth);
  if (c == '$' && next == '\'') return behind(text, from + 1, '\'', file);
  return from + 1;
}

std::vector<ShellText> words_of_list(const ShellText& text, const std::string& file) {
  std::vector<ShellText> words;
  ShellLexer lexer(text, file);
  for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next())
    if (token.kind == TokenKind::word) words.push_back(std::move(token.text));
  return words;
}

ShellNode parse_shell(const ShellText& text, const std::string& file) {
  return Parser(text, file).script();
}

ShellText shell_text(std::string_view text, int line) {
  ShellText result;
  result.reserve(text.size());
  for (const char c : text) {
    result.push_back({c, line});
    if (c == '\n') ++line;
  }
  return result;
}

std::string plain(const ShellText& text) {
  std::string result;
  for (const Letter& letter : text)
    if (letter.unknown < 0) result += letter.c;
  return result;
}

}  // namespace stepsim
