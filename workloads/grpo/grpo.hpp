// Group-relative policy optimisation is a job: engines generate, learners train, and weights go
// from these to those. Field names follow what they mean, keys in files follow open-instruct.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/base/member_words.hpp"
#include "sim/base/units.hpp"
#include "workloads/strategy/failures.hpp"

namespace stepsim {

// This says how weights reach the engines. v1: a call to every engine for each tensor, served
// between two decode iterations. v2: one call for all tensors, then broadcasts; the engines stand
// still during those. v3: the engines are put to sleep first and woken afterwards. buckets: tensors
// are packed until a bucket is full, and each bucket is one call and one broadcast; colocated, one
// handle of its memory. host_buckets: each learner puts a part of the model into pinned host
// memory; buckets of it are copied up by all learners at once and broadcast one after the other,
// while engines load the one before. files: the first learner writes a checkpoint, which engines
// read. Engines stand still meanwhile.
enum class SyncProtocol : std::uint8_t { v1, v2, v3, buckets, host_buckets, files };
inline constexpr auto sync_protocol_names = words_through<SyncProtocol::files>();

enum class SyncBackend : std::uint8_t { nccl, gloo };
inline constexpr std::array<std::string_view, 2> sync_backend_names{"nccl", "gloo"};

// pipelined: a chain from engine to engine; flat: the root sends a copy to each.
enum class BroadcastShape : std::uint8_t { pipelined, flat };
inline constexpr std::array<std::string_view, 2> broadcast_shape_names{"pipelined", "flat"};

// colocated: every GPU learns and generates in turn.
enum class GrpoLayout : std::uint8_t { separate, colocated };
inline constexpr std::array<std::string_view, 2> grpo_layout_names{"separate", "colocated"};

// Learners' states wait in this memory. Pinned memory is copied to as fast as the link goes; every
// page of pageable memory is new, and one thread of the process fills it.
enum class ParkMemory : std::uint8_t { pinned, pageable };
inline constexpr std::array<std::string_view, 2> park_memory_names{"pinned", "pageable"};

// packs: responses fill packs in the order of their arrival, and packs are dealt to the learners,
// as many to each; the others are dropped. shares: each learner takes as many responses of every
// update, whatever their length, and nothing is dropped. rows: the same, and a micro-batch is as
// many rows as fit a pack when all have full length, each padded to the longest of them. padded:
// the same, to the longest of all rows that the learner takes of the update.
enum class Batching : std::uint8_t { packs, shares, rows, padded };
inline constexpr auto batching_names = words_through<Batching::padded>();

enum class LengthKind : std::uint8_t { fixed, lognormal, empirical };
inline constexpr auto length_kind_names = words_through<LengthKind::empirical>();

// This says in how many bits an engine keeps its weights, or keys and values. fp8 weights are
// multiplied in 8 bits where the GPU can.
enum class EngineBits : std::uint8_t { half, fp8 };
inline constexpr std::array<std::string_view, 2> engine_bits_names{"bf16", "fp8"};

// These are the tokens of a response. All are cut off at the job's response_length.
struct ResponseLengths {
  LengthKind kind = LengthKind::lognormal;
  double mean = 0;                 // of the distribution before it is cut
  bool behind_limit = false;       // files say the mean of what the limit leaves:
  double mean_behind = 0;          // this one, if they do
  double sigma = 0.9;              // of the logarithm
  std::vector<std::int64_t> list;  // empirical: drawn from with equal odds
  std::uint64_t seed = 1;
};

// GPUs of models that are neither on the learners' GPUs nor on engines'. None: it is on the GPUs of
// whom it stands beside, the critic and the reference model beside the policy, the reward model
// beside the critic.
struct OwnGpus {
  std::uint32_t critic = 0, reference = 0, reward = 0;

  std::uint32_t all() const { return critic + reference + reward; }
};

struct Grpo {
  GrpoLayout layout = GrpoLayout::separate;
  SyncProtocol protocol = SyncProtocol::v3;
  SyncBackend backend = SyncBackend::nccl;
  BroadcastShape broadcast = BroadcastShape::pipelined;
  Batching batching = Batching::packs;
  bool inflight_updates = true;    // weights change in the middle of a response
  bool gather_whole_model = true;  // on every learner before the first tensor is sent
  bool drop_stale = true;          // results older than async_steps are not trained on
  bool enforce_eager = false;
  bool prefix_caching = false;
  bool park_learners = false;  // colocated: states wait in host memory while engines generate
  ParkMemory park_memory = ParkMemory::pinned;
  // This says what colocated engines do while GPUs learn. 0: they stay awake, and keep their
  // memory; 1: weights wait in host memory; 2: they are given up.
  std::optional<std::int64_t> sleep_level;  // nothing: what the engine's file says
  bool filter_zero_std = true;
  bool active_sampling = false;  // fill up until `prompts` groups have a signal
  bool reference_model = true;
  bool park_reference = false;   // waits in host memory, and is copied in once for every batch
  bool swap_reference = false;   // in the place of the policy, which is copied out and in again
  bool critic = false;           // PPO: a model of the policy's size finds the value of each token
  bool reward_model = false;     // of that size, too, scores responses
  bool engine_logprobs = false;  // else the policy runs once more when it is updated several times
  bool always_scores = false;    // and also before a single update

  std::uint32_t tensor_parallel = 1;
  EngineBits weights = EngineBits::half, cache = EngineBits::half;
  EngineBits sent = EngineBits::half;    // weights on their way to the engines
  bool send_adapters = false;            // these alone: engines have what they stand beside
  std::optional<std::uint32_t> engines;  // nothing: as many as find room
  std::vector<std::uint32_t> learners;   // on each node
  OwnGpus own;
  double memory_utilization = 0.9;
  std::int64_t admitted_samples =
      0;  // of one engine at a time; 0: what the engine says it can hold
  std::int64_t batched_sequences = 256;
  std::int64_t batched_tokens = 2048;          // of a step
  std::optional<Seconds> per_tensor_overhead;  // instead of what the protocol's parts add up to
  std::optional<Bytes> sync_bucket;            // instead of what the engine's file says
  bool sync_aborts = false;      // engines begin anew what is under way when weights come
  Seconds sync_interval{};       // from the end of a sync to the next one, at least
  std::int64_t async_steps = 8;  // steps that generation may be ahead; 0: in turn

  // A learner hands so many sequences to an engine at a time. It waits for them, has them scored,
  // and hands over the next ones; an engine takes such calls one after the other. 0: engines get
  // all.
  std::int64_t rollout_at_once = 0;
  // Learners that generate themselves call so many times for the answers of a step, each for a
  // share of the call's rows, and wait for each other behind every call.
  std::int64_t generate_calls = 1;

  std::int64_t prompts = 16;  // U: groups of a step
  std::int64_t samples = 4;   // n: responses of a group
  std::int64_t prompt_limit = 256;
  std::int64_t prompt_tokens = 256;  // of every prompt
  std::int64_t response_limit = 256;
  std::int64_t pack_length = 512;  // most tokens of a micro-batch
  std::int64_t pack_rows = 0;      // shares: most responses of a micro-batch; 0: as many as fit
  ResponseLengths lengths;
  Seconds reward_latency{};
  Seconds verify_time{};       // of a response, when all of a step's are there
  std::int64_t verifiers = 1;  // processes that share them
  // If engines and learners take turns, so many groups are begun for each that is trained on. When
  // there are enough engines stop. With partial rollouts what is not done goes on in the next step,
  // without them it is given up.
  double oversampling = 1;
  bool partial_rollouts = false;
  // If engines and learners take turns, this many groups are a round, all of which are waited for.
  // Rounds follow each other until `prompts` groups have a signal; those above that are thrown
  // away. 0: there are no rounds.
  std::int64_t round_prompts = 0;
  double zero_std_fraction = 0;  // groups without a signal: all rewards equal

  std::int64_t mini_batches = 1;  // optimizer steps of a pass over the batch
  std::int64_t epochs = 1;
  std::int64_t hpz = 1;  // learners that share a second copy of the parameters
  std::int64_t measured_steps = 12;
  double total_episodes = 0;
  Failures failures;
  Seconds engine_mtbf{};  // of an engine that fails alone, and the run goes on without it
  std::optional<Seconds> engine_start;  // until it is back; nothing: what engines take to start

  bool scores() const { return (always_scores || mini_batches > 1) && !engine_logprobs; }
  double responses() const { return static_cast<double>(prompts * samples); }
  double responses_of_call() const { return responses() / static_cast<double>(generate_calls); }
  bool stays_awake() const { return layout == GrpoLayout::colocated && sleep_level == 0; }
  std::int64_t model_length() const { return prompt_limit + response_limit; }
  // Steps that the oldest weights in a response may lie behind the step that trains on it; nothing:
  // however old it is. In turn, weights change when nothing is under way.
  std::optional<std::int64_t> staleness_bound() const {
    if (async_steps == 0) return partial_rollouts ? std::nullopt : std::optional(std::int64_t{0});
    return drop_stale ? std::optional(async_steps) : std::nullopt;
  }
  // Before anything is in a steady state.
  std::int64_t warmup_steps() const { return async_steps + 2; }
};

}  // namespace stepsim
