// Offload says where a rank keeps what it does not need at once.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace stepsim {

enum class Offload : std::uint8_t { none, cpu, nvme };
inline constexpr std::array<std::string_view, 3> offload_names{"none", "cpu", "nvme"};

// This says which AdamW the host runs.
enum class HostAdam : std::uint8_t {
  one_pass,   // DeepSpeed's CPU-Adam, PyTorch's with fused=True, as Megatron has it
  operators,  // PyTorch's own, an operator at a time
  grace,      // GraceAdam: one pass, written for that processor
};
inline constexpr std::array<std::string_view, 3> host_adam_names{"one_pass", "operators", "grace"};

// These are DeepSpeed's keys with DeepSpeed's defaults; sizes are in elements.
struct OffloadKeys {
  HostAdam adam = HostAdam::one_pass;
  std::int64_t threads = 0;  // of a rank's update on the host; 0: its share of the cores
  bool pins = false;         // stages 1 and 2: what gradients are copied to is pinned
  double ratio = 1;  // of the optimizer, at stage 3 in sub-groups; the others stay on the device
  bool pipeline_read = false;  // nvme: the next sub-group is read during the update of this one
  bool pipeline_write = false;
  std::int64_t optimizer_buffers = 4;  // nvme: of the largest sub-group each
  std::int64_t parameter_buffers = 5;  // nvme: of buffer_size each
  double buffer_size = 1e8;
  double max_in_cpu = 1e9;  // nvme: parameters of a rank that stay in host memory all the same

  friend bool operator==(const OffloadKeys&, const OffloadKeys&) = default;
};

}  // namespace stepsim
