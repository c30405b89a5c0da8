// A format says how frozen weights are stored, as data: their bytes, what runs before a product can
// take them, and what waits for the backward pass.
#pragma once

#include <string>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// This runs for each of some numbers: weights, inputs or results of a product.
struct FormatWork {
  double kernels = 0;
  double bytes = 0;  // read and written for each number

  friend bool operator==(const FormatWork&, const FormatWork&) = default;
};

// This is read from workloads/formats/NAME.yaml.
struct WeightFormat {
  std::string name = "none", title{};
  double bytes = 2;              // of a weight as it is stored, with its scales
  FormatWork forward, backward;  // for each weight, before the product of that pass
  FormatWork input, result;  // for each number that goes into a forward product, or comes out of it
  double copy = 0;           // bytes of each weight that wait for the backward pass
  bool keeps_input = false;  // the module's own function saves its input
  int reads = 0;             // values that the host reads back for each forward call
  double rate = 1;           // of a product over what 16-bit products reach
  double calls = 1;          // on the host, over the stack's unpack_call
  bool stacked = false;      // experts that are one tensor have this format, too
  bool narrow = false;       // products run in the type of strategy.precision
  bool uncast = false;       // peft's module around it leaves its input as it is under autocast
  bool cloned = false;       // and copies the result before an adapter's is added

  bool packs() const { return name != "none"; }

  friend bool operator==(const WeightFormat&, const WeightFormat&) = default;
};

inline constexpr Shelf format_shelf{"workloads/formats", "format"};
WeightFormat read_format(const Table& table);

}  // namespace stepsim
