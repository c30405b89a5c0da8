// What libFuzzer calls. One program for all targets, because linking takes longer than fuzzing a
// reader of units: the name by which it is called, a link's, says which.
#include <filesystem>

#include "tests/fuzz/targets.hpp"

namespace {

std::string& target() {
  static std::string name;
  return name;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char*** arguments) {
  target() = std::filesystem::path(**arguments).filename();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  stepsim::fuzz::read_by(target(), std::string(reinterpret_cast<const char*>(bytes), size));
  return 0;
}
