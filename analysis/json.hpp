// A small writer of JSON: numbers that read back to the same bits, keys in the order of writing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

class JsonWriter {
 public:
  JsonWriter& begin_object();
  JsonWriter& end_object();
  JsonWriter& begin_array();
  JsonWriter& end_array();
  JsonWriter& key(std::string_view name);
  JsonWriter& value(double number);  // a value that is no number becomes null
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
  void separate();

  std::string text_;
  std::vector<bool> first_{true};
  bool after_key_ = false;
};

}  // namespace stepsim
