// A MachineError says what the machine could not do, whatever was asked: a drive fails, too many
// files are open, or somebody killed a worker.
#pragma once

#include <stdexcept>
#include <string>

namespace stepsim {

// No study may take it for an answer about its input, as it may a UserError: caught in main and
// between processes alone.
class MachineError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace stepsim
