// What the machine could not do, whatever was asked: a drive that fails, too many open files, a
// worker that somebody killed.
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
