// Values become bytes here and come back, to the same bits: what a process says to the one that it
// came from. Both are the same program, so a value that can be copied byte by byte goes as its
// bytes.
#pragma once

#include <cstddef>
#include <cstring>
#include <optional>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>

namespace stepsim {

// A struct of other things lists its members once, for both directions:
//   static auto fields(auto& self) { return std::tie(self.name, self.parts); }
template <class T>
concept ListsFields = requires(T& value) { T::fields(value); };

namespace wire {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

// A view is bytes, too, but not those that count.
template <class T>
concept Flat = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
               !std::convertible_to<T, std::string_view> && !std::ranges::view<T>;

// Texts and vectors of such, all at once.
template <class T>
concept Packed = std::ranges::contiguous_range<T> && Flat<std::ranges::range_value_t<T>>;

// The key of a map is const where it stands.
template <class T>
struct Loose {
  using Type = T;
};
template <class Key, class Value>
struct Loose<std::pair<const Key, Value>> {
  using Type = std::pair<Key, Value>;
};

template <class T>
void put(std::string& bytes, const T& value) {
  if constexpr (ListsFields<const T>) {
    std::apply([&](const auto&... each) { (put(bytes, each), ...); }, T::fields(value));
  } else if constexpr (is_optional<T>) {
    put(bytes, value.has_value());
    if (value) put(bytes, *value);
  } else if constexpr (Flat<T>) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  } else if constexpr (Packed<T>) {
    put(bytes, std::size_t{value.size()});
    bytes.append(reinterpret_cast<const char*>(value.data()), value.size() * sizeof *value.data());
  } else if constexpr (std::ranges::sized_range<T>) {
    put(bytes, std::size_t{value.size()});
    for (const auto& each : value) put(bytes, each);
  } else {
    std::apply([&](const auto&... each) { (put(bytes, each), ...); }, value);
  }
}

inline void take_bytes(std::string_view& bytes, void* to, std::size_t size) {
  if (bytes.size() < size) throw std::runtime_error("a worker's answer was cut off");
  if (size > 0) std::memcpy(to, bytes.data(), size);
  bytes.remove_prefix(size);
}

// Takes a value off the front.
template <class T>
T take(std::string_view& bytes) {
  T value{};
  if constexpr (ListsFields<T>) {
    std::apply(
        [&](auto&... each) { ((each = take<std::remove_cvref_t<decltype(each)>>(bytes)), ...); },
        T::fields(value));
  } else if constexpr (is_optional<T>) {
    if (take<bool>(bytes)) value = take<typename T::value_type>(bytes);
  } else if constexpr (Flat<T>) {
    take_bytes(bytes, &value, sizeof value);
  } else if constexpr (Packed<T>) {
    value.resize(take<std::size_t>(bytes));
    take_bytes(bytes, value.data(), value.size() * sizeof *value.data());
  } else if constexpr (std::ranges::sized_range<T>) {
    for (auto left = take<std::size_t>(bytes); left > 0; --left)
      value.insert(value.end(), take<typename Loose<typename T::value_type>::Type>(bytes));
  } else {
    std::apply(
        [&](auto&... each) { ((each = take<std::remove_cvref_t<decltype(each)>>(bytes)), ...); },
        value);
  }
  return value;
}

}  // namespace wire

template <class T>
std::string to_wire(const T& value) {
  std::string bytes;
  wire::put(bytes, value);
  return bytes;
}

template <class T>
T from_wire(std::string_view bytes) {
  T value = wire::take<T>(bytes);
  if (!bytes.empty()) throw std::runtime_error("a worker's answer is longer than it should be");
  return value;
}

}  // namespace stepsim
