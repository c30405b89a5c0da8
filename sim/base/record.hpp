// A result is records: what each value is called, what it means, its unit, and its parts. They are
// written once, where the result is known; text, JSON and CSV are views of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "sim/base/json.hpp"
#include "sim/base/table.hpp"
#include "sim/base/units.hpp"

namespace stepsim {

// A measure says how text shows a number. The numbers themselves are SI.
enum class Measure : std::uint8_t {
  number,   // as it is
  rounded,  // 1.23e+04: what somebody measured by hand
  figure,   // 0.123, 12345
  seconds,
  hours,
  bytes,
  binary_bytes,  // 64 KiB
  flops,
  joules,
  bytes_per_second,
  gigabytes_per_second,
  teraflops,  // FLOP/s as TFLOP/s
  share,      // 12.3 %
  error,      // +12.3 %
};
// Returns the unit as a schema names it: "s", "B", "" for plain numbers.
std::string_view name_of(Measure unit);
Measure measure_of(Dimension dimension);

struct Record;
using Records = std::vector<Record>;

// A list holds many records of one kind. An item is a record without a name.
struct RecordList {
  Records items;
};

struct Record {
  enum class Kind : std::uint8_t { number, flag, text, range, object, list };

  // The value may be a number, a quantity, a flag, a text, an optional of these, something with
  // `low` and `high`, texts, parts (Records) or many of a kind (RecordList).
  template <class Value>
  Record(std::string_view name, std::string_view what, const Value& from,
         Measure shown_as = Measure::number)
      : key(name), label(what), unit(shown_as) {
    set(from);
  }

  std::string key;    // "step_time_s"
  std::string label;  // "one optimizer step": the head of a column, and the schema's sentence
  Kind kind = Kind::number;
  Measure unit = Measure::number;
  bool optional = false;  // may be missing
  std::variant<std::monostate, double, bool, std::string, Records> value;

  bool missing() const { return value.index() == 0; }
  const Records& parts() const { return std::get<Records>(value); }

 private:
  // This stays out of line: there are hundreds of them, and g++ 12 warns of the room for what is
  // missing.
  template <class Value>
  [[gnu::noinline]] void set(const Value& from) {
    if constexpr (requires { from.has_value(); }) {
      optional = true;
      set(typename Value::value_type{});  // of which kind it would be
      value = {};
      if (from) set(*from);
    } else if constexpr (requires { from.low, from.high; }) {
      kind = Kind::range;
      value = Records{{"", "", from.low, unit}, {"", "", from.high, unit}};
    } else if constexpr (std::is_same_v<Value, Records>) {
      kind = Kind::object;
      value = from;
    } else if constexpr (std::is_same_v<Value, RecordList>) {
      kind = Kind::list;
      value = from.items;
    } else if constexpr (std::is_same_v<Value, bool>) {
      kind = Kind::flag;
      value = from;
    } else if constexpr (std::is_arithmetic_v<Value>) {
      value = static_cast<double>(from);
    } else if constexpr (requires {
                           Value::value;
                           from.value;
                         }) {
      value = from.value;
      unit = measure_of(dimension_of<Value>());
    } else {
      kind = Kind::text;
      value = std::string(from);
    }
  }
};

// Makes one item for each element; `parts` makes its Records, or a text or number.
template <class Range, class Parts>
RecordList list_of(const Range& range, const Parts& parts) {
  RecordList list;
  for (const auto& each : range) list.items.emplace_back("", "", parts(each));
  return list;
}
RecordList list_of(const std::vector<std::string>& texts);
// Names with a number each: a list of two for each of them.
RecordList pairs_of(const std::vector<std::pair<std::string, double>>& pairs);

// ---- views

// Writes "102 s", "12.3 %", "8.00 s to 12.0 s"; "-" where no number is known.
std::string to_text(const Record& record);

// Puts the items of a list one to a row. `columns` are keys of the items, "name; error=off by":
// each with a title where it has another one than the record's label. Texts stand to the left.
TextTable table_of(const Records& items, std::string_view columns);

// Writes the parts as one object.
std::string to_json(const Records& parts);
// Writes the value alone, into something larger.
void write(JsonWriter& json, const Record& record);

// Writes the items of a list, keys above, with the shortest numbers that read back to the same
// bits.
std::string to_csv(const Records& items);

// A line of Markdown for each value there may be: where it stands, its type, what it is. A list
// says the parts that any of its items has.
std::string schema_of(const Records& parts);

}  // namespace stepsim
