#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

struct SaidValue {
  std::string yaml, text;
  int line = 0;
};

// Returns the block at "a.b"; the table itself for "".
std::optional<Table> block_at(const Table& table, std::string_view path) {
  if (path.empty()) return table;
  const std::size_t dot = std::min(path.find('.'), path.size());
  if (!table.is_mapping(path.substr(0, dot))) return std::nullopt;
  return block_at(table.table(path.substr(0, dot)), path.substr(std::min(dot + 1, path.size())));
}

// Primus writes "${NAME:llama2_7B}.yaml": nobody's environment is read, and the default counts.
std::string with_default(std::string text) {
  const std::size_t from = text.find("${"), end = text.find('}', from);
  const std::size_t colon = text.find(':', from);
  if (from == std::string::npos || end == std::string::npos || colon > end) return text;
  return text.substr(0, from) + text.substr(colon + 1, end - colon - 1) + text.substr(end + 1);
}

// What stands at "a.b" below the table; nothing where nothing is, or null.
std::optional<SaidValue> said_at(const Table& table, std::string_view path) {
  const std::size_t dot = path.rfind('.');
  const bool deep = dot != std::string_view::npos;
  const auto block = block_at(table, deep ? path.substr(0, dot) : "");
  const std::string_view key = deep ? path.substr(dot + 1) : path;
  if (!block || !block->has(key)) return std::nullopt;
  SaidValue said{.yaml = block->one_line(key), .text = {}, .line = block->origin(key)->line};
  if (said.yaml.empty() || said.yaml == "null" || said.yaml == "~") return std::nullopt;
  if (block->is_mapping(key) || said.yaml.starts_with('[')) return said;
  said.text = with_default(block->text_or(key, ""));
  if (said.text != block->text_or(key, "")) said.yaml = said.text;
  return said;
}

bool is_in_dialect(const Table& dialect, const Table& root) {
  for (const std::string& mark : dialect.texts("marks"))
    if (!said_at(root, mark)) return false;
  const auto where = dialect.table_if("where");
  if (!where) return true;
  return std::ranges::all_of(where->keys(), [&](const std::string& path) {
    const auto said = said_at(root, path);
    return said && said->text.starts_with(where->text(path));
  });
}

class DialectReader {
 public:
  DialectReader(const Table& dialect, const Table& root) : dialect_(dialect), root_(root) {}

  WrappedSource read() {
    source_.title = dialect_.text("title");
    source_.kind = dialect_.text("of");
    source_.program = dialect_.text_or("program", "");
    read_program();
    if (dialect_.has("note")) source_.notes.push_back(dialect_.text("note"));
    read_keys();
    read_words();
    hand_on();
    take_absent();
    source_.gpus = count_of("gpus");
    source_.nodes = count_of("nodes");
    if (dialect_.has("alone")) {
      source_.gpus = 1;
      source_.why_gpus = dialect_.text("alone");
    } else if (source_.gpus) {
      source_.why_gpus = fmt::format("{} is {}", dialect_.text("gpus"), *source_.gpus);
    }
    return std::move(source_);
  }

 private:
  bool has(std::string_view key) const { return holds(source_.settings, key, &NamedValue::key); }

  void put(const std::string& key, std::string value, int line) {
    if (!has(key)) source_.settings.push_back({key, std::move(value), line});
  }

  // A word of a key may say another program: "llm-dpo".
  void read_program() {
    const auto programs = dialect_.table_if("programs");
    if (!programs) return;
    for (const std::string& path : dialect_.texts("programs_by"))
      if (const auto said = said_at(root_, path))
        for (const std::string& word : programs->keys())
          if (said->text.ends_with(word)) source_.program = programs->text(word);
  }

  void read_keys() {
    const Table keys = dialect_.table("keys");
    const auto endings = dialect_.table_if("endings");
    for (const std::string& path : keys.keys()) {
      auto said = said_at(root_, path);
      if (!said) continue;
      if (endings && endings->has(path))
        if (const std::string ending = endings->text(path); said->text.ends_with(ending))
          said->yaml = yaml_quoted(said->text.substr(0, said->text.size() - ending.size()));
      put(keys.text(path), said->yaml, said->line);
    }
  }

  void read_words() {
    const auto words = dialect_.table_if("words");
    if (!words) return;
    for (const std::string& path : words->keys()) {
      const auto said = said_at(root_, path);
      const Table meanings = words->table(path);
      if (!said || !meanings.is_mapping(said->text)) continue;
      const Table meant = meanings.table(said->text);
      for (const std::string& key : meant.keys()) put(key, meant.one_line(key), said->line);
    }
  }

  // What is not said is no line of the file, and a note says it.
  void take_absent() {
    const auto absent = dialect_.table_if("absent");
    if (!absent) return;
    std::vector<std::string> taken;
    for (const std::string& key : absent->keys()) {
      if (has(key)) continue;
      source_.settings.push_back({key, absent->one_line(key), 1});
      taken.push_back(fmt::format("{} {}", key, absent->one_line(key)));
    }
    if (!taken.empty())
      source_.notes.push_back(fmt::format("{} does not say, and this is taken: {}", source_.title,
                                          fmt::join(taken, ", ")));
  }

  // All keys of a block, one by one or with the blocks in it.
  void hand_on() {
    for (const std::string_view way : {"pass", "blocks"}) {
      if (!dialect_.has(way)) continue;
      const auto block = block_at(root_, dialect_.text(way));
      if (!block) continue;
      for (const std::string& key : block->keys()) {
        std::string own = key;
        if (way == "pass") std::replace(own.begin(), own.end(), '_', '-');
        const auto said = said_at(*block, key);
        if (said) put(own, said->yaml, said->line);
      }
    }
  }

  std::optional<std::int64_t> count_of(std::string_view key) const {
    const auto said =
        dialect_.has(key) ? said_at(root_, dialect_.text(key)) : std::optional<SaidValue>();
    std::int64_t count = 0;
    if (!said) return std::nullopt;
    std::from_chars(said->text.data(), said->text.data() + said->text.size(), count);
    constexpr std::int64_t most = 1 << 20;
    return count > 0 && count <= most ? std::optional(count) : std::nullopt;
  }

  const Table& dialect_;
  const Table& root_;
  WrappedSource source_{};
};

}  // namespace

std::optional<WrappedSource> read_dialect(const Catalogue& data, const Document& document) {
  const Document facts = read_document(data.file("scenarios/foreign/wrapped/dialects.yaml"));
  const Table root = document.root(), known = facts.root();
  for (const Table& lesson : known.tables("lessons"))
    if (std::ranges::all_of(lesson.texts("marks"), [&](const std::string& mark) {
          return said_at(root, mark).has_value();
        }))
      throw UserError({{document.file(), 0, "", lesson.text("say")}});
  for (const Table& dialect : known.tables("dialects"))
    if (is_in_dialect(dialect, root)) return DialectReader(dialect, root).read();
  return std::nullopt;
}

}  // namespace stepsim
