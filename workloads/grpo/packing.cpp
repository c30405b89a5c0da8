#include "workloads/grpo/packing.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "workloads/grpo/lengths.hpp"

namespace stepsim {
namespace {

// The k-th of n parts as equal as whole numbers allow.
std::size_t part_begin(std::size_t count, std::size_t k, std::size_t n) {
  return k * count / n;
}

// Packs in the order in which they were filled, a round of them at a time.
Updates in_packs(const Grpo& grpo, std::span<const std::int64_t> sequences, std::size_t learners) {
  const Packed packed = pack(sequences, grpo.pack_length, learners);
  std::vector<double> longest;
  for (auto pack = packed.packs.begin(); pack != packed.packs.end();
       pack += static_cast<std::ptrdiff_t>(learners))
    longest.push_back(*std::max_element(pack, pack + static_cast<std::ptrdiff_t>(learners)));
  Updates result{.rounds = {},
                 .micro_batches = static_cast<double>(packed.packs.size()),
                 .tokens = packed.tokens,
                 .dropped = packed.dropped};
  if (longest.empty()) return result;
  const auto count = std::min(static_cast<std::size_t>(grpo.mini_batches), longest.size());
  for (std::size_t k = 0; k < count; ++k) {
    const auto at = [&](std::size_t part) {
      return longest.begin() + static_cast<std::ptrdiff_t>(part_begin(longest.size(), part, count));
    };
    result.rounds.emplace_back(at(k), at(k + 1));
  }
  return result;
}

// Cuts one update: each learner cuts its share into as many equal micro-batches as the learner that
// needs most.
std::vector<double> shared_round(std::span<const std::int64_t> sequences, std::int64_t limit,
                                 std::size_t learners) {
  double most = 0;
  std::int64_t longest = 1;
  for (std::size_t learner = 0; learner < learners; ++learner) {
    double share = 0;
    for (std::size_t i = part_begin(sequences.size(), learner, learners);
         i < part_begin(sequences.size(), learner + 1, learners); ++i) {
      share += static_cast<double>(sequences[i]);
      longest = std::max(longest, sequences[i]);
    }
    most = std::max(most, share);
  }
  const double fits = static_cast<double>(std::max(limit, longest));
  const double count = std::max(1.0, std::ceil(most / fits));
  return std::vector<double>(static_cast<std::size_t>(count), most / count);
}

// Does the same in rows that are not padded: a micro-batch is full with so many, or with `limit`
// tokens.
std::vector<double> counted_round(std::span<const std::int64_t> sequences, std::int64_t rows,
                                  std::int64_t limit, std::size_t learners) {
  std::vector<double> rounds;
  for (std::size_t learner = 0; learner < learners; ++learner) {
    std::size_t round = 0;
    std::int64_t count = 0, tokens = 0;
    for (std::size_t i = part_begin(sequences.size(), learner, learners);
         i < part_begin(sequences.size(), learner + 1, learners); ++i) {
      if (count > 0 && (count == rows || tokens + sequences[i] > limit)) {
        ++round;
        count = tokens = 0;
      }
      ++count;
      tokens += sequences[i];
      if (round == rounds.size()) rounds.push_back(0);
      rounds[round] = std::max(rounds[round], static_cast<double>(tokens));
    }
  }
  return rounds;
}

// Does the same in rows that are padded: the learner with the longest row of a round sets its time.
std::vector<double> padded_round(std::span<const std::int64_t> sequences, std::size_t rows,
                                 std::size_t learners, bool to_share) {
  std::vector<double> rounds;
  for (std::size_t learner = 0; learner < learners; ++learner) {
    const std::size_t from = part_begin(sequences.size(), learner, learners),
                      to = part_begin(sequences.size(), learner + 1, learners);
    for (std::size_t at = from; at < to; at += rows) {
      const auto batch = sequences.subspan(at, std::min(rows, to - at)),
                 padded = to_share ? sequences.subspan(from, to - from) : batch;
      const double tokens = static_cast<double>(batch.size()) *
                            static_cast<double>(*std::max_element(padded.begin(), padded.end()));
      const std::size_t round = (at - from) / rows;
      if (round == rounds.size()) rounds.push_back(0);
      rounds[round] = std::max(rounds[round], tokens);
    }
  }
  return rounds;
}

Updates in_shares(const Grpo& grpo, std::span<const std::int64_t> sequences, std::size_t learners) {
  Updates result;
  const auto count = std::min(static_cast<std::size_t>(grpo.mini_batches),
                              std::max<std::size_t>(1, sequences.size() / learners));
  for (std::size_t k = 0; k < count; ++k) {
    const std::size_t from = part_begin(sequences.size(), k, count);
    const std::size_t to = part_begin(sequences.size(), k + 1, count);
    if (from == to) continue;
    const auto part = sequences.subspan(from, to - from);
    const auto rows =
        static_cast<std::size_t>(std::max<std::int64_t>(1, grpo.pack_length / grpo.model_length()));
    const bool to_share = grpo.batching == Batching::padded;
    result.rounds.push_back(
        to_share || grpo.batching == Batching::rows ? padded_round(part, rows, learners, to_share)
        : grpo.pack_rows > 0 ? counted_round(part, grpo.pack_rows, grpo.pack_length, learners)
                             : shared_round(part, grpo.pack_length, learners));
    result.micro_batches += static_cast<double>(result.rounds.back().size() * learners);
  }
  for (const std::int64_t tokens : sequences) result.tokens += static_cast<double>(tokens);
  return result;
}

}  // namespace

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

std::int64_t longest_rows(const Grpo& grpo) {
  constexpr std::int64_t most_draws = 1 << 16;
  const std::int64_t steps = grpo.warmup_steps() + grpo.measured_steps;
  const std::int64_t draws = std::min(grpo.prompts * grpo.samples * steps, most_draws);
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(draws));
  std::int64_t tokens = 0, longest = 0;
  for (std::int64_t i = 0; i < draws; ++i) {
    std::int64_t& length = lengths[static_cast<std::size_t>(i)];
    length =
        grpo.prompt_tokens + response_tokens(grpo, static_cast<std::uint64_t>(i / grpo.samples),
                                             static_cast<std::uint64_t>(i % grpo.samples));
    tokens += length;
    if (i >= grpo.pack_rows) tokens -= lengths[static_cast<std::size_t>(i - grpo.pack_rows)];
    longest = std::max(longest, tokens);
  }
  return longest;
}

Updates updates_of(const Grpo& grpo, std::span<const std::int64_t> sequences,
                   std::size_t learners) {
  return grpo.batching == Batching::packs ? in_packs(grpo, sequences, learners)
                                          : in_shares(grpo, sequences, learners);
}

}  // namespace stepsim
