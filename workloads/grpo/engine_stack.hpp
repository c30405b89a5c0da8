// An inference engine is data: what its kernels reach, how it schedules, what its host thread
// spends, what it keeps.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/catalog.hpp"
#include "topology/gpu.hpp"
#include "workloads/strategy/stack.hpp"

namespace stepsim {

// This says how often the cache is read when prompts are in the batch, by attention kernels that
// were written for another generation of GPUs.
enum class MixedReads : std::uint8_t { shared, per_query_head };
inline constexpr std::array<std::string_view, 2> mixed_reads_names{"shared", "per_query_head"};

// mixed: running sequences use the step's tokens first, prompts fill it up; prompts_first: a step
// has prompts or answers; whole_batches: all that was given at once is one batch of padded rows,
// which goes on until the last of them is done.
enum class StepOrder : std::uint8_t { mixed, prompts_first, whole_batches };
inline constexpr auto step_order_names = words_through<StepOrder::whole_batches>();

// This says where states of layers without attention are. pages: in blocks of the cache, each of as
// many layers as the rarer kind has; a block holds so many tokens that keys and values of a layer
// need as much as a state. rows: in as many blocks as their bytes need. pool: in memory of their
// own, a share of the cache's.
enum class StatePlace : std::uint8_t { pages, rows, pool };
inline constexpr std::array<std::string_view, 3> state_place_names{"pages", "rows", "pool"};

struct EngineStack {
  std::string name;
  std::string title;
  struct ExpertRate {
    double tokens = 0;  // of one expert
    Constant<Ratio> share;
  };
  struct Kernels {
    Constant<Ratio> weights;          // share of the GPU's GEMM bandwidth
    Constant<Ratio> flops;            // share of its sustained GEMM rate
    Constant<Ratio> fp8;              // of what the peaks promise of products in 8 bits
    Constant<Ratio> blend;            // p of (memory^p + arithmetic^p)^(1/p)
    Constant<Ratio> cache;            // share of the stream rate when keys and values are read
    Constant<Seconds> small;          // norms, rotation, activation of one dense layer
    Constant<Seconds> small_experts;  // more of it: the choice of experts, their order, their sum
    Constant<Seconds> small_latent;   // more of it: vectors split, joined and turned around
    std::vector<ExpertRate> experts;  // share of the GEMM rate of products of experts
    std::vector<ExpertRate> experts_later;  // on GPUs with kernels of their generation
  } kernels;
  MixedReads mixed_reads = MixedReads::shared;
  // If this is set, each GPU has, in models with experts, the cache of sequences of its own, not of
  // heads of all.
  bool attention_by_sequence = false;
  // If this is set, keys and values have 8 bits where weights have, unless somebody says otherwise.
  bool cache_follows_weights = false;
  // If this is set, the engine is the learner itself, with the weights that it trains: nothing is
  // sent, and nothing falls asleep.
  bool own_weights = false;
  // Keys and values of each step are put behind a copy of the others'.
  bool copies_cache = false;
  // Keys and values are copied for each of the query heads that share them, every step.
  bool repeats_heads = false;
  // Steps that published loads took over those that are simulated. The value is one; what is known
  // is its range.
  Constant<Ratio> unexplained{{1}, {1}, {1}, Grade::guess, ""};
  struct Reduction {
    Constant<Seconds> start;  // of the engine's own all-reduce
    Constant<Bytes> largest;  // what is beyond goes to the library
  } reduction;
  struct Graphs {
    Constant<Ratio> step;     // batches are padded to a multiple of it
    Constant<Ratio> largest;  // tokens; larger ones are not padded
    // If these are listed, only steps without prompts are padded, and those to one of these.
    std::vector<double> answers{};
  } graphs;
  struct Eager {
    Constant<Ratio> kernels;      // of a dense layer, launched one by one
    Constant<Ratio> experts;      // more of them in a layer with experts
    Constant<Ratio> latent;       // and in one with latent attention
    Constant<Seconds> python;     // around each of them
    Constant<Seconds> reduction;  // a call of the engine's all-reduce
  } eager;
  struct Limits {
    std::int64_t tokens = 0, sequences = 0;  // of a step
    double share = 0.9;                      // of a GPU's memory, for weights and cache
  };
  struct Served : Limits {    // what its server takes by default
    double memory = 0;        // bytes that a GPU has at least
    std::string not_on = "";  // GPUs whose name begins so are left out
  };
  struct Scheduler {
    StepOrder order = StepOrder::mixed;
    bool reserves_answer = false;     // a prompt is let in when its whole answer has room as well
    double reserves_first = 0;        // beside that share of what running answers may still need
    double reserves_last = 0;         // to which it falls
    std::int64_t reserves_steps = 0;  // in so many steps
    std::vector<Served> served;       // the first that applies
  } scheduler;
  struct Host {
    Constant<Seconds> iteration;  // scheduling, sampling, bookkeeping of one iteration
    Constant<Seconds> sequence;   // of it for each running sequence
    Constant<Seconds> nodes;      // more of it where an engine spans several
    Constant<Seconds> request;    // of a chat request in the HTTP server, one after the other
    Constant<Ratio> pass{};  // own weights: of what the learners' code spends on a forward pass
  } host;
  struct Memory {
    Constant<Bytes> overhead;  // of each GPU's process, beside weights and cache
    Constant<Ratio> block;     // tokens that are handed out together
    bool of_free = false;      // the cache gets a share of what is left, not what a share leaves
    // If this is set, the cache's size is found by running the largest batch first: what that takes
    // is kept.
    bool profiled = false;
    Constant<Bytes> communication{};  // more of `overhead` where an engine has several GPUs
    Constant<Bytes> logits{};         // of each sequence and entry of the vocabulary, in that batch
    Constant<Bytes> graphs{};         // that are counted with it
  } memory;
  std::vector<double> benchmark_graphs;  // that its own benchmark asks for; empty: the usual ones
  struct Mixers {                        // layers without attention
    Constant<Seconds> small;    // more than `small` of a dense layer: convolution, gates, state
    Constant<Ratio> kernels{};  // more than `kernels` of a dense layer, launched one by one
    StatePlace states = StatePlace::rows;
    Constant<Ratio> share{};  // of the cache's memory that a pool has
    Constant<Ratio> found{};  // states of a sequence in each layer where prefixes are found again
    // The rarer kind of layers is padded up to so many times as many layers of the other kind,
    // where states are in pages.
    Constant<Ratio> padded{};
    bool wide = false;  // all in 32 bits, whatever models say
    // Over prompts kernels are those of training: workloads/mixers.yaml, operators.yaml.
    Stack::Mixers rates;
    Operators operators;
  } mixers;
  struct Sync {
    Constant<Seconds> call;           // one remote call, whatever the number of engines
    Constant<Seconds> engine;         // of it for each engine that is called
    Constant<Seconds> busy;           // more of it while engines have work
    Constant<Seconds> send;           // of each tensor: clone, copy in, bookkeeping
    Constant<Seconds> gather;         // of each tensor that sharded learners gather
    Constant<Seconds> pause;          // put to sleep and woken
    Constant<BytesPerSecond> stream;  // one TCP stream of Gloo
    Constant<Bytes> bucket;           // of tensors that are sent together
    Constant<Seconds> convert;        // of each tensor: out of learners' shards, under its name
    Constant<Seconds> load;           // of each tensor in the engine: whose it is, copy in
    Constant<Seconds> handle;         // a bucket's memory handles, exported and opened
    Constant<BytesPerSecond> write;   // a checkpoint, by one process
    Constant<BytesPerSecond> read;    // of it by an engine
  } sync;
  struct Sleep {
    std::int64_t level = 1;         // 1: weights wait in host memory; 2: they are given up
    Constant<Seconds> fixed;        // calls, garbage collected, caches emptied: once a turn
    Constant<BytesPerSecond> map;   // memory given back, and made and mapped again
    Constant<BytesPerSecond> page;  // into pages of host memory that were not touched before
  } sleep;
  struct Start {
    Constant<BytesPerSecond> load;  // weights from disk, one engine
    Constant<Seconds> fixed;        // processes, compiling, profiling, graphs
    Constant<Seconds> pairs;        // once, of several GPUs: which of them reach each other
    Constant<Seconds> rank;         // each further GPU of an engine
  } start;

  // Returns what the stack's server takes on a GPU.
  Limits served_on(const Gpu& gpu) const;
};

inline constexpr Shelf engine_shelf{"workloads/engines", "engine"};
EngineStack read_engine_stack(const Table& table);

}  // namespace stepsim
