// An inference engine as data: what its kernels reach, what its host thread spends, what it keeps.
#pragma once

#include <string>

#include "sim/base/config.hpp"

namespace stepsim {

struct EngineStack {
  std::string name;
  std::string title;
  struct Kernels {
    Constant<Ratio> weights;          // share of the GPU's GEMM bandwidth
    Constant<Ratio> flops;            // share of its sustained GEMM rate
    Constant<Ratio> blend;            // p of (memory^p + arithmetic^p)^(1/p)
    Constant<Ratio> cache;            // share of the stream rate when keys and values are read
    Constant<Seconds> small;          // norms, rotation, activation of one layer
    Constant<Ratio> eager_per_layer;  // kernels launched one by one without graphs
  } kernels;
  struct Host {
    Constant<Seconds> iteration;  // scheduling, sampling, bookkeeping of one iteration
    Constant<Seconds> sequence;   // of it for each running sequence
  } host;
  struct Memory {
    Constant<Bytes> overhead;   // of each GPU: activations, graphs, communication buffers
    Constant<Ratio> block;      // tokens that are handed out together
    Constant<Ratio> watermark;  // share of the cache kept free when a sequence is let in
  } memory;
  struct Sync {
    Constant<Seconds> call;           // one remote call, whatever the number of engines
    Constant<Seconds> engine;         // of it for each engine that is called
    Constant<Seconds> busy;           // more of it while engines have work
    Constant<Seconds> send;           // of each tensor: clone, copy in, bookkeeping
    Constant<Seconds> gather;         // of each tensor that sharded learners gather
    Constant<Seconds> pause;          // put to sleep and woken
    Constant<BytesPerSecond> stream;  // one TCP stream of Gloo
  } sync;
  struct Start {
    Constant<BytesPerSecond> load;  // weights from disk, one engine
    Constant<Seconds> fixed;        // processes, profiling, graphs
    Constant<Seconds> rank;         // each further GPU of an engine
  } start;
};

EngineStack read_engine_stack(const Table& table);

}  // namespace stepsim
