#include "sim/base/record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>

#include "sim/base/csv.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

using Kind = Record::Kind;

const Record& part_of(const Record& item, std::string_view key) {
  const Records& parts = item.parts();
  const auto place = std::ranges::find(parts, key, &Record::key);
  if (place == parts.end()) throw std::logic_error(fmt::format("a record has no \"{}\"", key));
  return *place;
}

std::string number_text(double value, Measure unit) {
  switch (unit) {
    case Measure::number:
      return fmt::format("{}", value);
    case Measure::rounded:
      return fmt::format("{:.4g}", value);
    case Measure::figure:
      return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
    case Measure::seconds:
      return to_text(Seconds{value});
    case Measure::hours:
      return to_text(Seconds{3600 * value});
    case Measure::bytes:
      return to_text(Bytes{value});
    case Measure::binary_bytes:
      return size_text(value);
    case Measure::flops:
      return to_text(Flops{value});
    case Measure::joules:
      return to_text(Joules{value});
    case Measure::bytes_per_second:
      return to_text(BytesPerSecond{value});
    case Measure::gigabytes_per_second:
      return fmt::format("{:.2f}", value);
    case Measure::teraflops:
      return fmt::format("{:.1f}", value / 1e12);
    case Measure::share:
      return percent(value);
    case Measure::error:
      return signed_percent(value);
  }
  return "";
}

std::string joined(const Records& parts, std::string_view between) {
  std::string text;
  for (const Record& part : parts)
    text += fmt::format("{}{}", text.empty() ? "" : between, to_text(part));
  return text;
}

// Returns the head of a column, "key" or "key=title", as its rows ask for it: numbers stand to the
// right.
std::string head_of(const Records& items, std::string_view column) {
  const std::size_t equals = column.find('=');
  const std::string_view key = column.substr(0, equals);
  const std::string title(equals == column.npos ? "" : column.substr(equals + 1));
  if (items.empty()) return equals == column.npos ? std::string(key) : title;
  const Record& first = part_of(items.front(), key);
  const bool numbers = first.kind == Kind::number || first.kind == Kind::range;
  return fmt::format("{}{}", numbers ? " " : "", equals == column.npos ? first.label : title);
}

void write_object(JsonWriter& json, const Records& parts) {
  json.begin_object();
  for (const Record& part : parts) {
    json.key(part.key);
    write(json, part);
  }
  json.end_object();
}

std::string cell_of(const Record& record) {
  if (const auto* number = std::get_if<double>(&record.value)) return fmt::format("{}", *number);
  return record.missing() ? "" : to_text(record);
}

constexpr std::array<std::string_view, 6> kind_words{"number",      "true or false", "text",
                                                     "[low, high]", "object",        "list"};

// Items may differ: each part that one of them has, as the first such says it.
Records parts_of_all(const Records& items) {
  Records parts;
  for (const Record& item : items)
    for (const Record& part : item.kind == Kind::object ? item.parts() : Records())
      if (!holds(parts, part.key, &Record::key)) parts.push_back(part);
  return parts;
}

void write_schema(const Records& parts, const std::string& place, std::string& text) {
  for (const Record& part : parts) {
    const std::string path = place + part.key;
    std::string type(kind_words[static_cast<std::size_t>(part.kind)]);
    if (!name_of(part.unit).empty()) type += fmt::format(", {}", name_of(part.unit));
    if (part.optional) type += ", or null";
    text += fmt::format("| `{}` | {} | {} |\n", path, type, part.label);
    if (part.missing()) continue;
    if (part.kind == Kind::object) write_schema(part.parts(), path + ".", text);
    if (part.kind == Kind::list) write_schema(parts_of_all(part.parts()), path + "[].", text);
  }
}

}  // namespace

std::string_view name_of(Measure unit) {
  constexpr std::array<std::string_view, 14> names{
      "", "", "", "s", "h", "B", "B", "FLOP", "J", "B/s", "GB/s", "FLOP/s", "of one", "of one"};
  return names[static_cast<std::size_t>(unit)];
}

Measure measure_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::seconds:
      return Measure::seconds;
    case Dimension::bytes:
      return Measure::bytes;
    case Dimension::bytes_per_second:
      return Measure::bytes_per_second;
    case Dimension::flops:
      return Measure::flops;
    case Dimension::joules:
      return Measure::joules;
    default:
      return Measure::number;
  }
}

RecordList list_of(const std::vector<std::string>& texts) {
  return list_of(texts, [](const std::string& text) { return text; });
}

RecordList pairs_of(const std::vector<std::pair<std::string, double>>& pairs) {
  return list_of(pairs, [](const auto& pair) {
    return RecordList{{{"", "", pair.first}, {"", "", pair.second}}};
  });
}

void write(JsonWriter& json, const Record& record) {
  if (record.missing()) {
    json.null();
  } else if (const auto* number = std::get_if<double>(&record.value)) {
    json.value(*number);
  } else if (const auto* flag = std::get_if<bool>(&record.value)) {
    json.value(*flag);
  } else if (const auto* text = std::get_if<std::string>(&record.value)) {
    json.value(*text);
  } else if (record.kind == Kind::object) {
    write_object(json, record.parts());
  } else {
    json.begin_array();
    for (const Record& part : record.parts()) write(json, part);
    json.end_array();
  }
}

std::string to_text(const Record& record) {
  if (record.missing()) return record.kind == Kind::text ? "" : "-";
  if (const auto* number = std::get_if<double>(&record.value))
    return number_text(*number, record.unit);
  if (const auto* flag = std::get_if<bool>(&record.value)) return *flag ? "yes" : "no";
  if (const auto* text = std::get_if<std::string>(&record.value)) return *text;
  return joined(record.parts(), record.kind == Kind::range ? " to " : ", ");
}

TextTable table_of(const Records& items, std::string_view columns) {
  TextTable table;
  std::vector<std::string> keys;
  for (std::string_view column : split(columns, ';')) {
    column.remove_prefix(column.starts_with(' ') ? 1 : 0);
    keys.emplace_back(column.substr(0, column.find('=')));
    table.columns.push_back(head_of(items, column));
  }
  for (const Record& item : items) {
    auto& cells = table.rows.emplace_back();
    for (const std::string& key : keys) cells.push_back(to_text(part_of(item, key)));
  }
  return table;
}

std::string to_json(const Records& parts) {
  JsonWriter json;
  write_object(json, parts);
  return json.take();
}

std::string to_csv(const Records& items) {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  if (!items.empty())
    for (const Record& part : items.front().parts()) columns.push_back(part.key);
  for (const Record& item : items) {
    auto& cells = rows.emplace_back();
    for (const Record& part : item.parts()) cells.push_back(cell_of(part));
  }
  return csv_text(columns, rows);
}

std::string schema_of(const Records& parts) {
  std::string text = "| Key | Type | What it is |\n| --- | --- | --- |\n";
  write_schema(parts, "", text);
  return text;
}

}  // namespace stepsim
