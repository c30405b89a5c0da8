// This lays what is asked of it where a caching allocator such as PyTorch's would: sizes in
// multiples of 512 bytes, small requests in segments of 2 MiB, larger ones in segments of 20 MiB or
// of their own, into the smallest free block of their stream that has room.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace stepsim {

class MemoryPlacement {
 public:
  using Address = std::uint64_t;

  // A change is what the driver is asked for. When memory is out, that is said, and it goes on as
  // if there was more.
  struct Change {
    enum class What : std::uint8_t { taken, given, mapped, unmapped, out_of_memory } what;
    Address address = 0;  // out of memory: bytes that are free
    std::uint64_t bytes = 0;
    std::size_t stream = 0;
  };
  struct Segment {
    std::size_t stream = 0;
    bool small = false;
    std::size_t owner = 0;    // for whom it was taken
    std::uint64_t bytes = 0;  // at first
  };
  struct Block {
    std::uint64_t bytes = 0;
    std::size_t segment = 0;
    std::uint64_t requested = 0;  // 0: free
    std::size_t owner = 0;
  };

  // `room` is in bytes. Segments that expand are mapped piece by piece, one for each stream and
  // kind.
  MemoryPlacement(std::uint64_t room, bool expandable);

  Address take(std::uint64_t bytes, std::size_t stream, std::size_t owner,
               std::vector<Change>& changes);
  void give(Address address);

  bool expandable() const { return expandable_; }
  std::uint64_t reserved() const { return reserved_; }
  const std::map<Address, Block>& blocks() const { return blocks_; }
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  using Pool = std::pair<std::size_t, bool>;  // stream, small
  struct Free {
    Pool pool;
    std::uint64_t bytes = 0;
    Address address = 0;
    auto operator<=>(const Free&) const = default;
  };

  Pool pool_of(std::size_t segment) const {
    return {segments_[segment].stream, segments_[segment].small};
  }
  void add_free(Address address, std::uint64_t bytes, std::size_t segment);
  void drop_free(Address address);
  std::pair<Address, Address> idle_part(Address address) const;
  std::set<Free>::iterator find(Pool pool, std::uint64_t bytes);
  void grow(Pool pool, std::uint64_t bytes, std::size_t owner, std::vector<Change>& changes);
  Address place(Pool pool, std::uint64_t bytes, std::size_t owner);
  std::uint64_t missing(Pool pool, std::uint64_t bytes) const;
  void give_back_idle(std::vector<Change>& changes);

  std::uint64_t room_ = 0;
  bool expandable_ = false;
  std::uint64_t reserved_ = 0;
  Address next_;  // of a segment
  std::vector<Segment> segments_;
  struct Expanding {
    std::size_t segment = 0;
    Address end = 0;
  };
  std::map<Pool, Expanding> expanding_;
  std::map<Address, Block> blocks_;
  std::set<Free> free_;
  std::set<Address> idle_;  // of these the ones that the driver can have back in part
};

}  // namespace stepsim
