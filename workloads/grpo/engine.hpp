// One inference engine: continuous batching over a cache of fixed size. It is advanced in blocks of
// iterations during which nothing joins or leaves the batch.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <vector>

#include "workloads/grpo/decode.hpp"

namespace stepsim {

struct EngineLimits {
  double cache = 0;             // tokens
  std::int64_t sequences = 0;   // in one batch
  std::int64_t admitted = 0;    // samples that the engine takes off the queue
  bool prefix_caching = false;  // samples of a group share the prompt's cache
  double block = 16;            // tokens of the cache that are handed out together
  double watermark = 0;         // share of the cache kept free when a sequence is let in
};

struct Sequence {
  std::uint32_t group = 0;
  std::uint32_t sample = 0;
  std::int64_t prompt = 0;
  std::int64_t target = 0;  // tokens to generate
  std::int64_t done = 0;
  std::int64_t first_version = 0;  // of the weights, when its first token was made
  bool mixed = false;              // weights changed on the way
  double first_token = 0;          // when it was made
};

// Iterations that ran with one and the same batch.
struct Block {
  double start = 0, end = 0;
  double sequences = 0;
  std::int64_t tokens = 0;
  double prefilled = 0;  // tokens of prompts, and of what had to be computed again
  double pairs = 0;      // of them that attend to each other, in all layers
};

struct EngineTotals {
  double busy = 0;              // s
  double sequence_seconds = 0;  // running sequences over time
  std::int64_t tokens = 0;
  std::int64_t preemptions = 0;
  double recomputed = 0;   // tokens
  double most_cached = 0;  // tokens
  std::uint64_t blocks = 0;
};

class Engine {
 public:
  Engine(const DecodeModel& decode, const EngineLimits& limits)
      : decode_(&decode), limits_(limits) {}

  bool room_for(std::int64_t samples) const {
    return held_ == 0 || held_ + samples <= limits_.admitted;
  }
  bool idle() const { return held_ == 0; }
  std::int64_t held() const { return held_; }
  // When the current block ends; infinity: nothing runs.
  double next() const { return running_block_ ? block_.end : never; }
  // Seconds of one iteration of the batch as it is; 0: nothing runs.
  double iteration() const;
  // Iterations until everything is done that it has now.
  double iterations_left() const;

  void give(double now, const std::vector<Sequence>& group);
  // Ends the block at `now`, which is next(): what finished with it.
  std::vector<Sequence> finish_block(double now);
  void pause(double now);  // after the iteration under way
  void resume(double now, std::int64_t version);
  // While weights arrive tensor by tensor: at most one iteration per this time. 0: no limit.
  void pace(double now, double seconds);
  void set_version(std::int64_t version);

  const EngineTotals& totals() const { return totals_; }
  const std::vector<Block>& log() const { return log_; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  void start_block(double now);
  void cut(double now);
  void admit();
  bool fits(const Sequence& sequence) const;
  double charge(const Sequence& sequence) const;  // tokens of the cache for it alone
  void enter(const Sequence& sequence);
  void leave(const Sequence& sequence);
  void preempt_last();
  double prompt_share(const Sequence& sequence) const;
  std::int64_t iterations_that_fit() const;
  double seconds_of(std::int64_t iterations) const;

  const DecodeModel* decode_;
  EngineLimits limits_;
  std::vector<Sequence> running_;  // in the order of admission
  std::deque<Sequence> waiting_;
  std::map<std::uint32_t, std::int64_t> sharers_;  // of a group's prompt, in the cache
  std::int64_t held_ = 0;                          // samples running or waiting
  std::int64_t version_ = 0;
  double cached_ = 0;  // tokens of running sequences, each with its own prompt
  double stored_ = 0;  // tokens in the cache: shared prompts once
  double pace_ = 0, next_pace_ = 0;
  bool paused_ = false, full_ = false;
  bool running_block_ = false;
  Block block_;
  std::int64_t iterations_ = 0;
  EngineTotals totals_;
  std::vector<Block> log_;
};

}  // namespace stepsim
