// An operation carries these words for the reader: what it is, where it runs, and why it exists.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sim/base/member_words.hpp"

namespace stepsim {

enum class OpKind : std::uint8_t {
  compute,     // exclusive seconds on a device, slowed by collectives on the same device
  host,        // seconds of the thread that launches work
  collective,  // a traffic pattern between several ranks
  transfer,    // a traffic pattern of one rank: device to host memory, disk, ...
  cpu,         // optimizer work on host cores: traffic through host memory
  delay,       // time that passes and occupies nothing
  join,        // an instant: all predecessors are done
};
inline constexpr auto op_kind_names = words_through<OpKind::join>();

// Program order on a stream is a dependency.
enum class Stream : std::uint8_t {
  host,
  compute,
  gather,
  reduce,
  all_to_all,
  h2d,
  d2h,
  replicas,  // gradients among the copies of a shard
  tensor,    // activations among ranks that share a layer or a sequence
  stages,    // activations and their gradients from one pipeline stage to the next
  drive_in,  // what a rank reads from its node's drives
  drive_out,
};
inline constexpr auto stream_names = words_through<Stream::drive_out>();

enum class Phase : std::uint8_t {
  load,
  forward,
  recompute,
  backward,
  optimizer,
  sync,
  generate,
  save,
  evaluation,
  other
};
inline constexpr auto phase_names = words_through<Phase::other>();

// A cause is the mechanism that an operation exists for. A report divides the step by these, and an
// idealisation sets the cost of one of them to zero.
enum class Cause : std::uint8_t {
  compute,
  recompute,
  launch,
  module_hooks,
  gather_bytes,
  gather_latency,
  gradient_reduce,
  moe_all_to_all,
  routing_sync,
  offload_transfer,
  cpu_optimizer,
  optimizer,
  weight_sync,
  generation,
  checkpoint_save,
  tensor_parallel,
  sequence_parallel,
  stage_transfer,   // between pipeline stages
  pipeline_bubble,  // nothing is done: a stage waits for another one
  other,
};
inline constexpr auto cause_names = words_through<Cause::other>();

inline constexpr std::size_t cause_count = cause_names.size();
constexpr std::size_t index(Cause cause) {
  return static_cast<std::size_t>(cause);
}
template <class T>
using ByCause = std::array<T, cause_count>;

template <std::size_t N, class Enum>
constexpr std::string_view name_of(const std::array<std::string_view, N>& names, Enum value) {
  return names[static_cast<std::size_t>(value)];
}
constexpr std::string_view to_text(OpKind v) {
  return name_of(op_kind_names, v);
}
constexpr std::string_view to_text(Stream v) {
  return name_of(stream_names, v);
}
constexpr std::string_view to_text(Phase v) {
  return name_of(phase_names, v);
}
constexpr std::string_view to_text(Cause v) {
  return name_of(cause_names, v);
}

}  // namespace stepsim
