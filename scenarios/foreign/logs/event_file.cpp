#include "scenarios/foreign/logs/event_file.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

namespace stepsim {
namespace {

template <class Number>
std::optional<Number> number_in(std::string_view bytes, std::size_t at = 0) {
  Number value{};
  if (bytes.size() < at + sizeof value) return std::nullopt;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::optional<std::uint64_t> take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64 && !bytes.empty(); shift += 7) {
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  return std::nullopt;
}

// A field of a message in the wire format of protocol buffers.
struct Field {
  std::uint64_t number = 0, whole = 0;  // `whole`: of a varint
  std::string_view bytes{};             // of all others
};

// Takes the first field; nothing at the end, or where the bytes are no message.
std::optional<Field> take_field(std::string_view& bytes) {
  const auto tag = take_varint(bytes);
  if (!tag) return std::nullopt;
  Field field{.number = *tag >> 3};
  std::optional<std::uint64_t> size;
  switch (*tag & 7) {
    case 0:
      size = 0;
      if (const auto value = take_varint(bytes))
        field.whole = *value;
      else
        return std::nullopt;
      break;
    case 1:
      size = 8;
      break;
    case 2:
      size = take_varint(bytes);
      break;
    case 5:
      size = 4;
      break;
    default:
      break;
  }
  if (!size || *size > bytes.size()) return std::nullopt;
  field.bytes = bytes.substr(0, *size);
  bytes.remove_prefix(*size);
  return field;
}

// Returns the bytes of a message's first field of this number.
std::string_view bytes_of(std::string_view message, std::uint64_t number) {
  while (const auto field = take_field(message))
    if (field->number == number) return field->bytes;
  return {};
}

// Numbers of fields are those of tensorflow/core/util/event.proto and framework/summary.proto.
std::optional<ReportedStep> reported(std::string_view event) {
  ReportedStep step;
  bool trains = false;
  while (const auto field = take_field(event)) {
    if (field->number == 1) step.time = number_in<double>(field->bytes).value_or(0);
    if (field->number == 2)
      step.step = static_cast<double>(std::bit_cast<std::int64_t>(field->whole));
    if (field->number != 5) continue;
    const std::string_view tag = bytes_of(bytes_of(field->bytes, 1), 1);
    trains = !tag.empty() && tag.find("eval") == std::string_view::npos &&
             tag.find("val/") == std::string_view::npos;
  }
  return trains ? std::optional(step) : std::nullopt;
}

// A record is its length, a checksum of that, its bytes, and a checksum of those.
constexpr std::size_t before_record = 12, behind_record = 4;

}  // namespace

bool is_event_file(std::string_view bytes) {
  return bytes.substr(0, 128).find("brain.Event:") != std::string_view::npos;
}

std::vector<ReportedStep> reported_steps(std::string_view bytes) {
  std::vector<ReportedStep> steps;
  while (const auto length = number_in<std::uint64_t>(bytes)) {
    if (bytes.size() < before_record || *length > bytes.size() - before_record) break;
    if (const auto step = reported(bytes.substr(before_record, *length))) steps.push_back(*step);
    bytes.remove_prefix(std::min(bytes.size(), before_record + *length + behind_record));
  }
  return steps;
}

}  // namespace stepsim
