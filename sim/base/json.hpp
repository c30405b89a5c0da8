// This is a small writer of JSON: numbers read back to the same bits, and keys stand in the order
// of writing.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

enum class JsonSpacing : std::uint8_t { readable, compact };

class JsonWriter {
 public:
  explicit JsonWriter(JsonSpacing spacing = JsonSpacing::readable)
      : compact_(spacing == JsonSpacing::compact) {}

  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(double number);  // a value that is no number becomes null
  template <std::integral Whole>
    requires(!std::same_as<Whole, bool>)
  JsonWriter& value(Whole number) {
    return whole(static_cast<std::int64_t>(number));
  }
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(bool flag);
  JsonWriter& null();

  template <class Value>
  JsonWriter& member(std::string_view name, const Value& v) {
    key(name);
    return value(v);
  }

  std::string take() { return std::move(text_) + "\n"; }

 private:
  JsonWriter& whole(std::int64_t number);
  void separate();

  std::string text_;
  std::vector<bool> first_{true};
  bool after_key_ = false, compact_ = false;
};

}  // namespace stepsim
