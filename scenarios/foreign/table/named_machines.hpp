// Machines by the names that people give their files: "8xMI300".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

struct NamedMachine {
  std::string words{};  // "8xMI300"
  std::string node{};   // empty: the catalogue has none of this GPU
  std::uint32_t gpus = 0;
  std::uint32_t nodes = 1;
  bool whole = true;  // all GPUs of its nodes
};

// Returns nothing when the name says no number of GPUs.
std::optional<NamedMachine> machine_in_name(const std::string& data, std::string_view name);

// A GPU of the catalogue that the name says without a number, "sft.mi300x.sh": so many of them, 0
// for as many as the largest node of them has.
std::optional<NamedMachine> gpu_in_name(const std::string& data, std::string_view name,
                                        std::uint32_t gpus);

}  // namespace stepsim
