#include "cli/serve/shut_in.hpp"

#include <fcntl.h>
#include <linux/landlock.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>

namespace stepsim {
namespace {

// These rights are of the first version of Landlock, which every later one has, too.
constexpr std::uint64_t reading = LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR,
                        writing = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_MAKE_REG |
                                  LANDLOCK_ACCESS_FS_REMOVE_FILE,
                        all_of_these = reading | writing | LANDLOCK_ACCESS_FS_EXECUTE |
                                       LANDLOCK_ACCESS_FS_REMOVE_DIR |
                                       LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_DIR |
                                       LANDLOCK_ACCESS_FS_MAKE_SOCK | LANDLOCK_ACCESS_FS_MAKE_FIFO |
                                       LANDLOCK_ACCESS_FS_MAKE_BLOCK | LANDLOCK_ACCESS_FS_MAKE_SYM;

// glibc has no functions for these calls.
template <class... Words>
int call(long number, Words... words) {
  const long result = ::syscall(number, words...);
  if (result < 0) throw std::system_error(errno, std::generic_category(), "Landlock");
  return static_cast<int>(result);
}

void allow(int rules, const std::string& folder, std::uint64_t access) {
  const int place = ::open(folder.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return;  // what is not there cannot be read
  const landlock_path_beneath_attr rule{.allowed_access = access, .parent_fd = place};
  call(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
  ::close(place);
}

}  // namespace

bool can_shut_in() {
  return ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION) > 0;
}

void shut_in(std::span<const std::string> readable, const std::string& writable) {
  landlock_ruleset_attr asked{};
  asked.handled_access_fs = all_of_these;
  const int rules = call(SYS_landlock_create_ruleset, &asked, sizeof(asked), 0);
  for (const std::string& folder : readable) allow(rules, folder, reading);
  allow(rules, writable, reading | writing);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    throw std::system_error(errno, std::generic_category(), "no new privileges");
  call(SYS_landlock_restrict_self, rules, 0);
  ::close(rules);
}

}  // namespace stepsim
