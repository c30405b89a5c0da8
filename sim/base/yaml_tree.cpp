// This is the only user of yaml-cpp. Its own trees keep repeated keys silently and count lines from
// zero, and building them takes as long as reading; so ours are built from what its parser comes
// across.
#include "sim/base/yaml_tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/depthguard.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <map>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "sim/base/plain_yaml.hpp"

namespace stepsim::detail {
namespace {

constexpr std::size_t most_values = 1u << 20;  // aliases can make a small file huge,
constexpr std::size_t most_text = 64u << 20;   // in two ways
constexpr std::string_view merge_key = "<<";

struct Size {
  std::size_t values = 0, text = 0;

  void add(const Node& node) {
    ++values;
    text += node.scalar.size();
    for (const Entry& entry : node.entries) add(entry.value);
    for (const Node& item : node.items) add(item);
  }
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(Notes& notes, std::string path) : notes_(notes), path_(std::move(path)) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    put(node_at(mark, Shape::nothing), anchor);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node = node_at(mark, Shape::scalar);
    node.quoted = tag == "!";
    node.scalar = value;
    put(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto known = anchored_.find(anchor);
    if (known == anchored_.end()) too_much(mark.line + 1);  // it holds itself
    size_.add(known->second);
    if (size_.values > most_values || size_.text > most_text) too_much(mark.line + 1);
    put(known->second, YAML::NullAnchor);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Shape::sequence, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Shape::mapping, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  // A mapping or list that has not ended.
  struct Unfinished {
    Node node;
    YAML::anchor_t anchor = 0;
    bool after_key = false;  // of a mapping: its next value belongs to `key`
    bool dropped = false;    // the key is wrong, which is noted; its value leads nowhere
    bool merging = false;    // the key is <<: its value's keys belong to the mapping itself
    std::string key;
    int key_line = 0;
    std::vector<Entry> merged{};                         // behind <<, the first of a name counts
    std::unordered_map<std::string, int> first_lines{};  // of its keys: looked up, not searched
  };

  static Node node_at(const YAML::Mark& mark, Shape shape) {
    Node node;
    node.shape = shape;
    node.line = mark.line + 1;
    return node;
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

  void open(Shape shape, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (open_.size() > deepest_nesting) too_much(mark.line + 1);
    Unfinished begun;
    begun.node = node_at(mark, shape);
    begun.anchor = anchor;
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

  void put(Node node, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) anchored_.insert_or_assign(anchor, node);
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
  std::map<YAML::anchor_t, Node> anchored_;
  Size size_;
};

// Notes where documents begin.
class DocumentStarts : public YAML::EventHandler {
 public:
  int last = 0;

  void OnDocumentStart(const YAML::Mark& mark) override { last = mark.line + 1; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark&, YAML::anchor_t) override {}
  void OnAlias(const YAML::Mark&, YAML::anchor_t) override {}
  void OnScalar(const YAML::Mark&, const std::string&, YAML::anchor_t,
                const std::string&) override {}
  void OnSequenceStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                       YAML::EmitterStyle::value) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark&, const std::string&, YAML::anchor_t,
                  YAML::EmitterStyle::value) override {}
  void OnMapEnd() override {}
};

}  // namespace

// The parser takes the first of several documents and leaves the rest, so we look whether a second
// one begins. It also accepts a quote that is never closed, unless the document has an explicit
// end.
Node parse_any_yaml(std::string_view text, const std::string& file, Notes& notes,
                    const std::string& path) {
  const std::string language = file.ends_with(".json") ? "JSON" : "YAML";
  const std::string closed = fmt::format("{}{}...\n", text, text.ends_with('\n') ? "" : "\n");
  try {
    std::istringstream stream(closed);
    YAML::Parser parser(stream);
    TreeBuilder tree(notes, path);
    DocumentStarts more;
    if (parser.HandleNextDocument(tree) && parser.HandleNextDocument(more))
      throw UserError({{file, more.last, "", "expected the end of the file here"}});
    return tree.take();
  } catch (const YAML::DeepRecursion&) {
    throw UserError({{file, 0, "", "is nested too deeply"}});
  } catch (const YAML::Exception& error) {
    if (error.msg == YAML::ErrorMsg::DOC_IN_SCALAR)  // our own end: the line says nothing
      throw UserError(
          {{file, 0, "", fmt::format("is no valid {}: a quote is never closed", language)}});
    throw UserError(
        {{file, error.mark.line + 1, "", fmt::format("is no valid {}: {}", language, error.msg)}});
  }
}

Node parse_yaml(std::string_view text, const std::string& file, Notes& notes,
                const std::string& path) {
  if (auto plain = parse_plain_yaml(text)) return *std::move(plain);
  return parse_any_yaml(text, file, notes, path);
}

}  // namespace stepsim::detail
