// Steps of a GRPO job are played over time: prompts, engines, rewards, batches, learners and weight
// syncs are actors that wait for each other. What runs when depends on how long things take, so the
// order is found here, with the costs of a training step and of a sync as replays gave them.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "workloads/grpo/engine.hpp"
#include "workloads/grpo/grpo.hpp"
#include "workloads/grpo/sync.hpp"

namespace stepsim {

// Returns the time of one optimizer step over micro-batches of so many tokens on each learner.
using TrainingCost = std::function<Seconds(std::span<const double> tokens)>;

// A scorer reads rows before learners train on them, a call of an engine at a time: the policy, the
// critic, a frozen model. Learners share out its GPUs; 0: it is on their own.
struct Scorer {
  std::size_t servers = 0;
  std::function<Seconds(double tokens)> pass;
};

// Engines may fail alone: a run goes on without them until they are back.
struct EngineFailures {
  double mtbf = 0;  // of one, while it is up; 0: none fails
  double notice = 0, start = 0;
  std::uint64_t seed = 1;
};

struct GrpoInput {
  const Grpo& grpo;
  const DecodeModel& decode;
  EngineLimits limits;
  std::size_t engines = 0;
  std::vector<double> speeds{};  // [engine]; none: all are as fast
  std::size_t learners = 0;      // that train on packs of their own
  TrainingCost training;
  SyncCost sync;
  std::vector<Scorer> scorers{};    // where a part of a step is handed over at a time
  TrainingCost beside{};            // of a critic on GPUs of its own, while the policy is trained
  std::size_t beside_learners = 0;  // of it
  bool whole_batches = false;       // rows of a call are padded, and end together
  bool in_step = false;             // those of all learners
  EngineFailures failures{};
  Seconds reference{};  // until a parked reference model is there, before a batch is trained on
};

struct StepRecord {
  double start = 0;      // the batch was taken
  double wait = 0;       // for it, since the last sync was over
  double rewards = 0;    // of all its responses are found; ahead, while nothing is trained
  double reference = 0;  // a parked reference model comes
  double train = 0;
  double beside = 0;  // a critic on GPUs of its own ends later than the sync
  double late = 0;    // from its end to a sync that was not to follow the last one so soon
  double queued = 0;  // such a sync waits for this step, which is under way, and so do prompts
  double drain = 0;   // engines finished what they had
  double gather = 0, send = 0, calls = 0, pause = 0;  // of the sync behind it
  double end = 0;
  double responses = 0, tokens = 0, dropped_tokens = 0;  // trained on; left over by packing
  double packs = 0, longest_pack = 0;
  double staleness = 0;  // mean, in steps
  double most_stale = 0;
  double mixed = 0;      // share of responses whose weights changed on the way
  double truncated = 0;  // share of responses cut at the limit

  double sync() const { return drain + gather + send + calls + pause; }
};

struct SyncSpan {
  double start = 0, sending = 0, end = 0;
};

struct GrpoRun {
  std::vector<StepRecord> steps;
  std::vector<Engine> engines;  // as they were at the end, with their logs
  SyncSpan first_sync;
  double end = 0;
  std::size_t events = 0;
  double generated = 0;  // tokens of finished responses
  double trained = 0;    // of them packed and trained on
  double left_over = 0;  // by packing
  double filtered = 0;   // in groups without a signal
  double stale = 0;      // in groups that were too old
  double given_up = 0;   // in groups that were not done when there were enough, or were too many
  double waiting = 0;    // finished and not yet used when the last step ended
  double stale_groups = 0, filtered_groups = 0;
  std::int64_t engine_failures = 0;
  std::int64_t most_prompts = 0;  // in the queue or on engines at one time
  std::int64_t most_results = 0;  // in the queue of results
};

// Throws std::logic_error when nothing can go on, which no input may cause.
GrpoRun run_grpo(const GrpoInput& input);

}  // namespace stepsim
