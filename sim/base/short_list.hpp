// A list that is usually short: up to so many elements stand in it, more of them elsewhere.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <ranges>
#include <type_traits>
#include <vector>

namespace stepsim {

template <class Element, std::size_t usual>
class ShortList {
  static_assert(std::is_trivially_copyable_v<Element>);

 public:
  using value_type = Element;
  using const_iterator = const Element*;

  ShortList() = default;
  ShortList(std::initializer_list<Element> elements) { append(elements); }

  void push_back(Element element) {
    if (size_ < usual) {
      near_[size_] = element;
    } else {
      if (size_ == usual) far_.assign(near_.begin(), near_.end());
      far_.push_back(element);
    }
    ++size_;
  }
  template <class Range>
  void append(const Range& more) {
    for (const Element element : more) push_back(element);
  }

  template <class From>
  void assign(From from, From to) {
    *this = {};
    for (; from != to; ++from) push_back(*from);
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  const Element* data() const { return size_ <= usual ? near_.data() : far_.data(); }
  const Element* begin() const { return data(); }
  const Element* end() const { return data() + size_; }
  const Element& operator[](std::size_t i) const { return data()[i]; }
  const Element& front() const { return *begin(); }
  const Element& back() const { return *(end() - 1); }

  friend bool operator==(const ShortList& a, const ShortList& b) {
    return std::ranges::equal(a, b);
  }

 private:
  std::uint32_t size_ = 0;
  std::array<Element, usual> near_{};
  std::vector<Element> far_{};  // all of them, once there are more
};

}  // namespace stepsim
