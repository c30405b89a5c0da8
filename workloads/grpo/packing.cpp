#include "workloads/grpo/packing.hpp"

#include <algorithm>
#include <numeric>

namespace stepsim {

Packed pack(std::span<const std::int64_t> sequences, std::int64_t pack_length,
            std::size_t learners) {
  const std::int64_t total = std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0});
  const std::int64_t share = total / static_cast<std::int64_t>(learners);
  const std::int64_t limit = std::min(pack_length, std::max<std::int64_t>(share, 1));
  Packed result;
  for (const std::int64_t tokens : sequences) {
    const double length = static_cast<double>(tokens);
    // A sequence that is longer than the shortened limit has a pack of its own.
    if (result.packs.empty() || result.packs.back() + length > static_cast<double>(limit))
      result.packs.push_back(0);
    result.packs.back() += length;
  }
  const std::size_t kept = result.packs.size() / learners * learners;
  for (std::size_t i = 0; i < result.packs.size(); ++i)
    (i < kept ? result.tokens : result.dropped) += result.packs[i];
  result.packs.resize(kept);
  return result;
}

}  // namespace stepsim
