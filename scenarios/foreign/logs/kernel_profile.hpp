// A profile says how long each kernel of a run took: a trace of PyTorch's profiler, the table of
// its key_averages(), or a summary of nsys or rocprof.
#pragma once

#include <istream>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

class Catalogue;

struct ProfiledKernel {
  std::string name;
  double seconds = 0;  // of all its calls
};

struct KernelProfile {
  std::string kind;                   // "a trace of PyTorch's profiler"
  double steps = 0;                   // that were profiled; 0: it does not say
  std::optional<double> step_time{};  // of these in the mean, in seconds
  std::optional<double> idle{};       // seconds of a step in which the device ran nothing
  std::vector<ProfiledKernel> kernels{};
};

// Returns what a table of kernels says; nothing where the text is none.
std::optional<KernelProfile> kernel_table_of(std::string_view text, const std::string& name);

// Returns whether a file that begins so is a trace of PyTorch's profiler.
bool begins_trace(std::string_view beginning);
// Reads a trace event by event, so that its size does not matter. Throws UserError with `name`
// where it holds no kernel.
KernelProfile read_kernel_trace(std::istream& file, const std::string& name);

// These are seconds of a step by what bounds a kernel, or of all that was profiled where its steps
// are not known.
struct ProfiledTimes {
  double products = 0, attention = 0, other = 0, collectives = 0, copies = 0;

  double computing() const { return products + attention + other; }
};
ProfiledTimes times_of(const KernelProfile& profile, const Catalogue& data);

}  // namespace stepsim
