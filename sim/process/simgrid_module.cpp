#include "sim/process/simgrid_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Returns the module's path beside the installed program, or else the place where it was built.
std::string module_path() {
  std::error_code failed;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failed).parent_path();
  const auto installed = program / STEPSIM_INSTALL_MODULE / STEPSIM_MODULE;
  return std::filesystem::is_regular_file(installed, failed) ? installed.string()
                                                             : STEPSIM_BUILT_MODULE;
}

}  // namespace

void* simgrid_function(const char* name) {
  void* const module = ::dlopen(module_path().c_str(), RTLD_NOW | RTLD_LOCAL);
  void* const function = module == nullptr ? nullptr : ::dlsym(module, name);
  if (function != nullptr) return function;
  throw MachineError(fmt::format("SimGrid cannot be loaded ({})", ::dlerror()));
}

}  // namespace stepsim
