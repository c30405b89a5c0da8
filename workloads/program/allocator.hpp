// This follows what the framework has mapped of a device's memory, stream by stream. What is freed
// is kept for requests on the same stream; when one finds no room, and only then, all that lies
// idle goes back to the driver.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "workloads/program/held.hpp"

namespace stepsim {

// On which stream each class of memory is asked for: 0 with the kernels, 1 gathers, 2 reductions.
using AllocatingStreams = std::array<std::uint8_t, held_names.size()>;
// Returns the stream of a class by its word; what is no class is a kernel's own, of the first
// stream.
std::size_t stream_of(const AllocatingStreams& streams, std::string_view held);

class Allocator {
 public:
  static constexpr std::size_t streams = 3;

  // `room` and `resident` are in bytes; what is resident is never freed.
  Allocator(double room, double resident, const AllocatingStreams& stream_of)
      : room_(room), stream_of_(stream_of) {
    live_[0] = mapped_[0] = resident;
  }

  struct Remapped {
    double returned = 0, mapped = 0;  // bytes
  };
  Remapped take(Held held, double bytes);
  void give(Held held, double bytes) { live_[stream_of(held)] -= bytes; }

  double mapped() const;
  // Returns whether memory went back to the driver for a request that found room then. If more is
  // used than there is, nothing helps: times are those of a device that has enough.
  bool has_returned() const { return returned_ && !overflowed_; }

 private:
  std::size_t stream_of(Held held) const { return stream_of_[static_cast<std::size_t>(held)]; }

  double room_ = 0;
  AllocatingStreams stream_of_{};
  std::array<double, streams> live_{}, mapped_{};
  bool returned_ = false, overflowed_ = false;
};

}  // namespace stepsim
