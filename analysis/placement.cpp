#include "analysis/placement.hpp"

#include <algorithm>
#include <iterator>

namespace stepsim {
namespace {

// These are the sizes of c10/cuda/CUDACachingAllocator.cpp of github.com/pytorch/pytorch @eb42ad6.
constexpr std::uint64_t mebi = 1 << 20;
constexpr std::uint64_t least_block = 512;
constexpr std::uint64_t most_small = mebi;
constexpr std::uint64_t small_segment = 2 * mebi;
constexpr std::uint64_t least_own_segment = 10 * mebi;
constexpr std::uint64_t shared_segment = 20 * mebi;
constexpr std::uint64_t segment_step = 2 * mebi;

// Addresses begin at the first, and a segment that expands has so many of the second; both are
// whole pages of either kind.
constexpr std::uint64_t first_address = 0x7f0000000000 / shared_segment * shared_segment;
constexpr std::uint64_t address_space = shared_segment << 16;

std::uint64_t rounded_up(std::uint64_t bytes, std::uint64_t step) {
  return (bytes + step - 1) / step * step;
}

std::uint64_t page_of(bool small) {
  return small ? small_segment : shared_segment;
}

std::uint64_t segment_bytes(std::uint64_t bytes) {
  if (bytes <= most_small) return small_segment;
  if (bytes < least_own_segment) return shared_segment;
  return rounded_up(bytes, segment_step);
}

}  // namespace

MemoryPlacement::MemoryPlacement(std::uint64_t room, bool expandable)
    : room_(room), expandable_(expandable), next_(first_address) {}

MemoryPlacement::Address MemoryPlacement::take(std::uint64_t bytes, std::size_t stream,
                                               std::size_t owner, std::vector<Change>& changes) {
  const std::uint64_t size = rounded_up(std::max(bytes, least_block), least_block);
  const Pool pool{stream, size <= most_small};
  auto found = find(pool, size);
  if (found == free_.end()) {
    grow(pool, size, owner, changes);
    found = find(pool, size);
  }
  const Address address = found->address;
  drop_free(address);
  Block& block = blocks_.at(address);
  const std::uint64_t rest = block.bytes - size;
  if (pool.second || expandable_ ? rest >= least_block : rest > most_small) {
    block.bytes = size;
    add_free(address + size, rest, block.segment);
  }
  block.requested = std::max<std::uint64_t>(bytes, 1);
  block.owner = owner;
  return address;
}

void MemoryPlacement::give(Address address) {
  auto block = blocks_.find(address);
  const std::size_t segment = block->second.segment;
  std::uint64_t bytes = block->second.bytes;
  const auto joins = [&](const auto& other, Address end) {
    return other->second.segment == segment && other->second.requested == 0 &&
           other->first + other->second.bytes == end;
  };
  if (const auto after = std::next(block);
      after != blocks_.end() && joins(after, address + bytes + after->second.bytes)) {
    drop_free(after->first);
    bytes += after->second.bytes;
    blocks_.erase(after);
  }
  if (block != blocks_.begin())
    if (const auto before = std::prev(block); joins(before, address)) {
      drop_free(before->first);
      address = before->first;
      bytes += before->second.bytes;
      blocks_.erase(block);
    }
  add_free(address, bytes, segment);
}

void MemoryPlacement::add_free(Address address, std::uint64_t bytes, std::size_t segment) {
  blocks_[address] = {.bytes = bytes, .segment = segment};
  free_.insert({pool_of(segment), bytes, address});
  if (const auto [from, to] = idle_part(address); from < to) idle_.insert(address);
}

void MemoryPlacement::drop_free(Address address) {
  const Block& block = blocks_.at(address);
  free_.erase({pool_of(block.segment), block.bytes, address});
  idle_.erase(address);
}

// Returns the part of a free block that the driver can have back: all of a segment that does not
// expand, or whole pages.
std::pair<MemoryPlacement::Address, MemoryPlacement::Address> MemoryPlacement::idle_part(
    Address address) const {
  const Block& block = blocks_.at(address);
  const Segment& segment = segments_[block.segment];
  const Address end = address + block.bytes;
  if (!expandable_) return {address, block.bytes < segment.bytes ? address : end};
  const std::uint64_t page = page_of(segment.small);
  return {rounded_up(address, page), end / page * page};
}

// The end of a segment that expands comes last: it is as large as it likes.
std::set<MemoryPlacement::Free>::iterator MemoryPlacement::find(Pool pool, std::uint64_t bytes) {
  const auto fits = [&](const auto& place) { return place != free_.end() && place->pool == pool; };
  const auto found = free_.lower_bound({pool, bytes, 0});
  if (!fits(found)) return free_.end();
  const auto expanding = expanding_.find(pool);
  const bool is_end =
      expanding != expanding_.end() && found->address + found->bytes == expanding->second.end;
  return is_end && fits(std::next(found)) ? std::next(found) : found;
}

// Bytes to ask the driver for, so that a request finds room.
std::uint64_t MemoryPlacement::missing(Pool pool, std::uint64_t bytes) const {
  if (!expandable_) return segment_bytes(bytes);
  if (const auto expanding = expanding_.find(pool); expanding != expanding_.end())
    if (const auto after = blocks_.lower_bound(expanding->second.end); after != blocks_.begin()) {
      const auto& [address, last] = *std::prev(after);
      if (last.requested == 0 && address + last.bytes == expanding->second.end) bytes -= last.bytes;
    }
  return rounded_up(bytes, page_of(pool.second));
}

// Adds so many bytes, and says where they begin.
MemoryPlacement::Address MemoryPlacement::place(Pool pool, std::uint64_t bytes, std::size_t owner) {
  if (!expandable_ || !expanding_.contains(pool)) {
    if (expandable_) expanding_[pool] = {segments_.size(), next_};
    segments_.push_back({pool.first, pool.second, owner, bytes});
    next_ += expandable_ ? address_space : bytes;
  }
  std::size_t segment = segments_.size() - 1;
  Address address = next_ - bytes;
  if (expandable_) {
    Expanding& expanding = expanding_[pool];
    segment = expanding.segment;
    address = expanding.end;
    expanding.end += bytes;
  }
  blocks_[address] = {.bytes = bytes, .segment = segment};
  return address;
}

void MemoryPlacement::grow(Pool pool, std::uint64_t bytes, std::size_t owner,
                           std::vector<Change>& changes) {
  using enum Change::What;
  if (reserved_ + missing(pool, bytes) > room_) give_back_idle(changes);
  const std::uint64_t more = missing(pool, bytes);
  if (reserved_ + more > room_)
    changes.push_back({out_of_memory, room_ - std::min(room_, reserved_), bytes, pool.first});
  reserved_ += more;
  const Address address = place(pool, more, owner);
  changes.push_back({expandable_ ? mapped : taken, address, more, pool.first});
  give(address);  // joins what is free before it
}

// Segments of which nothing is used, and whole pages of those that expand.
void MemoryPlacement::give_back_idle(std::vector<Change>& changes) {
  using enum Change::What;
  for (const Address address : std::exchange(idle_, {})) {
    const Block block = blocks_.at(address);
    const Address end = address + block.bytes;
    const auto [from, to] = idle_part(address);
    drop_free(address);
    blocks_.erase(address);
    if (address < from) add_free(address, from - address, block.segment);
    if (to < end) add_free(to, end - to, block.segment);
    reserved_ -= to - from;
    changes.push_back(
        {expandable_ ? unmapped : given, from, to - from, pool_of(block.segment).first});
  }
}

}  // namespace stepsim
