// The ways of sharding that there are. Whoever needs to know one asks here.
#pragma once

#include "workloads/sharding/fsdp/fsdp.hpp"
#include "workloads/sharding/replicated/replicated.hpp"
#include "workloads/sharding/scheme.hpp"
#include "workloads/sharding/zero3/zero3.hpp"

namespace stepsim {

template <Scheme... S>
struct SchemeList {
  static constexpr std::size_t count = sizeof...(S);
};
inline constexpr std::size_t scheme_count =
    SchemeList<Replicated, Distributed, Zero3, FullySharded>::count;

// Calls `use`, a lambda []<Scheme S>(), for the scheme of a strategy.
template <class Use>
decltype(auto) with_scheme(const Strategy& strategy, Use use) {
  switch (strategy.sharding) {
    case Sharding::zero3:
      return use.template operator()<Zero3>();
    case Sharding::fsdp:
    case Sharding::hsdp:
      return use.template operator()<FullySharded>();
    case Sharding::zero0:
    case Sharding::zero1:
    case Sharding::zero2:
      break;
  }
  if (strategy.distributed.used) return use.template operator()<Distributed>();
  return use.template operator()<Replicated>();
}

}  // namespace stepsim
