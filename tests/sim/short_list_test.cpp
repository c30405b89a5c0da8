#include "sim/base/short_list.hpp"

#include <vector>

#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("a short list holds what was put into it, however much that is", "[sim]") {
  ShortList<int, 4> list;
  std::vector<int> same;
  CHECK(list.empty());
  for (int i = 0; i < 12; ++i) {
    list.push_back(i);
    same.push_back(i);
    const ShortList<int, 4> copy = list;
    CHECK(std::vector<int>(copy.begin(), copy.end()) == same);
    CHECK(copy.size() == same.size());
    CHECK(copy.front() == 0);
    CHECK(copy.back() == i);
    CHECK(copy[copy.size() / 2] == same[same.size() / 2]);
    ShortList<int, 4> other;
    other.assign(same.begin(), same.end());
    CHECK(other == list);
    other.push_back(1);
    CHECK(other != list);
  }
}

}  // namespace stepsim
