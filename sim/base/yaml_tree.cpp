// This is the only user of libyaml. Its events become trees of our own, which know the lines of
// their keys and keep none that stands twice.
#include "sim/base/yaml_tree.hpp"

#include <fmt/format.h>
#include <yaml.h>

#include <algorithm>
#include <array>
#include <map>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace stepsim::detail {
namespace {

constexpr std::size_t most_values = 1u << 20;  // aliases can make a small file huge,
constexpr std::size_t most_text = 64u << 20;   // in two ways
constexpr std::string_view merge_key = "<<";
constexpr std::string_view more_than_one = "expected the end of the file here";

struct Size {
  std::size_t values = 0, text = 0;

  void add(const Node& node) {
    ++values;
    text += node.scalar.size();
    for (const Entry& entry : node.entries) add(entry.value);
    for (const Node& item : node.items) add(item);
  }
};

// An event of the parser, which owns its texts.
struct YamlEvent {
  yaml_event_t it{};

  YamlEvent() = default;
  YamlEvent(const YamlEvent&) = delete;
  YamlEvent& operator=(const YamlEvent&) = delete;
  ~YamlEvent() { yaml_event_delete(&it); }
  int line() const { return static_cast<int>(it.start_mark.line) + 1; }
};

// Names an anchor: "" without one.
std::string anchor_name(const yaml_char_t* anchor) {
  return anchor == nullptr ? "" : reinterpret_cast<const char*>(anchor);
}

class TreeBuilder {
 public:
  TreeBuilder(Notes& notes, std::string path) : notes_(notes), path_(std::move(path)) {}

  Node take() { return std::move(root_); }

  void add(const YamlEvent& event) {
    const yaml_event_t& it = event.it;
    switch (it.type) {
      case YAML_SCALAR_EVENT:
        return put(scalar(event), anchor_name(it.data.scalar.anchor));
      case YAML_ALIAS_EVENT:
        return put_alias(anchor_name(it.data.alias.anchor), event.line());
      case YAML_SEQUENCE_START_EVENT:
        return open(Shape::sequence, event.line(), anchor_name(it.data.sequence_start.anchor));
      case YAML_MAPPING_START_EVENT:
        return open(Shape::mapping, event.line(), anchor_name(it.data.mapping_start.anchor));
      case YAML_SEQUENCE_END_EVENT:
      case YAML_MAPPING_END_EVENT:
        return close();
      default:
        return;
    }
  }

 private:
  // A mapping or list that has not ended.
  struct Unfinished {
    Node node;
    std::string anchor{};
    bool after_key = false;  // of a mapping: its next value belongs to `key`
    bool dropped = false;    // the key is wrong, which is noted; its value leads nowhere
    bool merging = false;    // the key is <<: its value's keys belong to the mapping itself
    std::string key;
    int key_line = 0;
    std::vector<Entry> merged{};                         // behind <<, the first of a name counts
    std::unordered_map<std::string, int> first_lines{};  // of its keys: looked up, not searched
  };

  static Node node_at(Shape shape, int line) {
    Node node;
    node.shape = shape;
    node.line = line;
    return node;
  }

  static Node scalar(const YamlEvent& event) {
    constexpr std::array<std::string_view, 5> nothing{"", "~", "null", "Null", "NULL"};
    const auto& said = event.it.data.scalar;
    Node node = node_at(Shape::scalar, event.line());
    node.quoted = said.style != YAML_PLAIN_SCALAR_STYLE;
    node.scalar.assign(reinterpret_cast<const char*>(said.value), said.length);
    if (!node.quoted && std::ranges::find(nothing, node.scalar) != nothing.end())
      return node_at(Shape::nothing, node.line);
    return node;
  }

  void put_alias(const std::string& anchor, int line) {
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) {
      const bool inside = std::ranges::find(open_, anchor, &Unfinished::anchor) != open_.end();
      if (inside) too_much(line);  // it holds itself
      throw UserError({{notes_.file, line, "", "is no valid YAML: nothing is called &" + anchor}});
    }
    size_.add(known->second);
    if (size_.values > most_values || size_.text > most_text) too_much(line);
    put(known->second, "");
  }

  [[noreturn]] void too_much(int line) const {
    throw UserError({{notes_.file, line, path(), "is nested too deeply or too large"}});
  }

  // Returns where the next value will stand.
  std::string path() const {
    std::string path = path_;
    for (const Unfinished& each : open_)
      if (each.node.shape == Shape::sequence)
        path += fmt::format("[{}]", each.node.items.size());
      else if (each.after_key)
        path += (path.empty() ? "" : ".") + each.key;
    return path;
  }

  void open(Shape shape, int line, std::string anchor) {
    if (open_.size() > deepest_nesting) too_much(line);
    Unfinished begun;
    begun.node = node_at(shape, line);
    begun.anchor = std::move(anchor);
    open_.push_back(std::move(begun));
  }

  void close() {
    Unfinished done = std::move(open_.back());
    open_.pop_back();
    for (Entry& entry : done.merged)  // what the mapping says itself stands over it
      if (done.first_lines.emplace(entry.key, entry.value.line).second)
        done.node.entries.push_back(std::move(entry));
    put(std::move(done.node), done.anchor);
  }

  void put(Node node, const std::string& anchor) {
    if (!anchor.empty()) anchored_.insert_or_assign(anchor, node);
    if (++size_.values > most_values) too_much(node.line);
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Unfinished& holder = open_.back();
    if (holder.node.shape == Shape::sequence)
      holder.node.items.push_back(std::move(node));
    else if (holder.after_key)
      put_value(holder, std::move(node));
    else
      put_key(holder, node);
  }

  void put_key(Unfinished& mapping, const Node& key) {
    mapping.dropped = true;
    mapping.merging = key.shape == Shape::scalar && key.scalar == merge_key && !key.quoted;
    mapping.key = key.scalar;
    mapping.key_line = key.line;
    if (key.shape != Shape::scalar) {
      notes_.add(key.line, path(), "a key must be a word");
      mapping.after_key = true;
      return;
    }
    mapping.after_key = true;
    const auto [first, is_new] = mapping.first_lines.emplace(key.scalar, key.line);
    if (!is_new) {
      notes_.add(key.line, path(),
                 fmt::format("the key stands here twice, first in line {}", first->second));
      return;
    }
    mapping.dropped = false;
  }

  // Merges a mapping, or a list of them.
  void merge(Unfinished& mapping, Node value) {
    std::vector<Node> all;
    if (value.shape == Shape::sequence)
      all = std::move(value.items);
    else
      all.push_back(std::move(value));
    for (Node& each : all) {
      if (each.shape != Shape::mapping)
        return notes_.add(mapping.key_line, path(), "expected a mapping, or a list of mappings");
      for (Entry& entry : each.entries) mapping.merged.push_back(std::move(entry));
    }
  }

  void put_value(Unfinished& mapping, Node value) {
    if (mapping.merging) {
      if (!mapping.dropped) merge(mapping, std::move(value));  // its messages name the key
      mapping.after_key = false;
      return;
    }
    mapping.after_key = false;
    value.line = mapping.key_line;  // where the user looks, also when the value begins below
    if (!mapping.dropped) mapping.node.entries.push_back({mapping.key, std::move(value)});
  }

  Notes& notes_;
  std::string path_;
  Node root_;
  std::vector<Unfinished> open_;  // innermost last
  std::map<std::string, Node> anchored_;
  Size size_;
};

// A parser of a text, which it refers to.
struct YamlParser {
  yaml_parser_t it{};

  explicit YamlParser(std::string_view text) {
    if (yaml_parser_initialize(&it) == 0) throw std::bad_alloc();
    yaml_parser_set_encoding(&it, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&it, reinterpret_cast<const unsigned char*>(text.data()),
                                 text.size());
  }
  YamlParser(const YamlParser&) = delete;
  YamlParser& operator=(const YamlParser&) = delete;
  ~YamlParser() { yaml_parser_delete(&it); }
};

[[noreturn]] void refuse(const yaml_parser_t& parser, std::string_view text,
                         const std::string& file) {
  const std::string_view context = parser.context == nullptr ? "" : parser.context;
  const std::string_view problem = parser.problem == nullptr ? "" : parser.problem;
  const std::string language = file.ends_with(".json") ? "JSON" : "YAML";
  if (context.find("quoted scalar") != std::string_view::npos &&
      problem.find("end of stream") != std::string_view::npos)  // the line would say nothing
    throw UserError(
        {{file, 0, "", fmt::format("is no valid {}: a quote is never closed", language)}});
  const auto line = parser.error == YAML_READER_ERROR
                        ? std::ranges::count(text.substr(0, parser.problem_offset), '\n')
                        : static_cast<std::ptrdiff_t>(parser.problem_mark.line);
  const bool ended = problem.ends_with("<document start>");
  throw UserError({{file, static_cast<int>(line) + 1, "",
                    ended ? std::string(more_than_one)
                          : fmt::format("is no valid {}: {}", language, problem)}});
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& file, Notes& notes,
                const std::string& path) {
  YamlParser parser(text);
  TreeBuilder tree(notes, path);
  for (bool begun = false;;) {
    YamlEvent event;
    if (yaml_parser_parse(&parser.it, &event.it) == 0) refuse(parser.it, text, file);
    if (event.it.type == YAML_STREAM_END_EVENT) return tree.take();
    if (event.it.type == YAML_DOCUMENT_START_EVENT && std::exchange(begun, true))
      throw UserError({{file, event.line(), "", std::string(more_than_one)}});
    tree.add(event);
  }
}

}  // namespace stepsim::detail
