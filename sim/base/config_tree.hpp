// This is a file as a small tree of our own: what a reader and its messages need, and no library's
// types.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/constant.hpp"
#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"

namespace stepsim::detail {

inline constexpr std::size_t deepest_nesting = 64;  // of any file

enum class Shape { nothing, scalar, mapping, sequence };

struct Entry;

struct Node {
  Shape shape = Shape::nothing;
  int line = 0;
  std::size_t origin = 0;  // where it came from: an index into Notes::origins
  bool quoted = false;
  std::string scalar{};
  std::vector<Entry> entries;         // of a mapping
  std::vector<Node> items;            // of a sequence
  std::vector<std::string> others{};  // of a scalar: what else it may be; see unknown_values.hpp
  mutable bool used = false;
  mutable std::vector<std::string> asked{};  // keys that a reader wanted of this mapping
  mutable std::size_t last = 0;              // of its entries, the one found last
};

struct Entry {
  std::string key;
  Node value;
};

struct Notes {
  std::string file;
  Node root;
  // An index into this list is the origin of a value: the file itself comes first, then what was
  // put in or laid under it.
  std::vector<std::string> origins{""};
  std::vector<Problem> problems;
  std::vector<NamedConstant> constants;
  std::optional<Draw> draw;
  std::vector<GivenConstant> given;
  std::string scope;  // goes before the names of constants

  void add(int line, std::string key, std::string message, Fault fault = Fault::form) {
    problems.push_back({file, line, std::move(key), std::move(message), fault});
  }
};

}  // namespace stepsim::detail
