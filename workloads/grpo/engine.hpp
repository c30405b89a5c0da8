// This is one inference engine: continuous batching over a cache of fixed size, step by step as
// vLLM's scheduler does it. Each step has a budget of tokens that running sequences use first and
// prompts fill up. Steps in which nothing is scheduled anew are taken together as a block.
#pragma once

#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <utility>
#include <vector>

#include "workloads/grpo/block_pool.hpp"
#include "workloads/grpo/decode.hpp"

namespace stepsim {

// Cache that is kept free for answers when a prompt is let in: all of its own and a share of what
// the running ones may still need. The share falls with every step that decodes.
struct Reservation {
  bool own = false;
  double first = 0, last = 0;  // share
  double steps = 0;            // from the first to the last

  bool any() const { return own || first > 0; }
};

struct EngineLimits {
  // GPUs that have sequences of their own: what follows is of each. A step ends with the last.
  std::size_t ranks = 1;
  double cache = 0;             // tokens
  std::int64_t sequences = 0;   // in one batch
  std::int64_t admitted = 0;    // samples that the engine takes off the queue
  bool prefix_caching = false;  // what was computed once is found again until it is overwritten
  double block = 16;            // tokens of the cache that are handed out together
  std::int64_t states = 0;      // blocks that a sequence has beside those of its tokens
  std::int64_t tokens = 2048;   // of one step, prompts and answers together
  bool prompts_first = false;   // a step has prompts or answers, and prompts go first
  Reservation reserve{};
  double speed = 1;                                                  // of the slowest of its GPUs
  std::int64_t together = std::numeric_limits<std::int64_t>::max();  // steps of a block at most
};
// Returns what an engine takes at most: from its file, or as a job says.
EngineLimits limits_of(const DecodeModel& decode, const EngineStack& stack, const Grpo& grpo);

struct Sequence {
  std::uint32_t group = 0;
  std::uint32_t sample = 0;
  std::int64_t prompt = 0;
  std::int64_t target = 0;  // tokens to generate
  std::int64_t asked = 0;   // most tokens that it may have; less than the target: the target
  std::int64_t kept = 0;    // of a padded row: tokens of its own; 0: all
  std::int64_t done = 0;
  std::int64_t first_version = 0;  // of the weights, when its first token was made
  bool mixed = false;              // weights changed on the way
  double first_token = 0;          // when it was made
};

// The steps of a block ran with one and the same batch.
struct StepBlock {
  double start = 0, end = 0;
  double sequences = 0;  // that are running
  std::int64_t tokens = 0;
  double prefilled = 0;  // tokens of prompts, and of what had to be computed again
};

struct EngineTotals {
  double busy = 0;              // s
  double sequence_seconds = 0;  // running sequences over time
  double held_seconds = 0;      // running and waiting ones
  std::int64_t tokens = 0;
  std::int64_t preemptions = 0;
  double given_up = 0;     // tokens of answers that were not done
  double made_anew = 0;    // tokens of answers that were begun again
  double prefilled = 0;    // tokens
  double recomputed = 0;   // of them a second time
  double most_cached = 0;  // tokens
  std::uint64_t blocks = 0;
};

class Engine {
 public:
  Engine(const DecodeModel& decode, const EngineLimits& limits);

  bool room_for(std::int64_t samples) const {
    return !down_ && (held_ == 0 || held_ + samples <= limits_.admitted);
  }
  bool idle() const { return held_ == 0; }
  std::int64_t held() const { return held_; }
  // When the current block ends; infinity: nothing runs.
  double next() const { return running_block_ ? block_.end : never; }
  // Returns the seconds of a step of the current block; 0: nothing runs.
  double iteration() const;
  // Steps until everything is done that it has now, if nothing waited for a place.
  double iterations_left() const;

  void give(double now, const std::vector<Sequence>& group);
  // Ends the block at `now`, which is next(): what finished with it.
  std::vector<Sequence> finish_block(double now);
  void pause(double now);  // after the step under way
  void resume(double now, std::int64_t version);
  // Stops behind the step under way. What is not done leaves the cache: it comes back when the
  // engine resumes, computed again or begun anew, or is given up.
  void put_aside(double now);
  void begin_anew(double now);
  void give_up(double now);
  // Fails in the middle of a step. What it had is lost: these have to be begun anew elsewhere.
  std::vector<Sequence> fail(double now);
  void start_again(double now, std::int64_t version);
  // Limits the engine, while weights arrive tensor by tensor, to one step per this time. 0: no
  // limit.
  void pace(double now, double seconds);
  void set_version(std::int64_t version);

  const EngineTotals& totals() const { return totals_; }
  const std::vector<StepBlock>& log() const { return log_; }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();

  struct Held {
    Sequence sequence;
    std::int64_t reached = 0;   // tokens computed before it had to leave
    std::int64_t computed = 0;  // tokens in the cache
    std::int64_t shared = 0;    // blocks held together with its group
    std::int64_t own = 0;       // blocks of its own
    std::int64_t planned = 0;   // tokens of the step under way
    std::size_t rank = 0;       // who has it
    bool provides = false;      // the group's prompt is computed by it

    std::int64_t context() const { return sequence.prompt + sequence.done; }
    std::int64_t left() const { return context() - computed; }
    // Its step makes a token.
    bool samples() const { return planned > 0 && planned == left(); }
  };
  struct Prompt {  // of a group, in the cache
    std::int64_t sharers = 0, blocks = 0;
    std::int64_t found = 0;  // of these, by others
  };
  // This is what a sequence would find in the cache, and from where it has to go on.
  struct Found {
    std::int64_t live = 0, kept = 0, own = 0;  // blocks: held by its group, left over of it, of it
    std::int64_t start = 0;                    // tokens
  };

  void count_held(double now);
  void start_block(double now);
  void cut(double now);
  void schedule();
  void schedule_running();
  void lower_share(std::int64_t steps);
  void admit();
  bool admit_next();
  std::size_t rank_with_room() const;
  bool reserved(const Held& next) const;
  Found look_up(const Held& next) const;
  bool has_blocks_for(const Held& held, std::int64_t tokens) const;
  bool grow(Held& held, std::int64_t tokens);
  bool take_blocks(Held& held, std::int64_t tokens);
  void show_prompt(const Held& held, std::int64_t tokens);
  void plan(Held& held, std::int64_t tokens);
  void plan_prompt(const Held& held);
  double together(double StepBatch::*part) const;
  void leave(const Held& held, bool comes_back);
  void preempt(std::size_t place);
  std::size_t last_of(std::size_t rank) const;
  enum class Aside : std::uint8_t { kept, anew, given_up };
  void stop(double now, Aside aside);
  void empty();
  void forget_cache();
  void lose(Sequence& sequence);
  bool block_may_go_on() const;
  std::int64_t steps_together() const;
  std::int64_t most_steps(std::size_t rank, std::int64_t most) const;
  bool surely_fit(std::int64_t steps) const;
  std::int64_t blocks_of(std::int64_t tokens) const;
  std::int64_t shareable(const Sequence& sequence) const;
  double seconds_of(std::int64_t steps) const;
  double steps_time(std::int64_t steps) const;  // at full speed
  void advance(Held& held);

  const DecodeModel* decode_;
  EngineLimits limits_;
  std::int64_t block_tokens_ = 16;
  std::vector<BlockPool> pools_;  // [rank]
  std::vector<Held> running_;     // in the order of admission
  std::deque<Held> waiting_;
  std::map<std::pair<std::size_t, std::uint32_t>, Prompt> prompts_;  // [rank and group]
  std::int64_t held_ = 0;                                            // samples running or waiting
  double counted_ = 0;  // until when held_seconds is known
  std::int64_t version_ = 0;
  double share_ = 0;  // of what running sequences may still need, see Reservation
  double pace_ = 0, next_pace_ = 0;
  bool paused_ = false, running_block_ = false;
  bool down_ = false;
  bool empties_ = false;              // when the step under way is done
  Aside aside_ = Aside::kept;         // what is then of those that were not
  bool preempted_ = false;            // in the step under way
  std::vector<std::int64_t> budget_;  // [rank] tokens of the step that are left
  std::vector<StepBatch> batches_;    // [rank] of the step
  std::int64_t nearest_ = 0;          // steps until the first of those that decode is done
  std::vector<Held> done_;            // with the block that ended last
  StepBlock block_;
  std::int64_t iterations_ = 0;
  EngineTotals totals_;
  std::vector<StepBlock> log_;
};

}  // namespace stepsim
