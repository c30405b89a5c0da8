#include "scenarios/foreign/text/python_syntax.hpp"

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
      if (c == '\\' && raw && at(place_ + 1) == quote) said += at(place_++);  // it closes nothing
      if (c == '\\' && !raw && place_ + 1 < text_.size()) {
        ++place_;
        if (at(place_) == '\n') ++line_;
        if (at(place_) != '\n') said += at(place_) == 'n' ? '\n' : at(place_);
        continue;
      }
      said += at(place_);
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

// Brackets around a place, counted while one walks along.
struct Depth {
  int count = 0;
  bool inside(const PythonToken& token) {
    const bool inside = count > 0;
    if (token.kind == PythonKind::sign) {
      if (token.text == "(" || token.text == "[" || token.text == "{") ++count;
      if (token.text == ")" || token.text == "]" || token.text == "}") --count;
    }
    return inside;
  }
};

constexpr std::size_t nowhere = std::string::npos;

// Returns the first place of the sign in no brackets, from a place on.
std::size_t find_outside(const PythonTokens& tokens, std::string_view sign, std::size_t from = 0) {
  Depth depth;
  for (std::size_t i = from; i < tokens.size(); ++i)
    if (!depth.inside(tokens[i]) && is_sign(tokens[i], sign)) return i;
  return nowhere;
}

PythonTokens part_of(const PythonTokens& tokens, std::size_t from, std::size_t end) {
  from = std::min(from, tokens.size());
  end = std::max(from, std::min(end, tokens.size()));
  return {tokens.begin() + static_cast<std::ptrdiff_t>(from),
          tokens.begin() + static_cast<std::ptrdiff_t>(end)};
}

// Returns a.b and a["b"] as "a.b"; "" for what is no such place.
std::string target_name(const PythonTokens& tokens) {
  std::string name;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].kind == PythonKind::name && (i == 0 || is_sign(tokens[i - 1], ".")))
      name += tokens[i].text;
    else if (is_sign(tokens[i], ".") && i > 0)
      name += '.';
    else if (is_sign(tokens[i], "[") && i > 0 && i + 2 < tokens.size() &&
             tokens[i + 1].kind == PythonKind::text && is_sign(tokens[i + 2], "]")) {
      name += "." + tokens[i + 1].text;
      i += 2;
    } else {
      return "";
    }
  }
  return name;
}

std::vector<std::string> target_names(PythonTokens tokens) {
  if (tokens.size() > 2 && is_sign(tokens.front(), "(") && is_sign(tokens.back(), ")"))
    tokens = part_of(tokens, 1, tokens.size() - 1);
  std::vector<std::string> names;
  for (const PythonTokens& part : parts_between(tokens, ",")) names.push_back(target_name(part));
  const bool none = std::ranges::all_of(names, [](const auto& name) { return name.empty(); });
  return none ? std::vector<std::string>{} : names;
}

// Reads a, b = value; a.b = value; a: int = value; a += value.
std::vector<PythonAssignment> read_assignments(const PythonTokens& tokens) {
  std::vector<PythonAssignment> found;
  const int line = tokens.front().line;
  constexpr std::array<std::string_view, 4> adding{"+=", "-=", "*=", "/="};
  for (const std::string_view sign : adding)
    if (const std::size_t at = find_outside(tokens, sign); at != nowhere && at > 0) {
      PythonAssignment one{target_names(part_of(tokens, 0, at)), part_of(tokens, 0, at), line};
      one.value.push_back({PythonKind::sign, std::string(sign.substr(0, 1)), line});
      one.value.push_back({PythonKind::sign, "(", line});
      const PythonTokens more = part_of(tokens, at + 1, tokens.size());
      one.value.insert(one.value.end(), more.begin(), more.end());
      one.value.push_back({PythonKind::sign, ")", line});
      if (!one.names.empty()) found.push_back(std::move(one));
      return found;
    }
  std::size_t from = 0;
  std::vector<std::vector<std::string>> targets;
  for (std::size_t at = find_outside(tokens, "="); at != nowhere;
       at = find_outside(tokens, "=", from)) {
    PythonTokens target = part_of(tokens, from, at);
    target = part_of(target, 0, find_outside(target, ":"));
    targets.push_back(target_names(std::move(target)));
    from = at + 1;
  }
  const PythonTokens value = part_of(tokens, from, tokens.size());
  if (value.empty()) return found;
  for (std::vector<std::string>& names : targets)
    if (!names.empty()) found.push_back({std::move(names), value, line});
  return found;
}

std::vector<PythonParameter> read_parameters(const PythonTokens& tokens) {
  std::vector<PythonParameter> parameters;
  const std::size_t open = find_outside(tokens, "(");
  if (open == nowhere) return parameters;
  Depth depth;
  std::size_t end = open;
  for (; end < tokens.size(); ++end) {
    depth.inside(tokens[end]);
    if (depth.count == 0) break;
  }
  for (const PythonTokens& part : parts_between(part_of(tokens, open + 1, end), ",")) {
    if (part.empty() || part.front().kind != PythonKind::name) continue;
    const std::size_t at = find_outside(part, "=");
    parameters.push_back(
        {part.front().text, at == nowhere ? PythonTokens{} : part_of(part, at + 1, part.size())});
  }
  return parameters;
}

// Sorts statements into scopes, classes and the guards that they stand under.
class ShapeReader {
 public:
  ShapeReader() {
    shape_.scopes.resize(1);
    open_.push_back({});
  }

  void take(const Statement& statement) {
    while (open_.size() > 1 && statement.indent <= open_.back().indent) close();
    std::erase_if(chains_, [&](const auto& each) { return each.first > statement.indent; });
    read(statement.tokens, statement.indent);
  }

  PythonShape finish() { return std::move(shape_); }

 private:
  static constexpr std::size_t no_class = nowhere;
  struct Open {
    std::size_t indent = 0, scope = 0, owner = no_class;
    int guard = -1;
    bool leaves = false;  // it ends with `return`
  };

  int add_guard(int around, PythonTokens condition, bool wanted) {
    shape_.guards.push_back({around, std::move(condition), wanted});
    return static_cast<int>(shape_.guards.size()) - 1;
  }

  // Code behind `if C: return` runs where C does not hold.
  void close() {
    const Open inner = open_.back();
    open_.pop_back();
    Open& outer = open_.back();
    const auto otherwise = chains_.find(inner.indent);
    if (!inner.leaves || inner.scope != outer.scope || inner.guard == outer.guard ||
        otherwise == chains_.end() || otherwise->second < 0 || otherwise->second == inner.guard)
      return;
    if (shape_.guards[static_cast<std::size_t>(otherwise->second)].around == outer.guard)
      outer.guard = otherwise->second;
  }

  // Opens a block, whose first statement may stand in the same line.
  void open(std::size_t indent, Open block, const PythonTokens& tokens, std::size_t colon) {
    block.indent = indent;
    open_.push_back(block);
    if (colon == nowhere || colon + 1 >= tokens.size()) return;
    read(part_of(tokens, colon + 1, tokens.size()), indent + 1);
    while (open_.size() > 1 && open_.back().indent >= indent) close();
  }

  void read(const PythonTokens& tokens, std::size_t indent) {
    if (tokens.empty() || open_.size() > deepest) return;
    const Open here = open_.back();
    if (is_sign(tokens.front(), "@")) {
      decorators_.push_back(part_of(tokens, 1, tokens.size()));
      return keep(tokens, here);
    }
    if (tokens.front().kind != PythonKind::name) return keep(tokens, here);
    const std::size_t first = tokens.front().text == "async" && tokens.size() > 1 ? 1 : 0;
    const std::string& word = tokens[first].text;
    const std::size_t colon = find_outside(tokens, ":");
    if (word == "def" && tokens.size() > first + 1) return function(tokens, first, indent, here);
    if (word == "class" && tokens.size() > 1) return type(tokens, indent, here);
    decorators_.clear();
    if (colon != nowhere && block(tokens, word, indent, here, colon)) return;
    if (word == "return") open_.back().leaves = true;
    if (word == "return" && tokens.size() > 1)
      shape_.scopes[here.scope].returns.push_back(
          {{}, part_of(tokens, 1, tokens.size()), tokens.front().line, here.guard});
    if (word == "from" || word == "import") return take_import(tokens);
    keep(tokens, here);
  }

  // Returns whether it is the head of a block.
  bool block(const PythonTokens& tokens, const std::string& word, std::size_t indent,
             const Open& here, std::size_t colon) {
    Open inner = here;
    const auto head = [&] { keep(part_of(tokens, 0, colon), here); };
    if (word == "if" || word == "elif") {
      const auto before = chains_.find(indent);
      const int around = word == "elif" && before != chains_.end() ? before->second : here.guard;
      const PythonTokens condition = part_of(tokens, 1, colon);
      head();
      inner.guard = add_guard(around, condition, true);
      chains_[indent] = add_guard(around, condition, false);
    } else if (word == "else") {
      const auto before = chains_.find(indent);
      if (before != chains_.end()) inner.guard = before->second;
    } else if (word == "except") {
      inner.guard = add_guard(here.guard, {}, true);
      chains_[indent] = here.guard;
    } else if (word == "for" || word == "while" || word == "try" || word == "finally") {
      head();
      chains_[indent] = here.guard;
    } else if (word == "with" || (word == "async" && tokens[1].text == "with")) {
      with(part_of(tokens, 1, colon), here);
    } else {
      return false;
    }
    open(indent, inner, tokens, colon);
    return true;
  }

  // with open(X) as f: is f = open(X).
  void with(const PythonTokens& tokens, const Open& here) {
    for (const PythonTokens& part : parts_between(tokens, ",")) {
      if (part.empty()) continue;
      std::size_t as = 0;
      while (as < part.size() && !is_name(part[as], "as")) ++as;
      PythonTokens said;
      if (as + 1 < part.size()) {
        said = part_of(part, as + 1, part.size());
        said.push_back({PythonKind::sign, "=", part.front().line});
      }
      const PythonTokens value = part_of(part, 0, as);
      said.insert(said.end(), value.begin(), value.end());
      if (!said.empty()) keep(said, here);
    }
  }

  void function(const PythonTokens& tokens, std::size_t first, std::size_t indent,
                const Open& here) {
    PythonScope scope{.name = tokens[first + 1].text};
    if (here.owner != no_class) scope.of = shape_.classes[here.owner].name;
    scope.around = here.scope;
    scope.parameters = read_parameters(tokens);
    scope.decorators = std::move(decorators_);
    decorators_.clear();
    shape_.scopes.push_back(std::move(scope));
    open(indent, {.scope = shape_.scopes.size() - 1}, tokens, find_outside(tokens, ":"));
  }

  void type(const PythonTokens& tokens, std::size_t indent, const Open& here) {
    PythonClass own{.name = tokens[1].text, .line = tokens.front().line};
    const std::size_t colon = find_outside(tokens, ":");
    for (const PythonTokens& base :
         parts_between(part_of(tokens, 3, std::min(colon, tokens.size()) - 1), ","))
      if (!base.empty() && base.back().kind == PythonKind::name)
        own.bases.push_back(base.back().text);
    for (const PythonTokens& each : decorators_)
      for (const PythonToken& token : each)
        own.is_data = own.is_data || token.text.find("dataclass") != std::string::npos;
    decorators_.clear();
    shape_.classes.push_back(std::move(own));
    open(indent, {.scope = here.scope, .owner = shape_.classes.size() - 1, .guard = here.guard},
         tokens, colon);
  }

  void take_import(const PythonTokens& tokens) {
    PythonImport one{.line = tokens.front().line};
    std::size_t at = 1;
    for (; at < tokens.size() && !is_name(tokens[at], "import") && !is_sign(tokens[at], ","); ++at)
      one.module += tokens[at].text;
    for (++at; at < tokens.size(); ++at) {
      if (is_name(tokens[at], "as") && at + 1 < tokens.size() && !one.names.empty())
        shape_.aliases[tokens[at + 1].text] = one.names.back();
      if (tokens[at].kind == PythonKind::name || is_sign(tokens[at], "*"))
        one.names.push_back(tokens[at].text);
    }
    shape_.imports.push_back(std::move(one));
  }

  void keep(const PythonTokens& tokens, const Open& here) {
    for (PythonAssignment& each : read_assignments(tokens)) {
      each.guard = here.guard;
      (here.owner == no_class ? shape_.scopes[here.scope].assignments
                              : shape_.classes[here.owner].fields)
          .push_back(std::move(each));
    }
    // A field without a value: name: type.
    if (here.owner != no_class && tokens.size() > 2 && is_sign(tokens[1], ":") &&
        find_outside(tokens, "=") == nowhere)
      shape_.classes[here.owner].fields.push_back({{tokens[0].text}, {}, tokens[0].line});
    shape_.scopes[here.scope].statements.push_back({tokens, here.guard});
  }

  static constexpr std::size_t deepest = 200;  // blocks in blocks
  PythonShape shape_{};
  std::vector<Open> open_{};
  std::map<std::size_t, int> chains_{};  // by indent: what holds where an `else` stands
  std::vector<PythonTokens> decorators_{};
};

}  // namespace

bool is_sign(const PythonToken& token, std::string_view sign) {
  return token.kind == PythonKind::sign && token.text == sign;
}
bool is_name(const PythonToken& token, std::string_view name) {
  return token.kind == PythonKind::name && token.text == name;
}

std::vector<PythonTokens> parts_between(const PythonTokens& tokens, std::string_view sign) {
  std::vector<PythonTokens> parts;
  for (std::size_t from = 0; from < tokens.size();) {
    const std::size_t end = std::min(find_outside(tokens, sign, from), tokens.size());
    parts.push_back(part_of(tokens, from, end));
    from = end + 1;
  }
  return parts;
}

PythonShape parse_python(std::string_view text, const std::string& file) {
  ShapeReader reader;
  for (const Statement& statement : PythonLexer(text, file).statements()) reader.take(statement);
  return reader.finish();
}

}  // namespace stepsim
