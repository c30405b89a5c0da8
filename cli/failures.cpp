#include "cli/failures.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>

#include "cli/command.hpp"
#include "cli/screen.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

// Tells the user what went wrong. When stderr is closed or full there is nobody left to tell.
void complain(const std::string& text) {
  std::fputs(printable("stepsim: " + text + "\n").c_str(), stderr);
}

int output_failed(int why) {
  complain(fmt::format("the output could not be written: {}", std::strerror(why)));
  return exit_code::input;
}

// Returns whether this is no bug of ours: processes, open files or memory have run out.
bool is_shortage(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again ||
         code == std::errc::too_many_files_open ||
         code == std::errc::too_many_files_open_in_system || code == std::errc::not_enough_memory;
}

}  // namespace

int exit_code_of(const std::function<int()>& act) {
  try {
    return act();
  } catch (const UserError& error) {
    complain(error.what());
    return exit_code::input;
  } catch (const std::bad_alloc&) {
    complain("this machine has too little memory to compute it");
    return exit_code::input;
  } catch (const std::system_error& error) {
    if (std::ferror(stdout) != 0) return output_failed(error.code().value());
    complain(fmt::format("this machine{}: {}",
                         is_shortage(error.code()) ? ", or a limit of this shell, allows no more"
                                                   : " could not do it",
                         error.what()));
    return exit_code::input;
  } catch (const MachineError& error) {
    complain(fmt::format("this machine could not do it: {}", error.what()));
    return exit_code::input;
  } catch (const std::exception& error) {
    complain(fmt::format("this is a bug of ours: {}", error.what()));
    return exit_code::bug;
  }
}

}  // namespace stepsim
