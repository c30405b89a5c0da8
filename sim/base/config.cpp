#include "sim/base/config.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/toml_tree.hpp"
#include "sim/base/unknown_values.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/base/yaml_tree.hpp"

namespace stepsim {

namespace {

using detail::Entry;
using detail::Node;
using detail::Notes;
using detail::Shape;

constexpr std::size_t most_named = 32;  // keys that a message lists

std::string path_of(const std::string& mapping, const std::string& key) {
  return mapping.empty() ? key : fmt::format("{}.{}", mapping, key);
}

// This map says where in the document each key would be known: it may stand in the wrong block.
using Homes = std::map<std::string, std::vector<std::string>>;

void add_homes(Homes& homes, const Node& node, const std::string& path) {
  for (const std::string& key : node.asked) homes[key].push_back(path_of(path, key));
  for (const auto& [key, child] : node.entries)
    if (child.used) add_homes(homes, child, path_of(path, key));
}

// The homes are found when the first of them is asked for: most files need none.
const Homes& homes_in(const Notes& notes, std::optional<Homes>& homes) {
  if (!homes) add_homes(homes.emplace(), notes.root, "");
  return *homes;
}

void note_unknown(Notes& notes, std::optional<Homes>& found, const Node& node,
                  const std::string& path) {
  for (const auto& [key, child] : node.entries) {
    if (child.used) {
      note_unknown(notes, found, child, path_of(path, key));
      continue;
    }
    if (node.asked.empty()) continue;  // a mapping whose keys are free
    std::string message = "unknown key" + did_you_mean(key, node.asked);
    const bool near = message != "unknown key";
    const Homes& homes = homes_in(notes, found);
    const auto home = homes.find(key);
    if (!near && home != homes.end() && home->second.size() == 1)
      message += fmt::format(" here (did you mean \"{}\"?)", home->second.front());
    else if (!near)
      message += node.asked.size() > most_named
                     ? fmt::format("; none of the {} known ones is near", node.asked.size())
                     : fmt::format("; expected {}", one_of(node.asked));
    notes.add(child.line, path_of(path, key), message);
  }
  for (std::size_t i = 0; i < node.items.size(); ++i)
    note_unknown(notes, found, node.items[i], fmt::format("{}[{}]", path, i));
}

bool has_unknown(const Node& node) {
  return std::ranges::any_of(node.entries,
                             [&](const Entry& entry) {
                               return entry.value.used ? has_unknown(entry.value)
                                                       : !node.asked.empty();
                             }) ||
         std::ranges::any_of(node.items, has_unknown);
}

void note_left_over(Notes& notes) {
  if (!has_unknown(notes.root)) return;  // as nearly always
  std::optional<Homes> homes;
  note_unknown(notes, homes, notes.root, "");
}

// Scalars are quoted whenever they might read as something else.
std::string quoted_if_needed(const std::string& text) {
  constexpr std::string_view plain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-";
  const bool absent = text == "null" || text == "Null" || text == "NULL";
  if (!text.empty() && !absent && text.front() != '-' &&
      text.find_first_not_of(plain) == std::string::npos)
    return text;
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c == '\n' ? std::string("\\n") : std::string(1, c);
  }
  return result + '"';
}

void write(const Node& node, std::size_t indent, std::string& text) {
  const std::string margin(indent, ' ');
  const auto child = [&](const std::string& lead, const Node& value) {
    const bool nested = !value.entries.empty() || !value.items.empty();
    text += margin + lead;
    if (nested) {
      text += '\n';
      write(value, indent + 2, text);
    } else {
      text += value.shape == Shape::scalar     ? " " + quoted_if_needed(value.scalar)
              : value.shape == Shape::mapping  ? " {}"
              : value.shape == Shape::sequence ? " []"
                                               : "";
      text += '\n';
    }
  };
  for (const Entry& entry : node.entries) child(quoted_if_needed(entry.key) + ":", entry.value);
  for (const Node& item : node.items) child("-", item);
}

// Clears the lines of what came from another file: it has none in this one.
void forget_lines(Node& node) {
  node.line = 0;
  for (Entry& entry : node.entries) forget_lines(entry.value);
  for (Node& item : node.items) forget_lines(item);
}

template <class SomeNode>
auto* entry_of(SomeNode& mapping, std::string_view key) {
  const auto place = std::ranges::find(mapping.entries, key, &Entry::key);
  return place == mapping.entries.end() ? nullptr : &*place;
}

std::string name_of(const Node& node) {
  const Entry* entry = entry_of(node, "name");
  return entry == nullptr ? "" : entry->value.scalar;
}

template <class SomeNode>
SomeNode* node_at(SomeNode& root, std::string_view path) {
  SomeNode* at = &root;
  while (!path.empty()) {
    const std::string_view key = path.substr(0, path.find('.'));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    auto* entry = entry_of(*at, key);
    if (entry == nullptr || entry->value.shape == Shape::nothing) return nullptr;
    at = &entry->value;
  }
  return at;
}

// Lists of named entries are merged entry by entry, or taken or left as a whole.
enum class Lists : std::uint8_t { by_name, whole };
void merge(Node& node, const Node& base, Lists lists);

// Merges the items in the order of the base; what is new comes last.
void merge_items(Node& node, const Node& base) {
  std::vector<Node> merged;
  std::vector<Node> changes = node.items;
  for (const Node& item : base.items) {
    const std::string name = name_of(item);
    if (name.empty()) return;  // entries without names cannot be told apart
    const auto change =
        std::ranges::find_if(changes, [&](const Node& each) { return name_of(each) == name; });
    Node& made = merged.emplace_back(change == changes.end() ? item : *change);
    if (change == changes.end()) {
      forget_lines(made);
    } else {
      merge(made, item, Lists::by_name);
      changes.erase(change);
    }
  }
  merged.insert(merged.end(), changes.begin(), changes.end());
  node.items = std::move(merged);
}

void merge(Node& node, const Node& base, Lists lists) {
  if (lists == Lists::by_name && node.shape == Shape::sequence && base.shape == Shape::sequence)
    merge_items(node, base);
  const bool constant = entry_of(node, "value") != nullptr;
  if (node.shape != Shape::mapping || base.shape != Shape::mapping || constant) return;
  for (const Entry& entry : base.entries) {
    if (Entry* mine = entry_of(node, entry.key))
      merge(mine->value, entry.value, lists);
    else
      forget_lines(node.entries.emplace_back(entry).value);
  }
}

void mark_origin(Node& node, std::size_t origin) {
  node.line = 0;
  node.origin = origin;
  for (Entry& entry : node.entries) mark_origin(entry.value, origin);
  for (Node& item : node.items) mark_origin(item, origin);
}

// Lists and values that nobody knows for sure count as one.
void list_taken(const Notes& notes, const Node& node, const std::string& path,
                std::string_view source, std::vector<std::string>& taken) {
  for (const auto& [key, value] : node.entries) {
    const std::string below = path_of(path, key);
    const auto* stated = entry_of(value, "value");
    if (value.shape == Shape::mapping && stated == nullptr) {
      list_taken(notes, value, below, source, taken);
    } else if (notes.origins[value.origin] == source) {
      std::vector<std::string> words = mapped(value.items, &Node::scalar);
      const std::string& scalar = stated == nullptr ? value.scalar : stated->value.scalar;
      taken.push_back(value.shape == Shape::sequence
                          ? fmt::format("{}: [{}]", below, fmt::join(words, ", "))
                          : fmt::format("{}: {}", below, scalar));
    }
  }
}

using ReplaceText = std::function<std::string(const std::string&, const std::string&)>;

void replace_texts_in(Node& node, const std::string& path, const ReplaceText& replace) {
  for (Entry& entry : node.entries)
    replace_texts_in(entry.value, path.empty() ? entry.key : fmt::format("{}.{}", path, entry.key),
                     replace);
  for (std::size_t i = 0; i < node.items.size(); ++i)
    replace_texts_in(node.items[i], fmt::format("{}[{}]", path, i), replace);
  if (node.shape != Shape::scalar) return;
  std::string text = replace(path, node.scalar);
  if (text == node.scalar) return;
  node.quoted = false;
  if (text.empty() || text == "null") node.shape = Shape::nothing;
  node.scalar = node.shape == Shape::nothing ? "" : std::move(text);
}

// The tree of a sound text depends on nothing but the text, and the catalogue's files are read
// again for every scenario of a study: taking one apart costs fifty times a copy of its tree. A
// caller of very many other texts, as a server is, begins anew.
constexpr std::size_t most_kept_text = 256u << 10, most_kept_together = 16u << 20;
struct KnownTrees {
  std::map<std::string, Node, std::less<>> by_text;
  std::size_t size = 0;  // of all texts

  void keep(std::string_view text, const Node& tree) {
    if (text.size() > most_kept_text) return;
    if (size + text.size() > most_kept_together) *this = {};
    size += text.size();
    by_text.emplace(text, tree);
  }
};
KnownTrees& known_trees() {
  static KnownTrees trees;
  return trees;
}

// The parser would read this as text, and say strange words about it.
void refuse_wide_letters(std::string_view text, const std::string& file) {
  for (const std::string_view mark : {"\xff\xfe", "\xfe\xff"})
    if (text.starts_with(mark))
      throw UserError({{file, 0, "", "is UTF-16 or UTF-32: expected UTF-8"}});
}

Node tree_of(std::string_view text, Notes& notes) {
  const auto& known_texts = known_trees().by_text;
  if (const auto known = known_texts.find(text); known != known_texts.end()) return known->second;
  refuse_wide_letters(text, notes.file);
  Node tree = detail::parse_yaml(text, notes.file, notes);
  if (tree.shape != Shape::mapping)
    throw UserError({{notes.file, 0, "", "expected a mapping of keys to values"}});
  if (notes.problems.empty()) known_trees().keep(text, tree);
  return tree;
}

// The text to the end of what the key says, a file of its own; the whole text where no line begins
// with the key.
std::string_view up_to_key(std::string_view text, std::string_view key) {
  constexpr std::string_view goes_on = " \t\r\n#";  // a line of the same value, or of none
  bool found = false;
  for (std::size_t line = 0; line < text.size();) {
    if (found && goes_on.find(text[line]) == std::string_view::npos) return text.substr(0, line);
    const std::string_view rest = text.substr(line);
    found = found || (rest.starts_with(key) && rest.substr(key.size()).starts_with(':'));
    line = std::min(text.find('\n', line), text.size() - 1) + 1;
  }
  return text;
}

}  // namespace

Document::Document(std::unique_ptr<Notes> notes) : notes_(std::move(notes)) {}
Document::Document(Document&& other) noexcept = default;
Document& Document::operator=(Document&& other) noexcept = default;
Document::~Document() = default;

Table Document::root() const {
  notes_->root.used = true;
  return {notes_.get(), &notes_->root, "", ""};
}

void Document::finish(Leftovers leftovers) const {
  if (leftovers == Leftovers::refused) note_left_over(*notes_);
  if (notes_->problems.empty()) return;
  std::vector<Problem>& problems = notes_->problems;
  std::ranges::stable_sort(problems, {}, &Problem::line);
  throw UserError(problems);
}

const std::vector<NamedConstant>& Document::constants() const {
  return notes_->constants;
}
const std::string& Document::file() const {
  return notes_->file;
}

void Document::set(std::string_view path, std::string_view value) {
  const auto keys = split(path, '.');
  set(std::vector<std::string>(keys.begin(), keys.end()), value);
}

void Document::set(std::span<const std::string> keys, std::string_view value) {
  const std::string path = fmt::format("{}", fmt::join(keys, "."));
  if (keys.size() > detail::deepest_nesting)
    throw UserError(fmt::format("{}: is nested too deeply", path));
  Node* at = &notes_->root;
  for (const std::string& key : keys) {
    if (key.empty()) throw UserError(fmt::format("\"{}\" is no path such as strategy.zero", path));
    if (at->shape != Shape::mapping) {
      const int line = at->line;
      *at = Node();
      at->shape = Shape::mapping;
      at->line = line;
    }
    auto place = std::ranges::find(at->entries, key, &Entry::key);
    if (place == at->entries.end()) place = at->entries.insert(at->entries.end(), {key, Node()});
    at = &place->value;
  }
  const int line = at->line;
  Node made = detail::parse_yaml(value, path, *notes_, path);
  *at = std::move(made);
  at->line = line;
}

void Document::replace_texts(const ReplaceText& replace) {
  replace_texts_in(notes_->root, "", replace);
}

void Document::take(std::string_view path, const Document& from) {
  const Node* theirs = node_at(std::as_const(from.notes_->root), path);
  if (theirs == nullptr) return;
  set(path, "{}");  // the way there
  Node& mine = *node_at(notes_->root, path);
  mine = *theirs;
  forget_lines(mine);
}

void Document::inherit(const Document& base, const std::vector<std::string>& own,
                       const std::vector<std::string>& piled) {
  Node from = base.notes_->root;
  std::erase_if(from.entries, [&](const Entry& entry) { return holds(own, entry.key); });
  for (const std::string& key : piled) {
    Entry* above = entry_of(notes_->root, key);
    const Entry* below = entry_of(from, key);
    if (above == nullptr || below == nullptr) continue;
    std::vector<Node>& items = above->value.items;
    for (const Node& item : below->value.items) forget_lines(items.emplace_back(item));
    std::erase_if(from.entries, [&](const Entry& entry) { return entry.key == key; });
  }
  merge(notes_->root, from, Lists::by_name);
}

void Document::underlay(const Document& base, std::string_view source) {
  underlay(base.root(), source);
}

void Document::underlay(const Table& base, std::string_view source) {
  if (base.node_ == nullptr) return;  // noted where it is missing
  notes_->origins.emplace_back(source);
  Node from = *base.node_;
  mark_origin(from, notes_->origins.size() - 1);
  merge(notes_->root, from, Lists::whole);
}

std::optional<std::string> Document::peek(std::string_view path) const {
  const Node* node = node_at(notes_->root, path);
  if (node == nullptr) return {};
  const Entry* stated = entry_of(*node, "value");
  return stated == nullptr ? node->scalar : stated->value.scalar;
}

std::string Document::origin_of(std::string_view path) const {
  const Node* node = node_at(notes_->root, path);
  return node == nullptr ? "" : notes_->origins[node->origin];
}

std::vector<std::string> Document::taken_from(std::string_view source) const {
  std::vector<std::string> taken;
  list_taken(*notes_, notes_->root, "", source, taken);
  return taken;
}

void Document::draw_constants(const Draw& draw, std::string_view scope) {
  notes_->draw = draw;
  notes_->scope = scope;
  if (!draw.after ||
      draw.after->speaks_of(scope, peek("program").value_or(peek("name").value_or(""))))
    return;
  if (draw.centre)
    notes_->draw.reset();
  else
    notes_->draw->after.reset();
}

void Document::give_constants(std::span<const GivenConstant> given, std::string_view scope) {
  notes_->given.assign(given.begin(), given.end());
  notes_->scope = scope;
}

void Document::settle_unknown(std::string_view key) {
  for (auto& [name, child] : notes_->root.entries)
    if (name == key && child.shape == Shape::mapping) detail::settle_unknown(child, name, *notes_);
}

std::string Document::canonical() const {
  std::string text;
  write(notes_->root, 0, text);
  return text;
}

Document parse_document(std::string_view text, std::string_view file) {
  auto notes = std::make_unique<Notes>();
  notes->file = file;
  notes->root = tree_of(text, *notes);
  return Document(std::move(notes));
}

Document parse_toml_document(std::string_view text, std::string_view file) {
  auto notes = std::make_unique<Notes>();
  notes->file = file;
  notes->root = detail::parse_toml(text, notes->file);
  return Document(std::move(notes));
}

Document read_document(const std::string& path) {
  const std::string text = read_text(path);
  if (path.ends_with(".toml")) return parse_toml_document(text, path);
  return parse_document(text, path);
}

std::string heading_in(const std::string& path, std::string_view key) {
  const std::string text = read_text(path);
  return parse_document(up_to_key(text, key), path).root().text_or(key, "");
}

}  // namespace stepsim
