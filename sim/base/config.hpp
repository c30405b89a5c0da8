// This is the strict reader of YAML, JSON and TOML files: it takes what is required or optional,
// leaves nothing over, and tells every problem at once.
//   Document file = read_document("h100-sxm.yaml");
//   Table root = file.root();
//   gpu.name = root.text("name");
//   gpu.bandwidth = root.constant<BytesPerSecond>("bandwidth");
//   file.finish();            // unknown keys and everything noted so far leave as one UserError
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/base/constant.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"
#include "sim/base/units.hpp"

namespace stepsim {

namespace detail {
struct Node;   // one parsed value with its line
struct Notes;  // what is wrong so far, and every constant read so far
}  // namespace detail

// An origin is where a value came from: the file itself (no source, but a line), or what was laid
// under it.
struct Origin {
  std::string source{};
  int line = 0;
};

// A table is a mapping being read: a view into its document. Every key asked for counts as known;
// finish() reports the others.
class Table {
 public:
  std::string text(std::string_view key) const;
  std::string text_or(std::string_view key, std::string_view fallback) const;
  // Reads a word out of a closed list; the message names the list and the nearest member.
  std::string choice(std::string_view key, const std::vector<std::string>& allowed) const;
  bool flag_or(std::string_view key, bool fallback) const;
  std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high) const;
  std::int64_t integer_or(std::string_view key, std::int64_t fallback, std::int64_t low,
                          std::int64_t high) const;
  double number(std::string_view key, double low, double high) const;
  double number_or(std::string_view key, double fallback, double low, double high) const;

  // Reads a bare quantity, "25 GB/s": positive unless zero is allowed.
  template <class Q>
  Q quantity(std::string_view key) const {
    return Q{quantity_of(key, dimension_of<Q>())};
  }
  // Reads a bare quantity, or a list of two: the low and the high end.
  std::pair<double, double> range(std::string_view key, Dimension dimension) const;
  // Reads {value, low, high, grade, source}, and enters it into the document's list of constants.
  template <class Q>
  Constant<Q> constant(std::string_view key) const {
    const NamedConstant c = constant_of(key, dimension_of<Q>());
    return {Q{c.value}, Q{c.low}, Q{c.high}, c.grade, c.source};
  }

  Table table(std::string_view key) const;
  std::optional<Table> table_if(std::string_view key) const;
  std::vector<Table> tables(std::string_view key) const;
  std::vector<std::string> texts(std::string_view key) const;
  std::vector<std::string> texts_or(std::string_view key) const;
  // Whatever stands there as YAML in one line, for Document::set(); values() takes lists apart.
  std::string one_line(std::string_view key) const;
  std::vector<std::string> values(std::string_view key) const;

  bool has(std::string_view key) const;
  bool is_mapping(std::string_view key) const;
  // Returns where the value at this key came from; nothing when the key is absent.
  std::optional<Origin> origin(std::string_view key) const;
  std::vector<std::string> keys() const;
  // A rule across keys was broken: noted at this key's line.
  void problem(std::string_view key, std::string_view message, Fault fault = Fault::rule) const;
  // Returns whether no problem has been noted so far in the whole document: only then may a rule
  // across keys trust its values.
  bool sound() const;
  // Counts the problems noted so far: when it has not grown, what was read meanwhile may be
  // trusted.
  std::size_t problems() const;

 private:
  friend class Document;
  Table(detail::Notes* notes, const detail::Node* node, std::string path, std::string called);
  const detail::Node* find(std::string_view key, bool required) const;
  const detail::Node* find_scalar(std::string_view key, bool required,
                                  std::string_view expected) const;
  double bounded_number(const detail::Node& node, std::string_view key, double low,
                        double high) const;
  std::string path_of(std::string_view key) const;
  std::string name_of(std::string_view key) const;
  double quantity_of(std::string_view key, Dimension dimension) const;
  double quantity_in(const detail::Node& node, std::string_view key, Dimension dimension) const;
  NamedConstant constant_of(std::string_view key, Dimension dimension) const;

  detail::Notes* notes_;                // the document's: a table must not outlive it
  const detail::Node* node_ = nullptr;  // null: the table was missing, which is noted already
  std::string path_;                    // as a message says it: "links[0]"
  std::string called_;                  // as a constant's name says it: "links.xgmi"
};

enum class Leftovers { refused, allowed };  // keys that no reader asked for

class Document {
 public:
  Document(Document&& other) noexcept;
  Document& operator=(Document&& other) noexcept;
  ~Document();

  Table root() const;
  // Throws everything noted, unknown keys included; returns when there is nothing to say. Files
  // that are written for other programs have keys of their own: their leftovers are allowed.
  void finish(Leftovers leftovers = Leftovers::refused) const;
  // Puts a value where `path` ("strategy.zero") points, as if the file said so there; the value is
  // YAML. What it replaces and what it adds is checked by the reading that follows.
  void set(std::string_view path, std::string_view value);
  void set(std::span<const std::string> keys, std::string_view value);
  // Every scalar is read as what `replace` makes of its path ("a.b", "a.b[0]") and text.
  void replace_texts(
      const std::function<std::string(const std::string& path, const std::string& text)>& replace);
  // Replaces what stands at `path` by what stands there in another file, where there is something.
  void take(std::string_view path, const Document& from);
  // Takes from `base` what this file leaves out: key by key, and in lists of named entries entry by
  // entry; a constant is replaced as a whole. Keys in `own` are not taken; lists in `piled` are
  // this file's entries, then the base's. Messages about what came from `base` have no line.
  void inherit(const Document& base, const std::vector<std::string>& own,
               const std::vector<std::string>& piled = {});
  // Takes from `base` what this file leaves out, key by key, and remembers `source` as its origin.
  // Lists and constants are taken or left as a whole. Messages about what came from `base` have no
  // line.
  void underlay(const Document& base, std::string_view source);
  void underlay(const Table& base, std::string_view source);
  // Returns what stands at `path` ("strategy.zero") without reading it: a scalar's text, the stated
  // value of one that nobody knows for sure, "" for other mappings and lists; nothing where nothing
  // is.
  std::optional<std::string> peek(std::string_view path) const;
  // Returns who laid what stands at `path` under this file; "" where the file itself says it.
  std::string origin_of(std::string_view path) const;
  // Returns the scalars and lists that `source` laid under this file: "strategy.zero: 1".
  std::vector<std::string> taken_from(std::string_view source) const;
  // Makes every constant read from now on the one drawn from its range, not its stated value.
  // `scope` goes before their names: "gpu", "node", so that equal paths of different kinds are
  // drawn apart.
  void draw_constants(const Draw& draw, std::string_view scope);
  // Gives every constant read from now on that is named here ("gpu.gemm.rate" in scope "gpu") that
  // value, whatever the file or a draw says, and no range.
  void give_constants(std::span<const GivenConstant> given, std::string_view scope);
  // Values in the mapping at this key that nobody knows for sure, {value, low, high, grade, source}
  // of a number or {value, any_of, grade, source} of anything else, are read as their value, or as
  // what is drawn for it, and listed as constants.
  void settle_unknown(std::string_view key);
  // Returns the whole content as block YAML, without comments, in the order of the file.
  std::string canonical() const;
  // Returns every constant read so far, in the order of reading, named by its path; in a list of
  // named entries by their names: "links.xgmi.bandwidth".
  const std::vector<NamedConstant>& constants() const;
  const std::string& file() const;

 private:
  friend Document parse_document(std::string_view text, std::string_view file);
  friend Document parse_toml_document(std::string_view text, std::string_view file);
  explicit Document(std::unique_ptr<detail::Notes> notes);
  std::unique_ptr<detail::Notes> notes_;
};

// `file` is only a name for messages.
Document parse_document(std::string_view text, std::string_view file);
Document parse_toml_document(std::string_view text, std::string_view file);
// YAML, or TOML where the name ends in .toml. Throws UserError when the file is missing,
// unreadable, too large or neither.
Document read_document(const std::string& path);
// Returns what a key at the top of a YAML file says. What comes after it is not looked at, because
// hundreds of files are listed at once.
std::string heading_in(const std::string& path, std::string_view key);

}  // namespace stepsim
