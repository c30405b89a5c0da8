#include "sim/base/whole_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "sim/base/error.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

template <class Result>
Result posix(Result result) {
  if (result < 0) throw std::system_error(errno, std::generic_category());
  return result;
}

// Returns how much read() or write() moved; 0 when a signal came in between.
std::size_t transferred(ssize_t size) {
  return size < 0 && errno == EINTR ? 0 : static_cast<std::size_t>(posix(size));
}

class Descriptor {
 public:
  explicit Descriptor(int id) : id_(posix(id)) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (id_ >= 0) ::close(id_);
  }
  operator int() const { return id_; }
  void close() { posix(::close(std::exchange(id_, -1))); }

 private:
  int id_;
};

// The path or its rights are wrong, not the machine.
bool is_of_path(const std::error_code& code) {
  using enum std::errc;
  return code == no_such_file_or_directory || code == not_a_directory || code == is_a_directory ||
         code == permission_denied || code == filename_too_long ||
         code == too_many_symbolic_link_levels || code == invalid_argument ||
         code == no_such_device_or_address;
}

fs::file_status status_of(const std::string& path) {
  std::error_code failed;
  const fs::file_status status = fs::status(path, failed);
  if (failed && !is_of_path(failed))
    throw MachineError(fmt::format("{}: cannot be looked at: {}", path, failed.message()));
  return status;
}

// Removes the file unless it was renamed.
struct Leftover {
  std::string name{};
  ~Leftover() {
    if (!name.empty()) ::unlink(name.c_str());
  }
};

void require_file(const std::string& path, const struct stat& at, std::string_view wish) {
  if (S_ISREG(at.st_mode)) return;
  fail(path, fmt::format("cannot be {}: it is {}", wish,
                         S_ISDIR(at.st_mode) ? "a folder" : "no regular file"));
}

// Gives the new file the mode of the old one, and its owner where we may say so.
void keep_rights(int file, const struct stat& old) {
  posix(::fchmod(file, old.st_mode & 07777));
  if (::fchown(file, old.st_uid, old.st_gid) != 0 && errno != EPERM) posix(-1);
}

void sync_folder(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  const Descriptor file(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (::fsync(file) != 0 && errno != EINVAL && errno != EROFS) posix(-1);
}

// A name beside the path that `make` could make; a killed process may have left its own behind.
template <class Make>
std::string new_name(const std::string& path, const Make& make) {
  for (int attempt = 0;; ++attempt) {
    std::string name = fmt::format("{}.tmp-{}-{}", path, ::getpid(), attempt);
    if (make(name.c_str()) >= 0) return name;
    if (errno != EEXIST) posix(-1);
  }
}

// A file without a name, which goes when its process is killed. -1: not here.
int open_nameless(const std::string& path) {
  if (::access("/proc/self/fd", X_OK) != 0) return -1;  // it would get no name either
  const fs::path folder = fs::path(path).parent_path();
  return ::open(folder.empty() ? "." : folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
}

void write_and_rename(const std::string& path, std::string_view bytes, const struct stat* old) {
  Leftover leftover;
  int id = open_nameless(path);
  const bool nameless = id >= 0;
  if (!nameless)
    leftover.name = new_name(path, [&](const char* name) {
      return id = ::open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    });
  Descriptor file(id);
  while (!bytes.empty())
    bytes.remove_prefix(transferred(::write(file, bytes.data(), bytes.size())));
  if (old != nullptr) keep_rights(file, *old);
  posix(::fsync(file));
  if (nameless)
    leftover.name = new_name(path, [&](const char* name) {
      return ::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", int{file}).c_str(), AT_FDCWD, name,
                      AT_SYMLINK_FOLLOW);
    });
  file.close();  // some file systems find out only here that the disk is full
  posix(::rename(leftover.name.c_str(), path.c_str()));
  leftover.name.clear();
  sync_folder(path);  // before anybody is told that it is there
}

// Returns what a link leads to, whether that is there or not: the file is written there, and the
// link stays one.
fs::path behind_links(const std::string& path) {
  constexpr int most_links = 40;  // as the kernel follows
  fs::path target = path;
  std::error_code failed;
  for (int i = 0; i <= most_links; ++i) {
    const fs::path next = fs::read_symlink(target, failed);
    if (failed) return target;
    target = target.parent_path() / next;
  }
  fail(path, "cannot be written: " +
                 std::make_error_code(std::errc::too_many_symbolic_link_levels).message());
}

std::string read_all(int file, std::size_t size) {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file, &bytes[done], size - done);
    if (got == 0) break;  // it has shrunk
    done += transferred(got);
  }
  bytes.resize(done);
  return bytes;
}

}  // namespace

void write_file(const std::string& path, std::string_view bytes) {
  struct stat at {};
  const bool there = ::stat(path.c_str(), &at) == 0;
  if (there) require_file(path, at, "written");
  const fs::path target = behind_links(path);
  try {
    write_and_rename(target.string(), bytes, there ? &at : nullptr);
  } catch (const std::system_error& error) {
    const fs::path folder = target.parent_path();
    std::error_code ignored;
    if (!folder.empty() && !fs::exists(folder, ignored))
      fail(path, fmt::format("cannot be written: there is no folder \"{}\"", folder.string()));
    fail(path, "cannot be written: " + error.code().message());
  }
}

void sync_folder_of(const std::string& path) {
  try {
    sync_folder(path);
  } catch (const std::system_error& error) {
    fail(path, "cannot be written: " + error.code().message());
  }
}

std::string read_file(const std::string& path, std::size_t most) {
  try {
    // A pipe without a writer would block.
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat at {};
    posix(::fstat(file, &at));
    require_file(path, at, "read");
    return read_all(file, std::min(most, static_cast<std::size_t>(at.st_size)));
  } catch (const std::system_error& error) {
    const std::string why = "cannot be read: " + error.code().message();
    if (is_of_path(error.code())) fail(path, why);
    throw MachineError(path + ": " + why);
  }
}

std::string read_text(const std::string& path) {
  constexpr std::size_t largest = 16u << 20;
  std::string text = read_file(path, largest + 1);
  if (text.size() > largest) fail(path, "is larger than 16 MiB");
  return text;
}

std::vector<std::string> names_in_folder(const std::string& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder)
    throw MachineError(fmt::format("{}: cannot be listed: {}", path, std::strerror(errno)));
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) names.emplace_back(entry->d_name);
  if (errno != 0)
    throw MachineError(fmt::format("{}: cannot be listed: {}", path, std::strerror(errno)));
  std::ranges::sort(names);
  return names;
}

bool is_there(const std::string& path) {
  return fs::exists(status_of(path));
}

bool is_file(const std::string& path) {
  return fs::is_regular_file(status_of(path));
}

}  // namespace stepsim
