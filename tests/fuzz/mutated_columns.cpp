// HDF5's checksums refuse most bytes that a fuzzer changes. So columns are changed before they
// become a file.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "tests/fuzz/targets.hpp"

namespace stepsim::fuzz {
namespace {

constexpr std::array odd_numbers{0.0,
                                 -0.0,
                                 -1.0,
                                 5.0,
                                 1e-320,
                                 1e18,
                                 1e308,
                                 -1e308,
                                 std::numeric_limits<double>::quiet_NaN(),
                                 std::numeric_limits<double>::infinity()};

class Bytes {
 public:
  explicit Bytes(const std::string& all) : left_(all) {}
  bool empty() const { return left_.empty(); }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (; bytes > 0 && !left_.empty(); --bytes) {
      value = value << 8 | static_cast<unsigned char>(left_.front());
      left_.remove_prefix(1);
    }
    return value;
  }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(number(2)) % count; }
  std::string text() {
    const std::size_t size = static_cast<std::size_t>(number(1)) % (left_.size() + 1);
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }

 private:
  std::string_view left_;
};

template <class T>
T other_value(const T& old, Bytes& bytes) {
  if constexpr (std::is_same_v<T, std::string>) {
    return bytes.text();
  } else if constexpr (std::is_same_v<T, double>) {
    const std::uint64_t choice = bytes.number(1);
    if (choice < odd_numbers.size()) return odd_numbers[choice];
    if (choice < 128) return old * static_cast<double>(bytes.number(1)) / 64;
    const std::uint64_t bits = bytes.number(8);
    double value{};
    std::memcpy(&value, &bits, sizeof value);
    return value;
  } else {
    return static_cast<T>(bytes.number(1) % 2 == 0
                              ? bytes.number(sizeof(T))
                              : static_cast<std::uint64_t>(old) + bytes.number(1));
  }
}

template <class T>
void change(std::vector<T>& values, Bytes& bytes) {
  constexpr std::size_t longest = 3000;
  const std::size_t kind = bytes.below(8);
  if (kind == 0) {
    values.resize(bytes.below(longest));
  } else if (values.empty()) {
    values.emplace_back();
  } else if (kind == 1) {
    values.erase(values.begin() + static_cast<std::ptrdiff_t>(bytes.below(values.size())));
  } else if (kind == 2) {
    values[bytes.below(values.size())] = T(values[bytes.below(values.size())]);
  } else {
    T& value = values[bytes.below(values.size())];
    value = other_value(value, bytes);
  }
}

}  // namespace

std::vector<Column> mutated(std::vector<Column> columns, const std::string& bytes) {
  Bytes left(bytes);
  constexpr int most_changes = 8;
  for (int change_number = 0; !left.empty() && change_number < most_changes; ++change_number) {
    const std::size_t place = left.below(columns.size());
    const std::uint64_t kind = left.number(1);
    if (kind == 0)
      columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(place));
    else if (kind == 1)
      columns[place].unit = left.text();
    else if (kind == 2)
      columns[place].values = columns[left.below(columns.size())].values;
    else if (kind == 3)
      columns[place].path += left.text();
    else
      std::visit([&](auto& values) { change(values, left); }, columns[place].values);
    if (columns.empty()) break;
  }
  return columns;
}

}  // namespace stepsim::fuzz
