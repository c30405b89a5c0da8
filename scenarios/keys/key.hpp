// There is one table per block of a scenario's keys: what a key is called, what it may say, and
// where its value is kept. The reader, `show`, `diff`, the template and the page of keys walk these
// tables. What a person is told about each key stands in key_texts.yaml.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "sim/base/config.hpp"

namespace stepsim {

enum class KeyKind : std::uint8_t { flag, whole, number, word, list, text, time, figure, block };
inline constexpr std::array<std::string_view, 9> kind_names{
    "flag", "whole number", "number", "word", "list", "text", "time", "quantity or range", "block"};

struct KeyFacts {
  std::string_view name;
  KeyKind kind = KeyKind::text;
  double low = 0;  // of numbers; what is kept below it stands for "not set"
  double high = 0;
  std::span<const std::string_view> words{};
  bool required = false;
  std::string_view decides{};   // "strategy.zero": the key that this one gives a value to
  std::string_view formerly{};  // an older name, which is still read
};

// Writes a number as a file would say it: 5e8, 1.25, 15099494. It reads back to the same bits.
std::string number_text(double value);

template <class Subject>
struct Key {
  using Value = Subject;

  KeyFacts facts;
  // Reads the value. If this is null, the value is read elsewhere, as it needs more than this
  // block.
  void (*read)(const Table& table, const KeyFacts& facts, Subject& subject) = nullptr;
  // Writes the value as a file would say it; "": not set. If this is null, only the file knows it.
  std::string (*text)(const KeyFacts& facts, const Subject& subject) = nullptr;
  void (*copy)(const Subject& from, Subject& to) = nullptr;
  // Sets the default where it follows from keys that were read before.
  void (*prepare)(Subject& subject) = nullptr;
  // Returns whether the value changes anything, other keys being what they are. If this is null, it
  // always does.
  bool (*matters)(const Subject& subject) = nullptr;

  constexpr Key required() const {
    Key key = *this;
    key.facts.required = true;
    return key;
  }
  constexpr Key prepared(void (*set)(Subject&)) const {
    Key key = *this;
    key.prepare = set;
    return key;
  }
  constexpr Key when(bool (*condition)(const Subject&)) const {
    Key key = *this;
    key.matters = condition;
    return key;
  }
  constexpr Key formerly(std::string_view name) const {
    Key key = *this;
    key.facts.formerly = name;
    return key;
  }
  constexpr Key decides(std::string_view path) const {
    Key key = *this;
    key.facts.decides = path;
    return key;
  }
};

template <class Subject>
struct Block {
  std::string_view name;  // below the subject's own block; empty: that block itself
  std::string_view sentence;
  std::span<const Key<Subject>> keys;
  void (*present)(Subject& subject) = nullptr;        // the file has this block
  bool (*matters)(const Subject& subject) = nullptr;  // null: always
  bool left_out = false;                              // of the template
};

// Returns the keys of one block that are written down in two places.
template <class Subject, std::size_t N, std::size_t M>
constexpr std::array<Key<Subject>, N + M> joined_keys(const std::array<Key<Subject>, N>& first,
                                                      const std::array<Key<Subject>, M>& more) {
  std::array<Key<Subject>, N + M> all;
  std::size_t place = 0;
  for (const Key<Subject>& key : first) all[place++] = key;
  for (const Key<Subject>& key : more) all[place++] = key;
  return all;
}

// These notes take that a key has another name now.
struct RenameNotes {
  std::string_view subject;  // "strategy"
  std::vector<std::string>& notes;
};

// The key as this file has it: by its older name where it has that. Both names are too many.
KeyFacts facts_in(const Table& table, std::string_view block, const KeyFacts& facts,
                  const RenameNotes* renames);

// A block that the file does not have is prepared all the same.
template <class Subject>
void read_block(const std::optional<Table>& table, const Block<Subject>& block, Subject& subject,
                const RenameNotes* renames = nullptr) {
  if (table && block.present != nullptr) block.present(subject);
  for (const Key<Subject>& key : block.keys) {
    if (key.prepare != nullptr) key.prepare(subject);
    if (table && key.read != nullptr)
      key.read(*table, facts_in(*table, block.name, key.facts, renames), subject);
  }
}

template <class Subject>
void read_blocks(const Table& table, std::span<const Block<Subject>> blocks, Subject& subject,
                 const RenameNotes* renames = nullptr) {
  for (const Block<Subject>& block : blocks)
    read_block(block.name.empty() ? std::optional(table) : table.table_if(block.name), block,
               subject, renames);
}

// Finds a key by its path below the subject's own block: "offload.ratio". Null: there is no such
// key.
template <class Subject>
const Key<Subject>* find_key(std::span<const Block<Subject>> blocks, std::string_view path) {
  const std::size_t dot = path.find('.');
  const std::string_view block = dot == path.npos ? "" : path.substr(0, dot);
  const std::string_view name = dot == path.npos ? path : path.substr(dot + 1);
  for (const Block<Subject>& each : blocks)
    for (const Key<Subject>& key : each.keys)
      if (each.name == block && key.facts.name == name) return &key;
  return nullptr;
}

namespace detail {

template <class Class, class Member>
Class class_of(Member Class::*);

template <auto First, auto... Rest>
constexpr auto& follow(auto& subject) {
  if constexpr (sizeof...(Rest) == 0)
    return subject.*First;
  else
    return follow<Rest...>(subject.*First);
}

template <auto First, auto... Rest>
struct OwnerOf {
  using Type = decltype(class_of(First));
};
template <auto... Path>
using Owner = typename OwnerOf<Path...>::Type;

template <auto... Path>
using Kept = std::remove_cvref_t<decltype(follow<Path...>(std::declval<Owner<Path...>&>()))>;

template <class Stored>
struct Plain {
  using Value = Stored;
  static constexpr bool optional = false;
};
template <class Stored>
struct Plain<std::optional<Stored>> {
  using Value = Stored;
  static constexpr bool optional = true;
};

template <auto... Path>
constexpr Key<Owner<Path...>> key_at(const KeyFacts& facts) {
  Key<Owner<Path...>> key;
  key.facts = facts;
  key.copy = [](const Owner<Path...>& from, Owner<Path...>& to) {
    follow<Path...>(to) = follow<Path...>(from);
  };
  return key;
}

// The place of a word among those that are allowed: of an optional value the first word stands for
// nothing.
template <auto... Path>
std::size_t index_at(const Owner<Path...>& subject) {
  const auto& value = follow<Path...>(subject);
  if constexpr (Plain<Kept<Path...>>::optional)
    return value ? static_cast<std::size_t>(*value) + 1 : 0;
  else
    return static_cast<std::size_t>(value);
}
std::size_t word_index(const Table& table, const KeyFacts& facts, std::size_t fallback);

// Empty for a number below what the key may say.
std::string set_number_text(const KeyFacts& facts, double value);

}  // namespace detail

// A key whose value is read elsewhere, as it needs more than its block.
template <class Subject>
constexpr Key<Subject> named(std::string_view name, KeyKind kind = KeyKind::text) {
  return {.facts = {.name = name, .kind = kind}};
}

// `Path` leads from the subject to the value: flag<&Strategy::zero, &ZeroKeys::overlap_comm>(...).
// One that is kept as an optional is not set where nobody says it.
template <auto... Path>
constexpr auto flag(std::string_view name) {
  using Subject = detail::Owner<Path...>;
  auto key = detail::key_at<Path...>({.name = name, .kind = KeyKind::flag});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    auto& value = detail::follow<Path...>(subject);
    if (table.has(facts.name)) value = table.flag_or(facts.name, true);
  };
  key.text = [](const KeyFacts&, const Subject& subject) -> std::string {
    const std::optional<bool> value = detail::follow<Path...>(subject);
    return !value ? "" : *value ? "true" : "false";
  };
  return key;
}

// The value is an entry of the catalogue, known by its name until all keys are read.
template <auto... Path>
constexpr auto entry(std::string_view name) {
  using Subject = detail::Owner<Path...>;
  auto key = detail::key_at<Path...>({.name = name});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    std::string& value = detail::follow<Path...>(subject).name;
    value = table.text_or(facts.name, value);
  };
  key.text = [](const KeyFacts&, const Subject& subject) {
    return detail::follow<Path...>(subject).name;
  };
  return key;
}

// The value may be kept as any arithmetic type, or as an optional one.
template <auto... Path>
constexpr auto whole(std::string_view name, std::int64_t low, std::int64_t high) {
  using Subject = detail::Owner<Path...>;
  using Plain = detail::Plain<detail::Kept<Path...>>;
  auto key = detail::key_at<Path...>({.name = name,
                                      .kind = KeyKind::whole,
                                      .low = static_cast<double>(low),
                                      .high = static_cast<double>(high)});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    if (facts.required || table.has(facts.name))
      detail::follow<Path...>(subject) = static_cast<typename Plain::Value>(table.integer(
          facts.name, static_cast<std::int64_t>(facts.low), static_cast<std::int64_t>(facts.high)));
  };
  key.text = [](const KeyFacts& facts, const Subject& subject) {
    const auto& value = detail::follow<Path...>(subject);
    if constexpr (Plain::optional)
      return value ? number_text(static_cast<double>(*value)) : std::string();
    else
      return detail::set_number_text(facts, static_cast<double>(value));
  };
  return key;
}

template <auto... Path>
constexpr auto number(std::string_view name, double low, double high) {
  using Subject = detail::Owner<Path...>;
  auto key =
      detail::key_at<Path...>({.name = name, .kind = KeyKind::number, .low = low, .high = high});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    double& value = detail::follow<Path...>(subject);
    if (facts.required || table.has(facts.name))
      value = table.number(facts.name, facts.low, facts.high);
  };
  key.text = [](const KeyFacts& facts, const Subject& subject) {
    return detail::set_number_text(facts, detail::follow<Path...>(subject));
  };
  return key;
}

// A time of 0 stands for "not set". The value may be kept as an optional one.
template <auto... Path>
constexpr auto time(std::string_view name) {
  using Subject = detail::Owner<Path...>;
  auto key = detail::key_at<Path...>({.name = name, .kind = KeyKind::time});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    if (table.has(facts.name))
      detail::follow<Path...>(subject) = table.quantity<Seconds>(facts.name);
  };
  key.text = [](const KeyFacts&, const Subject& subject) {
    const std::optional<Seconds> value = detail::follow<Path...>(subject);
    return value && value->value > 0 ? number_text(value->value) + " s" : std::string();
  };
  return key;
}

template <auto... Path, std::size_t N>
constexpr auto word(std::string_view name, const std::array<std::string_view, N>& words) {
  using Subject = detail::Owner<Path...>;
  using Plain = detail::Plain<detail::Kept<Path...>>;
  auto key = detail::key_at<Path...>({.name = name, .kind = KeyKind::word, .words = words});
  key.read = [](const Table& table, const KeyFacts& facts, Subject& subject) {
    const std::size_t found = detail::word_index(table, facts, detail::index_at<Path...>(subject));
    auto& value = detail::follow<Path...>(subject);
    if constexpr (!Plain::optional)
      value = static_cast<typename Plain::Value>(found);
    else if (found > 0)
      value = static_cast<typename Plain::Value>(found - 1);
    else
      value.reset();
  };
  key.text = [](const KeyFacts& facts, const Subject& subject) {
    return std::string(facts.words[detail::index_at<Path...>(subject)]);
  };
  return key;
}

}  // namespace stepsim
