// The only user of toml++, of which the headers alone are needed.
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
// It asserts of a file what it goes on to report as a mistake of the file.
#define TOML_ASSERT(condition) static_cast<void>(0)
#include "sim/base/toml_tree.hpp"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <sstream>

namespace stepsim::detail {
namespace {

int line_of(const toml::source_region& source) {
  return static_cast<int>(source.begin.line);
}

template <class Value>
std::string stream_text(const Value& value) {
  std::ostringstream stream;
  stream << value;
  return stream.str();
}

Node scalar(std::string text, bool quoted = false) {
  Node node;
  node.shape = Shape::scalar;
  node.scalar = std::move(text);
  node.quoted = quoted;
  return node;
}

Node node_of(const toml::node& value);

Node node_of(const toml::table& table) {
  Node node;
  node.shape = Shape::mapping;
  for (const auto& [key, value] : table) {
    node.entries.push_back({std::string(key.str()), node_of(value)});
    node.entries.back().value.line = line_of(key.source());
  }
  std::stable_sort(node.entries.begin(), node.entries.end(),
                   [](const Entry& a, const Entry& b) { return a.value.line < b.value.line; });
  return node;
}

Node node_of(const toml::array& array) {
  Node node;
  node.shape = Shape::sequence;
  for (const toml::node& item : array) node.items.push_back(node_of(item));
  return node;
}

Node node_of(const toml::node& value) {
  Node node = value.visit([](const auto& typed) -> Node {
    using Typed = std::remove_cvref_t<decltype(typed)>;
    if constexpr (toml::is_table<Typed> || toml::is_array<Typed>)
      return node_of(typed);
    else if constexpr (toml::is_string<Typed>)
      return scalar(typed.get(), true);
    else if constexpr (toml::is_boolean<Typed>)
      return scalar(typed.get() ? "true" : "false");
    else if constexpr (toml::is_number<Typed>)
      return scalar(fmt::format("{}", typed.get()));
    else
      return scalar(stream_text(typed.get()), true);  // a date or a time
  });
  node.line = line_of(value.source());
  return node;
}

}  // namespace

Node parse_toml(std::string_view text, const std::string& file) {
  try {
    return node_of(toml::parse(text, file));
  } catch (const toml::parse_error& error) {
    throw UserError({{file, line_of(error.source()), "",
                      fmt::format("is no valid TOML: {}", error.description())}});
  }
}

}  // namespace stepsim::detail
