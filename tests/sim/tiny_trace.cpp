// tiny_trace write FILE: the tiny run as a file. tiny_trace read FILE: what stepsim says about it.
#include <cstdio>
#include <string_view>

#include "sim/base/error.hpp"
#include "sim/run_file.hpp"
#include "tests/support/tiny_run.hpp"

int main(int count, char** words) {
  if (count != 3) return 3;
  try {
    if (words[1] == std::string_view("write"))
      stepsim::write_run(words[2], stepsim::tiny_run());
    else
      stepsim::read_run(words[2]);
  } catch (const stepsim::UserError& error) {
    std::puts(error.what());
    return 2;
  }
  return 0;
}
