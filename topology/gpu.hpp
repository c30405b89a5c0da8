// One accelerator: what it can do at best, and what it reaches.
#pragma once

#include <optional>
#include <string>

#include "sim/config.hpp"

namespace stepsim {

struct Gpu {
  std::string name;
  std::string title;
  std::string vendor;
  struct Memory {
    Constant<Bytes> capacity;            // as sold
    Constant<Bytes> usable;              // beside a framework's context
    Constant<Bytes> context;             // of a framework's process, outside of that
    Constant<Bytes> library;             // of it what libraries take past the framework's allocator
    Constant<BytesPerSecond> bandwidth;  // nominal
    Constant<BytesPerSecond> stream;     // reached by a triad
  } memory;
  struct Peak {
    Constant<FlopsPerSecond> bf16;
    Constant<FlopsPerSecond> fp16;
    Constant<FlopsPerSecond> fp32;
    std::optional<Constant<FlopsPerSecond>> fp8;
    std::optional<Constant<FlopsPerSecond>> tf32;
  } peak;
  struct Gemm {  // time = start + max(flops / rate, bytes / bandwidth)
    Constant<Seconds> start;
    Constant<FlopsPerSecond> rate;
    Constant<BytesPerSecond> bandwidth;
    Constant<Ratio> sustained;   // what clocks keep of it over a long run
    Constant<Ratio> fill;        // depth of a product that costs as much as filling a tile
    Constant<Ratio> small_tile;  // of the rate, with tiles of at most 128 x 128
  } gemm;
  struct Attention {  // the flash kernel that stacks use, causal, head dimension 128
    Constant<FlopsPerSecond> forward;
    Constant<FlopsPerSecond> backward;
    struct Rates {
      Constant<FlopsPerSecond> forward;
      Constant<FlopsPerSecond> backward;
    };
    std::optional<Rates> later;       // of kernels written for this generation, where there are any
    Constant<Ratio> length_overhead;  // tokens of a causal row that a row more costs
    Constant<Ratio> head_overhead;    // width of a head that the scores of a key cost beside it
  } attention;
  struct Elementwise {
    Constant<Seconds> start;
    Constant<BytesPerSecond> bandwidth;
  } elementwise;
  struct Interference {  // while a collective and compute run on this GPU at once
    Constant<Ratio> compute;
    Constant<Ratio> collective;
  } interference;
  struct HostLaunch {
    Constant<Seconds> eager_op;
    Constant<Seconds> launch;
  } host_launch;
  int units = 0;  // streaming multiprocessors or compute units; 0: products come in no waves
  Constant<Watts> power;
};

Gpu read_gpu(const Table& table);

}  // namespace stepsim
