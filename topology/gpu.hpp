// A GPU is one accelerator: what it can do at best, and what it reaches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"

namespace stepsim {

// Types that a GPU's units multiply, sums in 32 bits. fp16 runs as bf16 does.
enum class ProductType : std::uint8_t { bf16, tf32, fp8, fp4, fp32 };
inline constexpr auto product_type_names = words_through<ProductType::fp32>();

// A tile is what one unit of a GPU works off of a matrix product at a time.
struct Tile {
  double rows = 0, width = 0;

  friend bool operator==(const Tile&, const Tile&) = default;
};
// Reads tiles that are written "256x128".
std::vector<Tile> read_tiles(const Table& table, std::string_view key);

struct Gpu {
  std::string name, title, vendor;
  struct Memory {
    Constant<Bytes> capacity;         // as sold
    Constant<Bytes> usable;           // beside a framework's context
    Constant<Bytes> context;          // of a framework's process, outside of that
    Constant<Bytes> library;          // of it what libraries take past the framework's allocator
    Constant<BytesPerSecond> stream;  // reached by a triad

    friend bool operator==(const Memory&, const Memory&) = default;
  } memory;
  struct Peak {
    Constant<FlopsPerSecond> bf16;
    Constant<FlopsPerSecond> tf32;  // products of 32-bit numbers: losses in fp32
    std::optional<Constant<FlopsPerSecond>> fp8;
    std::optional<Constant<FlopsPerSecond>> fp4;   // with scales of blocks, as are those of MXFP8
    std::optional<Constant<FlopsPerSecond>> fp32;  // of 32-bit numbers with all their bits

    // Returns nothing where there are no such units.
    std::optional<FlopsPerSecond> of(ProductType type) const;

    friend bool operator==(const Peak&, const Peak&) = default;
  } peak;
  struct Gemm {  // time = start + max(flops / rate, bytes / bandwidth)
    Constant<Seconds> start;
    Constant<FlopsPerSecond> rate;
    Constant<BytesPerSecond> bandwidth;
    Constant<Ratio> sustained;   // what clocks keep of it over a long run
    Constant<Ratio> fill;        // depth of a product that costs as much as filling a tile
    Constant<Ratio> small_tile;  // of the rate, with tiles of at most 128 x 128
    // This rate holds for products whose rows begin at no multiple of 16 bytes. None: it is as for
    // others.
    std::optional<Constant<FlopsPerSecond>> unaligned;
    // Kernels of many products that are not the library's own: their tiles, and how fast these get
    // their operands, which each tile reads anew through the caches.
    struct Grouped {
      std::vector<Tile> tiles;
      Constant<BytesPerSecond> operands;

      friend bool operator==(const Grouped&, const Grouped&) = default;
    };
    std::optional<Grouped> grouped;  // none: tiles of the library, whose operands never wait

    friend bool operator==(const Gemm&, const Gemm&) = default;
  } gemm;
  // The rates of flash kernels are those of 16 heads of 128 over 16384 tokens in causal rows of
  // 4096.
  struct Attention {
    struct Kernel {
      Constant<FlopsPerSecond> forward, backward;
      // This is the fixed cost of one causal row, in tokens.
      Constant<Ratio> forward_overhead, backward_overhead;
      Constant<Ratio> wide;  // rate of heads of 256, as a share of that of heads of 128
      std::optional<Constant<Ratio>> backward_tail;  // else that of all kernels

      friend bool operator==(const Kernel&, const Kernel&) = default;
    };
    Kernel flash;                   // the one that stacks use
    std::optional<Kernel> later;    // written for this generation, where there is one
    std::string later_name;         // where it is not what frameworks call FlashAttention-3
    Constant<Ratio> head_overhead;  // width of a head that the scores of a key cost beside it
    Constant<Ratio> tail;           // queries worth of work lost per SM to the tail
    struct Settling {
      Constant<Seconds> time;  // in which clocks fall under a kernel that keeps running
      Constant<Ratio> share;   // to so much of what they are for short ones

      friend bool operator==(const Settling&, const Settling&) = default;
    };
    std::optional<Settling> settling;  // none: they hold

    friend bool operator==(const Attention&, const Attention&) = default;
  } attention;
  struct Elementwise {
    Constant<Seconds> start;
    Constant<BytesPerSecond> bandwidth;

    // A cache that holds whole tensors hands on what the kernel before has left in it, faster than
    // memory does.
    struct Cache {
      Constant<Bytes> capacity;
      Constant<BytesPerSecond> bandwidth;
      Constant<Ratio> found;  // of what a kernel moves that fits

      friend bool operator==(const Cache&, const Cache&) = default;
    };
    std::optional<Cache> cache;

    friend bool operator==(const Elementwise&, const Elementwise&) = default;
  } elementwise;
  struct Interference {  // while a collective and compute run on this GPU at once
    Constant<Ratio> compute, collective;

    friend bool operator==(const Interference&, const Interference&) = default;
  } interference;
  struct HostLaunch {
    Constant<Seconds> eager_op;  // GRPO engines that run without CUDA graphs
    Constant<Ratio> queue;       // kernels that a stream takes before a launch blocks

    friend bool operator==(const HostLaunch&, const HostLaunch&) = default;
  } host_launch;
  int units = 0;  // streaming multiprocessors or compute units; 0: products come in no waves
  Constant<Watts> power;  // the most that the board draws
  // This is what the GPU draws while it waits, while memory or arithmetic binds, and in
  // collectives.
  struct Draw {
    Constant<Watts> idle, memory, compute, communication;

    friend bool operator==(const Draw&, const Draw&) = default;
  };
  std::optional<Draw> draw;  // none: its file does not say, and no energy is predicted

  friend bool operator==(const Gpu&, const Gpu&) = default;
};

Gpu read_gpu(const Table& table);

}  // namespace stepsim
