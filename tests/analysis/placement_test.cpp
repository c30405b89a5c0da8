#include "analysis/placement.hpp"

#include <ctime>

#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

using What = MemoryPlacement::Change::What;
constexpr std::uint64_t mebi = 1 << 20;

struct Laid {
  MemoryPlacement placement;
  std::vector<MemoryPlacement::Change> changes{};

  MemoryPlacement::Address take(std::uint64_t bytes, std::size_t stream = 0) {
    return placement.take(bytes, stream, 0, changes);
  }
  std::vector<std::uint64_t> sizes(What what, std::size_t from = 0) const {
    std::vector<std::uint64_t> list;
    for (std::size_t i = from; i < changes.size(); ++i)
      if (changes[i].what == what) list.push_back(changes[i].bytes);
    return list;
  }
};

}  // namespace

TEST_CASE("requests are rounded and share segments by size", "[placement]") {
  Laid laid{MemoryPlacement(1000 * mebi, false)};
  const auto first = laid.take(1), second = laid.take(513), third = laid.take(mebi);
  CHECK(second == first + 512);
  CHECK(third == second + 1024);
  const auto large = laid.take(mebi + 1), next = laid.take(9 * mebi);
  CHECK(next == large + mebi + 512);
  laid.take(30 * mebi + 1);
  CHECK(laid.sizes(What::taken) == std::vector<std::uint64_t>{2 * mebi, 20 * mebi, 32 * mebi});
  CHECK(laid.placement.reserved() == 54 * mebi);
}

TEST_CASE("the smallest free block with room is taken, of its own stream alone", "[placement]") {
  Laid laid{MemoryPlacement(1000 * mebi, false)};
  const auto wide = laid.take(40 * mebi), narrow = laid.take(20 * mebi);
  laid.placement.give(wide);
  laid.placement.give(narrow);
  CHECK(laid.take(18 * mebi) == narrow);
  CHECK(laid.take(18 * mebi, 1) != wide);
  CHECK(laid.take(18 * mebi) == wide);
  CHECK(laid.take(18 * mebi) == wide + 18 * mebi);  // what was split off
}

TEST_CASE("a large block with little to spare is given whole", "[placement]") {
  Laid laid{MemoryPlacement(1000 * mebi, false)};
  const auto block = laid.take(20 * mebi);
  laid.placement.give(block);
  CHECK(laid.take(19 * mebi) == block);
  CHECK(laid.placement.blocks().at(block).bytes == 20 * mebi);
  CHECK(laid.placement.blocks().at(block).requested == 19 * mebi);
}

TEST_CASE("neighbours that are free become one block", "[placement]") {
  Laid laid{MemoryPlacement(1000 * mebi, false)};
  const auto a = laid.take(5 * mebi), b = laid.take(5 * mebi), c = laid.take(5 * mebi);
  laid.placement.give(a);
  laid.placement.give(c);
  laid.placement.give(b);
  CHECK(laid.placement.blocks().size() == 1);
  CHECK(laid.take(20 * mebi) == a);
}

TEST_CASE("without room idle segments go back first, and then memory is out", "[placement]") {
  Laid laid{MemoryPlacement(100 * mebi, false)};
  const auto idle = laid.take(40 * mebi);
  laid.take(40 * mebi);
  laid.placement.give(idle);
  laid.take(60 * mebi);
  CHECK(laid.sizes(What::given) == std::vector<std::uint64_t>{40 * mebi});
  CHECK(laid.sizes(What::out_of_memory).empty());
  laid.take(2 * mebi);
  CHECK(laid.sizes(What::out_of_memory) == std::vector<std::uint64_t>{2 * mebi});
  CHECK(laid.placement.reserved() == 120 * mebi);
}

TEST_CASE("a segment that expands is mapped in pages behind its end", "[placement]") {
  Laid laid{MemoryPlacement(1000 * mebi, true)};
  const auto first = laid.take(30 * mebi), second = laid.take(15 * mebi);
  CHECK(second == first + 30 * mebi);
  CHECK(laid.sizes(What::mapped) == std::vector<std::uint64_t>{40 * mebi, 20 * mebi});
  CHECK(laid.placement.segments().size() == 1);
  laid.placement.give(first);
  CHECK(laid.take(10 * mebi) == first);  // rather than the end
}

TEST_CASE("without room whole pages of segments that expand go back", "[placement]") {
  Laid laid{MemoryPlacement(100 * mebi, true)};
  const auto first = laid.take(50 * mebi);
  laid.take(30 * mebi);
  laid.placement.give(first);
  laid.take(60 * mebi);
  CHECK(laid.sizes(What::unmapped) == std::vector<std::uint64_t>{40 * mebi});
  CHECK(laid.placement.reserved() == 100 * mebi);
  CHECK(laid.take(10 * mebi) == first + 40 * mebi);
}

TEST_CASE("what goes back is what lies idle, and nothing that is used", "[placement]") {
  const bool expandable = GENERATE(false, true);
  Laid laid{MemoryPlacement(100 * mebi, expandable)};
  std::vector<MemoryPlacement::Address> held;
  std::uint32_t drawn = 1;
  for (int turn = 0; turn < 4000; ++turn) {
    drawn = drawn * 1664525 + 1013904223;
    const std::uint64_t bytes = (drawn >> 8) % (turn % 3 == 0 ? 30 * mebi : mebi);
    const std::size_t before = laid.changes.size();
    held.push_back(laid.take(bytes, drawn % 2));
    std::uint64_t in_blocks = 0;
    for (const auto& [address, block] : laid.placement.blocks()) {
      in_blocks += block.bytes;
      const bool whole = block.bytes >= laid.placement.segments()[block.segment].bytes;
      // A request that found no room leaves nothing that the driver could have.
      if (!expandable && laid.sizes(What::out_of_memory, before).size() == 1)
        CHECK((block.requested > 0 || !whole));
    }
    CHECK(in_blocks == laid.placement.reserved());
    for (std::size_t given = 0; given < held.size() && (drawn >> 5) % 3 == given; ++given) {
      laid.placement.give(held[given]);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(given));
    }
    if (held.size() > 40) {
      laid.placement.give(held.front());
      held.erase(held.begin());
    }
  }
  CHECK_FALSE(laid.sizes(expandable ? What::unmapped : What::given).empty());
}

TEST_CASE("requests beyond the room cost no look at what is held", "[placement]") {
  Laid laid{MemoryPlacement(0, false)};
  const std::clock_t begin = std::clock();
  for (int i = 0; i < 30'000; ++i) laid.take(11 * mebi);
  CHECK(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC < 2);  // was a minute
  CHECK(laid.sizes(What::out_of_memory).size() == 30'000);
}
