// A pool holds the blocks of an engine's cache. What is given back keeps its content until it is
// handed out again, the longest unused first.
#pragma once

#include <compare>
#include <cstdint>
#include <list>
#include <map>

namespace stepsim {

// Whose content a block has: a sequence's own, or the prompt of its group.
struct BlockOwner {
  std::uint32_t group = 0;
  std::int64_t sample = -1;  // -1: the prompt

  friend auto operator<=>(const BlockOwner&, const BlockOwner&) = default;
};

class BlockPool {
 public:
  explicit BlockPool(std::int64_t blocks = 0);

  std::int64_t all() const { return all_; }
  std::int64_t free() const { return free_; }
  std::int64_t used() const { return all_ - free_; }
  // Hands out blocks, at most those that are free; their content is lost, the end of a sequence
  // before its beginning.
  void take(std::int64_t blocks);
  void give_back(std::int64_t blocks);
  void give_back(const BlockOwner& owner, std::int64_t blocks);
  // Blocks that still have the owner's content.
  std::int64_t kept(const BlockOwner& owner) const;
  // Hands out the first so many of them again.
  void take_again(const BlockOwner& owner, std::int64_t blocks);

 private:
  struct Unused {
    BlockOwner owner;
    bool owned = false;
    std::int64_t blocks = 0;
  };
  std::int64_t all_ = 0, free_ = 0;
  std::list<Unused> unused_;  // the longest unused first
  std::map<BlockOwner, std::list<Unused>::iterator> owned_;
};

}  // namespace stepsim
