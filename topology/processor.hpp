// Processors launch work onto GPUs. A file of one says the part of a node's `host` that hangs on
// it, so that it can stand in a node's place.
#pragma once

#include <string>

#include "sim/base/config.hpp"
#include "sim/base/constant.hpp"

namespace stepsim {

struct Processor {
  std::string name, title;
  Constant<Ratio> core_speed;  // as of Host

  friend bool operator==(const Processor&, const Processor&) = default;
};

// Throws nothing: what is wrong is noted in the table's document.
Processor read_processor(const Table& table);

}  // namespace stepsim
