#include "workloads/grpo/block_pool.hpp"

#include <algorithm>

namespace stepsim {

BlockPool::BlockPool(std::int64_t blocks) : all_(blocks), free_(blocks) {
  if (blocks > 0) unused_.push_back({.owner = {}, .owned = false, .blocks = blocks});
}

void BlockPool::take(std::int64_t blocks) {
  blocks = std::min(blocks, free_);
  free_ -= blocks;
  while (blocks > 0) {
    Unused& oldest = unused_.front();
    const std::int64_t part = std::min(blocks, oldest.blocks);
    oldest.blocks -= part;
    blocks -= part;
    if (oldest.blocks > 0) continue;
    if (oldest.owned) owned_.erase(oldest.owner);
    unused_.pop_front();
  }
}

void BlockPool::give_back(std::int64_t blocks) {
  if (blocks <= 0) return;
  free_ += blocks;
  if (!unused_.empty() && !unused_.back().owned)
    unused_.back().blocks += blocks;
  else
    unused_.push_back({.owner = {}, .owned = false, .blocks = blocks});
}

void BlockPool::give_back(const BlockOwner& owner, std::int64_t blocks) {
  if (blocks <= 0) return;
  if (owned_.contains(owner)) return give_back(blocks);  // one copy is enough
  free_ += blocks;
  unused_.push_back({.owner = owner, .owned = true, .blocks = blocks});
  owned_.emplace(owner, std::prev(unused_.end()));
}

std::int64_t BlockPool::kept(const BlockOwner& owner) const {
  const auto place = owned_.find(owner);
  return place == owned_.end() ? 0 : place->second->blocks;
}

void BlockPool::take_again(const BlockOwner& owner, std::int64_t blocks) {
  const auto place = owned_.find(owner);
  if (place == owned_.end() || blocks <= 0) return;
  Unused& entry = *place->second;
  const std::int64_t part = std::min(blocks, entry.blocks);
  free_ -= part;
  entry.blocks -= part;
  // The owner has no use any more for what it has behind them.
  entry.owned = false;
  if (entry.blocks == 0) unused_.erase(place->second);
  owned_.erase(place);
}

}  // namespace stepsim
