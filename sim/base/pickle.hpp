// These write and read Python's pickles of plain data. The reader takes dictionaries, lists,
// tuples, texts, numbers, flags and None, and nothing that would import or call anything.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace stepsim {

// This writes protocol 2, which every Python and the viewers in browsers read. The same text is
// written once.
class PickleWriter {
 public:
  PickleWriter& begin_dict() { return begin("}(", 'u'); }
  PickleWriter& begin_list() { return begin("](", 'e'); }
  PickleWriter& begin_tuple() { return begin("(", 't'); }
  PickleWriter& end();  // of what was begun last
  template <std::integral Whole>
    requires(!std::same_as<Whole, bool>)
  PickleWriter& value(Whole number) {
    return whole(static_cast<std::int64_t>(number));
  }
  PickleWriter& value(double number);
  PickleWriter& value(bool flag);
  PickleWriter& value(std::string_view text);
  PickleWriter& value(const char* text) { return value(std::string_view(text)); }
  template <class Value>
  PickleWriter& member(std::string_view name, const Value& v) {
    return value(name).value(v);
  }

  // Keeps what was ended last, so that it can stand in other places, too: again() puts it there.
  std::uint32_t keep();
  PickleWriter& again(std::uint32_t kept);

  std::string take() { return std::move(bytes_) + "."; }

 private:
  struct Open {
    char ends = 0;          // what makes the container, or adds the values to it
    std::size_t count = 0;  // values that wait for it
  };

  PickleWriter& begin(std::string_view container, char ends);
  PickleWriter& whole(std::int64_t number);
  void enter();
  void put_number(std::uint64_t number, int bytes);
  void put_memo(char small, char large, std::uint32_t id);

  std::string bytes_ = "\x80\x02";
  std::vector<Open> open_;
  std::unordered_map<std::string, std::uint32_t> texts_;  // looked up, never iterated
  std::uint32_t memo_ = 0;
};

// A Pickle holds what was read. A value may stand in several places, so a walk through them needs a
// bound.
class Pickle {
 public:
  enum class Kind : std::uint8_t { none, flag, whole, number, text, list, tuple, dict };
  enum class Id : std::uint32_t {};

  Id root() const { return root_; }
  std::size_t size() const { return values_.size(); }
  Kind kind(Id id) const { return value(id).kind; }
  std::size_t offset(Id id) const { return value(id).offset; }  // in the file
  bool flag(Id id) const { return value(id).payload != 0; }
  std::int64_t whole(Id id) const { return value(id).payload; }
  double number(Id id) const;
  std::string_view text(Id id) const;
  // Returns the elements of a list or tuple, or the keys and values of a dictionary in turns.
  std::span<const Id> items(Id id) const;
  // Returns the value at a key of a dictionary; as in Python the last of equal keys counts.
  std::optional<Id> find(Id dict, std::string_view key) const;

 private:
  friend class PickleReader;
  struct Value {
    Kind kind = Kind::none;
    std::uint8_t height = 0;   // of what it contains, above each other
    std::uint32_t offset = 0;  // in the file
    std::int64_t payload = 0;  // the value, or where a text stands, or the number of a list
  };
  const Value& value(Id id) const { return values_[static_cast<std::size_t>(id)]; }

  std::string bytes_;  // of the file
  std::vector<Value> values_;
  std::vector<std::vector<Id>> lists_;
  Id root_{};
};

std::string_view to_text(Pickle::Kind kind);

// Reads a pickle of protocols 2 to 5. Throws UserError with `file` and the byte at which it went
// wrong.
Pickle read_pickle(std::string bytes, const std::string& file);

}  // namespace stepsim
