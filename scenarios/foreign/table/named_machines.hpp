// Machines by the names that people give their files, "8xMI300", and GPUs as others spell them:
// "A100-80GB", "Tesla V100-SXM2-16GB", "nvidia-tesla-t4", "p4d.24xlarge".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace stepsim {

class Catalogue;

struct NamedMachine {
  std::string words{};  // "8xMI300"
  std::string node{};   // empty: the catalogue has none of this GPU
  std::uint32_t gpus = 0, nodes = 1;
  bool whole = true;  // all GPUs of its nodes
};

// Returns nothing when the name says no number of GPUs.
std::optional<NamedMachine> machine_in_name(const Catalogue& data, std::string_view name);

// A GPU of the catalogue that the name says without a number, "sft.mi300x.sh": so many of them, 0
// for as many as the largest node of them has.
std::optional<NamedMachine> gpu_in_name(const Catalogue& data, std::string_view name,
                                        std::uint32_t gpus);

// This is a GPU, or a rented machine with GPUs, as somebody calls it.
struct CalledGpu {
  std::string gpu{};         // as the catalogue calls it, whether it has it or not
  std::uint32_t count = 0;   // of the rented machine; 0: no machine is named
  bool is_modelled = false;  // the catalogue has it
  std::string node{};        // the only one with it, where it differs from its like in links alone
};
// Returns nothing where it is the name of no GPU that is known.
std::optional<CalledGpu> called_gpu(const Catalogue& data, std::string_view said);

// Returns a machine of so many GPUs of that name; 0: as many as the rented machine has, else one.
// Returns nothing where the catalogue has none of them.
std::optional<NamedMachine> machine_called(const Catalogue& data, std::string_view said,
                                           std::uint32_t gpus);

}  // namespace stepsim
