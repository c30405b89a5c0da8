// Mappings and lists in blocks or brackets, words, quotes without escapes and texts of several
// lines without gaps. Whatever else turns up, a repeated key or a tab say, ends it at once.
#include "sim/base/plain_yaml.hpp"

#include <algorithm>
#include <unordered_set>

namespace stepsim::detail {
namespace {

constexpr std::size_t longest_text = 1u << 20;
constexpr int most_levels = 32;
constexpr std::size_t longest_key = 512;
constexpr std::size_t few_keys = 16;  // looked through one by one
constexpr char no_more = '\0';

// Something that this reader leaves to the other one.
struct Unsure {};

bool has_only_plain_letters(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (static_cast<unsigned char>(c) >= ' ' && c != '\x7f') || c == '\n';
  });
}

bool reads_as_nothing(std::string_view word) {
  return word.empty() || word == "~" || word == "null" || word == "Null" || word == "NULL";
}

bool is_among(char c, std::string_view letters) {
  return letters.find(c) != std::string_view::npos;
}

class KnownKeys {
 public:
  bool add(const std::vector<Entry>& entries, const std::string& key) {
    if (entries.size() < few_keys)
      return std::ranges::none_of(entries, [&](const Entry& each) { return each.key == key; });
    if (keys_.empty())
      for (const Entry& each : entries) keys_.insert(each.key);
    return keys_.insert(key).second;
  }

 private:
  std::unordered_set<std::string> keys_;
};

class PlainReader {
 public:
  explicit PlainReader(std::string_view text) : text_(text) {}

  Node read() {
    begin_line();
    skip_gap();
    if (at_end()) throw Unsure();
    Node node = block(no_indent, 0);
    if (!at_end()) throw Unsure();
    return node;
  }

 private:
  static constexpr int no_indent = -1;

  bool at_end() const { return at_ >= text_.size(); }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : no_more;
  }
  bool is_gap(std::size_t ahead) const {
    return is_among(peek(ahead), std::string_view(" \n\0", 3));
  }
  int column() const { return static_cast<int>(at_ - line_begin_); }
  std::string_view from(std::size_t begin) const { return text_.substr(begin, at_ - begin); }

  Node node_of(Shape shape) const {
    Node node;
    node.shape = shape;
    node.line = line_;
    return node;
  }

  void skip_spaces() {
    while (peek() == ' ') ++at_;
  }
  void skip_comment() {
    if (peek() != '#') return;
    if (at_ > line_begin_ && text_[at_ - 1] != ' ') throw Unsure();
    at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void end_line() {
    ++at_;
    ++line_;
    begin_line();
  }
  void begin_line() {
    line_begin_ = at_;
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("---") || rest.starts_with("...") || rest.starts_with('%')) throw Unsure();
  }
  // Skips to the next word, on this line or a later one.
  void skip_gap() {
    for (;;) {
      skip_spaces();
      skip_comment();
      if (peek() != '\n' || at_end()) return;
      end_line();
    }
  }
  // One value that stands at this column, below something at column `indent`.
  Node block(int indent, int level) {
    if (level > most_levels) throw Unsure();
    if (peek() == '-' && is_gap(1)) return list(column(), level);
    if (begins_with_key()) return mapping(column(), level);
    return on_line(indent, level);
  }

  bool begins_with_key() {
    if (is_among(peek(), "[{|>")) return false;
    const std::size_t begin = at_;
    word(false);
    const bool is_key = peek() == ':';
    at_ = begin;
    return is_key;
  }

  Node mapping(int indent, int level) {
    Node node = node_of(Shape::mapping);
    KnownKeys known;
    while (!at_end() && column() == indent) {
      const int line = line_;
      std::string key = this->key(false);
      if (!known.add(node.entries, key)) throw Unsure();
      Node value = value_of_key(indent, level);
      value.line = line;
      node.entries.push_back({std::move(key), std::move(value)});
    }
    if (!at_end() && column() > indent) throw Unsure();
    return node;
  }

  std::string key(bool in_brackets) {
    const std::size_t begin = at_;
    const bool quoted = is_among(peek(), "\"'");
    std::string key = word(in_brackets);
    if (peek() != ':' || !is_gap(1) || at_ - begin > longest_key || text_[at_ - 1] == ' ' ||
        (!quoted && (reads_as_nothing(key) || key == "<<")))  // << merges
      throw Unsure();
    ++at_;
    return key;
  }

  Node value_of_key(int indent, int level) {
    skip_spaces();
    skip_comment();
    if (peek() != '\n' && !at_end()) {
      if (peek() == '-' && is_gap(1)) throw Unsure();
      return on_line(indent, level + 1);
    }
    skip_gap();
    if (!at_end() && column() > indent) return block(indent, level + 1);
    if (!at_end() && column() == indent && peek() == '-' && is_gap(1))
      return list(indent, level + 1);
    return node_of(Shape::nothing);
  }

  Node list(int indent, int level) {
    Node node = node_of(Shape::sequence);
    while (!at_end() && column() == indent && peek() == '-' && is_gap(1)) {
      ++at_;
      skip_spaces();
      if (is_among(peek(), std::string_view("#|>\n\0", 5))) throw Unsure();
      node.items.push_back(block(indent, level + 1));
    }
    return node;
  }

  // A value that ends its line. Nothing deeper may follow: it would belong to it.
  Node on_line(int indent, int level) {
    Node node = is_among(peek(), "|>") ? text_of_lines(indent) : value(false, level);
    if (node.shape == Shape::scalar && peek() == ':') throw Unsure();
    skip_spaces();
    skip_comment();
    if (peek() != '\n' && !at_end()) throw Unsure();
    skip_gap();
    if (!at_end() && column() > indent) throw Unsure();
    return node;
  }

  // Lines that are as deep as the first one, without empty ones between them.
  Node text_of_lines(int indent) {
    if (indent == no_indent) throw Unsure();
    Node node = node_of(Shape::scalar);
    node.quoted = true;
    const char between = peek() == '|' ? '\n' : ' ';
    ++at_;
    const bool ends_open = peek() == '-';
    if (ends_open) ++at_;
    const int depth = depth_below();
    if (depth <= indent) throw Unsure();
    while (depth_below() == depth) {
      if (peek(1) == '\n') throw Unsure();
      end_line();
      at_ += static_cast<std::size_t>(depth);
      const std::size_t begin = at_;
      at_ = std::min(text_.find('\n', at_), text_.size());
      if (text_[at_ - 1] == ' ') throw Unsure();
      if (!node.scalar.empty()) node.scalar += between;
      node.scalar += from(begin);
    }
    if (depth_below() > indent) throw Unsure();
    if (!ends_open) node.scalar += '\n';
    return node;
  }

  // Returns the depth of the next line; `no_indent` at the end of the text.
  int depth_below() const {
    if (at_end()) return no_indent;
    if (peek() != '\n') throw Unsure();
    const std::size_t line = text_.find_first_not_of('\n', at_);
    if (line == std::string_view::npos) return no_indent;
    const std::size_t first = text_.find_first_not_of(' ', line);
    if (first == std::string_view::npos || text_[first] == '\n') throw Unsure();
    return static_cast<int>(first - line);
  }

  Node value(bool in_brackets, int level) {
    if (level > most_levels) throw Unsure();
    if (peek() == '{') return braces(level);
    if (peek() == '[') return brackets(level);
    Node node = node_of(Shape::scalar);
    node.quoted = is_among(peek(), "\"'");
    node.scalar = word(in_brackets);
    if (!node.quoted && reads_as_nothing(node.scalar)) {
      if (node.scalar.empty()) throw Unsure();
      node.shape = Shape::nothing;
      node.scalar.clear();
    }
    return node;
  }

  Node braces(int level) {
    Node node = node_of(Shape::mapping);
    KnownKeys known;
    ++at_;
    skip_gap();
    while (peek() != '}') {
      const int line = line_;
      std::string key = this->key(true);
      if (!known.add(node.entries, key)) throw Unsure();
      skip_gap();
      Node value = this->value(true, level + 1);
      value.line = line;
      node.entries.push_back({std::move(key), std::move(value)});
      if (!another('}')) break;
    }
    ++at_;
    return node;
  }

  Node brackets(int level) {
    Node node = node_of(Shape::sequence);
    ++at_;
    skip_gap();
    while (peek() != ']') {
      node.items.push_back(value(true, level + 1));
      if (!another(']')) break;
    }
    ++at_;
    return node;
  }

  bool another(char end) {
    skip_gap();
    if (peek() == end) return false;
    if (peek() != ',') throw Unsure();
    ++at_;
    skip_gap();
    if (peek() == end) throw Unsure();
    return true;
  }

  // Returns a word in quotes, or several up to where they end.
  std::string word(bool in_brackets) {
    if (is_among(peek(), "\"'")) return quoted();
    if (!may_begin_word()) throw Unsure();
    const std::size_t begin = at_;
    for (; !at_end() && peek() != '\n'; ++at_) {
      if (peek() == ':' && is_gap(1)) break;
      if (peek() == '#' && text_[at_ - 1] == ' ') break;
      if (!in_brackets) continue;
      if (is_among(peek(), ",]}")) break;
      if (is_among(peek(), "[{?") || (peek() == ':' && is_among(peek(1), ",[]{}"))) throw Unsure();
    }
    std::string_view word = from(begin);
    word.remove_suffix(word.size() - std::min(word.find_last_not_of(' ') + 1, word.size()));
    return std::string(word);
  }

  bool may_begin_word() const {
    const char c = peek();
    if (c == '-') return !is_gap(1) && !is_among(peek(1), "-,[]{}?:#");
    return !at_end() && !is_among(c, " \n,[]{}#&*!|>'\"%@`?:");
  }

  std::string quoted() {
    const char quote = peek();
    const std::size_t begin = ++at_;
    at_ = std::min(text_.find(quote, begin), text_.size());
    const std::string_view inside = from(begin);
    if (at_end() || inside.find('\n') != std::string_view::npos ||
        (quote == '"' && inside.find('\\') != std::string_view::npos) ||
        (quote == '\'' && peek(1) == '\''))
      throw Unsure();
    ++at_;
    return std::string(inside);
  }

  std::string_view text_;
  std::size_t at_ = 0, line_begin_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<Node> parse_plain_yaml(std::string_view text) {
  const bool may_have_mark = !text.empty() && static_cast<unsigned char>(text.front()) > '~';
  if (text.size() > longest_text || may_have_mark || !has_only_plain_letters(text))
    return std::nullopt;
  try {
    return PlainReader(text).read();
  } catch (const Unsure&) {
    return std::nullopt;
  }
}

}  // namespace stepsim::detail
