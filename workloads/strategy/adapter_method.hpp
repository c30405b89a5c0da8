// A method of training few numbers beside a frozen matrix is data: what it trains there, and what
// runs in each pass.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/base/config.hpp"
#include "sim/base/member_words.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Sides of tensors and of products; `rank` is strategy.lora.rank, or the side of a method's blocks.
enum class AdapterSide : std::uint8_t { tokens, in, out, rank, one };
inline constexpr auto adapter_side_names = words_through<AdapterSide::one>();

using AdapterSides = std::vector<AdapterSide>;

struct AdapterProduct {
  std::string name;
  AdapterSides sides;     // [rows x depth] times [depth x width]
  bool detached = false;  // it has no backward pass
  bool frozen = false;    // one of its operands has no gradient
  bool dropout = false;   // it runs only where there is dropout

  friend bool operator==(const AdapterProduct&, const AdapterProduct&) = default;
};

struct AdapterStream {
  AdapterSides sides;
  double kernels = 0;
  double forward = 0, backward = 0;  // numbers that each pass reads and writes, for each of these
  bool keeps = false;                // one number of each waits for the backward pass

  friend bool operator==(const AdapterStream&, const AdapterStream&) = default;
};

// This is read from workloads/adapters/NAME.yaml.
struct AdapterMethod {
  std::string name = "lora", title{};
  std::vector<AdapterSides> tensors{{AdapterSide::in, AdapterSide::rank},
                                    {AdapterSide::rank, AdapterSide::out}};
  std::vector<AdapterProduct> products{
      {"lora_down", {AdapterSide::tokens, AdapterSide::in, AdapterSide::rank}},
      {"lora_up", {AdapterSide::tokens, AdapterSide::rank, AdapterSide::out}}};
  std::vector<AdapterStream> streams{};
  bool adds = true;      // what it gives is scaled and added to what the frozen matrix gives
  double calls = 1;      // on the host, over the stack's adapter_call
  bool unpacks = false;  // it needs the frozen weight itself in each forward pass

  friend bool operator==(const AdapterMethod&, const AdapterMethod&) = default;
};

inline constexpr Shelf adapter_shelf{"workloads/adapters", "adapter"};
AdapterMethod read_adapter_method(const Table& table);

}  // namespace stepsim
