#include "sim/run_file.hpp"

#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>

#include <csignal>
#include <random>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_run.hpp"

using namespace stepsim;
using Catch::Contains;
using Catch::Equals;

// HDF5 loses some hundred bytes when it meets a damaged header; the leaks we look for are ours.
extern "C" const char* __lsan_default_suppressions();
extern "C" const char* __lsan_default_suppressions() {
  return "leak:H5FL_\nleak:H5MM_";  // allocators of HDF5, which is linked in
}

namespace {

std::string image_of(const Run& run) {
  const TemporaryFolder folder;
  write_run(folder.file("run.h5"), run);
  return bytes_of(folder.file("run.h5"));
}

Run run_of(const std::string& image) {
  const TemporaryFolder folder;
  put_bytes(folder.file("run.h5"), image);
  return read_run(folder.file("run.h5"));
}

// Either UserError, or the same run in spite of it.
void check_damaged(const TemporaryFolder& folder, const std::string& damaged,
                   const std::string& image) {
  put_bytes(folder.file("damaged.h5"), damaged);
  try {
    write_run(folder.file("again.h5"), read_run(folder.file("damaged.h5")));
    const bool same = bytes_of(folder.file("again.h5")) == image;
    CHECK(same);
  } catch (const UserError& error) {
    CHECK_THAT(error.what(), Contains("damaged.h5: is "));
  }
}

// More operations than fit one chunk, a longer scenario than fits a header.
Run large_run(std::size_t ranks = 10'000) {
  Run run;
  run.scenario = std::string(100'000, '#');
  for (std::size_t i = 0; i < ranks; ++i) {
    run.platform.devices.push_back({.name = "gpu", .engines = {}});
    run.lane_sizes.push_back(static_cast<std::uint32_t>(i + 1));
  }
  const NameId name = run.graph.name("kernel");
  run.trace.makespan = {100'000.0 / 7};
  for (std::size_t i = 0; i < 100'000; ++i) {
    run.graph.add({.layer = static_cast<std::int16_t>(i % 100), .name = name}, {});
    for (auto* times : {&run.trace.ready, &run.trace.start, &run.trace.finish})
      times->push_back(static_cast<double>(i) / 7);
  }
  return run;
}

}  // namespace

TEST_CASE("what was read writes the same bytes again", "[sim]") {
  const std::string image = image_of(tiny_run());
  const Run read = run_of(image);
  CHECK(read.scenario == tiny_run().scenario);
  CHECK(read.trace.finish == tiny_run().trace.finish);
  const bool same = image_of(read) == image;
  CHECK(same);
}

TEST_CASE("equal runs are equal bytes, whatever was written in between", "[sim]") {
  const std::string first = image_of(tiny_run());
  image_of(large_run());
  const bool same = image_of(tiny_run()) == first;
  CHECK(same);
}

TEST_CASE("a run of many chunks, a long scenario and many lanes comes back whole", "[sim]") {
  const Run run = large_run(20'000), read = run_of(image_of(run));
  CHECK(read.scenario == run.scenario);
  CHECK(read.lane_sizes == run.lane_sizes);
  CHECK(read.trace.start == run.trace.start);
  REQUIRE(read.graph.size() == run.graph.size());
  CHECK(read.graph[OpId{99'999}].layer == 99);
}

TEST_CASE("an empty run can be written and read", "[sim]") {
  CHECK(run_of(image_of(Run{})).graph.size() == 0);
}

TEST_CASE("a run replaces an older one of the same name and leaves nothing else", "[sim]") {
  const TemporaryFolder folder;
  write_run(folder.file("run.h5"), large_run());
  write_run(folder.file("run.h5"), tiny_run());
  CHECK(read_run(folder.file("run.h5")).scenario == tiny_run().scenario);
  CHECK(folder.files() == std::vector<std::string>{"run.h5"});
}

TEST_CASE("a file cut short is refused", "[sim]") {
  const TemporaryFolder folder;
  const std::string image = image_of(tiny_run());
  constexpr std::size_t parts = 50;
  for (std::size_t i = 0; i < parts; ++i) {
    CAPTURE(i);
    put_bytes(folder.file("cut.h5"), image.substr(0, image.size() * i / parts));
    CHECK_THROWS_AS(read_run(folder.file("cut.h5")), UserError);
  }
}

TEST_CASE("a changed byte is noticed or harmless", "[sim]") {
  const TemporaryFolder folder;
  const std::string image = image_of(tiny_run());
  std::mt19937_64 generator(1);
  for (int i = 0; i < 500; ++i) {
    std::string damaged = image;
    const std::size_t place = generator() % damaged.size();
    damaged[place] =
        static_cast<char>(static_cast<unsigned char>(damaged[place]) ^ (1 + generator() % 255));
    CAPTURE(i, place);
    check_damaged(folder, damaged, image);
  }
}

TEST_CASE("a changed byte in chunks or in a long scenario is noticed or harmless", "[sim]") {
  const TemporaryFolder folder;
  const std::string image = image_of(large_run());
  std::mt19937_64 generator(2);
  for (int i = 0; i < 20; ++i) {
    std::string damaged = image;
    const std::size_t place = generator() % damaged.size();
    damaged[place] = static_cast<char>(~damaged[place]);
    CAPTURE(i, place);
    check_damaged(folder, damaged, image);
  }
}

TEST_CASE("a file that is no run is refused by name", "[sim]") {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.h5");
  CHECK_THROWS_WITH(read_run(path), Equals(path + ": cannot be read: No such file or directory"));
  put_bytes(path, "name: a scenario\n");
  CHECK_THROWS_WITH(read_run(path), Equals(path + ": is no run: not an HDF5 file"));
  put_bytes(path, "");
  CHECK_THROWS_WITH(read_run(path), Equals(path + ": is no run: not an HDF5 file"));
  CHECK_THROWS_WITH(read_run(folder.path()),
                    Equals(folder.path() + ": cannot be read: it is a folder"));
  CHECK_THROWS_WITH(read_run("/dev/null"),
                    Equals("/dev/null: cannot be read: it is no regular file"));
}

TEST_CASE("a place that cannot be written is named with the reason", "[sim]") {
  const TemporaryFolder folder;
  const auto message = [](const std::string& path) {
    try {
      write_run(path, tiny_run());
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("written");
  };
  const std::string missing = folder.file("none/run.h5");
  CHECK(message(missing) ==
        missing + ": cannot be written: there is no folder \"" + folder.file("none") + "\"");
  put_bytes(folder.file("file"), "");
  CHECK(message(folder.file("file/run.h5")) ==
        folder.file("file/run.h5") + ": cannot be written: Not a directory");
  CHECK(message(folder.path()) == folder.path() + ": cannot be written: it is a folder");
  CHECK(message("/dev/null") == "/dev/null: cannot be written: it is no regular file");
  CHECK_THAT(message("/proc/run.h5"), Contains("/proc/run.h5: cannot be written: "));
  CHECK_THAT(message(""), Contains("cannot be written: "));
  CHECK(folder.files() == std::vector<std::string>{"file"});
}

TEST_CASE("a write that fails half way leaves the old file and nothing else", "[sim]") {
  const TemporaryFolder folder;
  const std::string path = folder.file("run.h5");
  put_bytes(path, "old");
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{.rlim_cur = 4096, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    write_run(path, tiny_run());
  } catch (const UserError& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  CHECK(message == path + ": cannot be written: File too large");
  CHECK(bytes_of(path) == "old");
  CHECK(folder.files() == std::vector<std::string>{"run.h5"});
}

TEST_CASE("a full disk is reported as such and leaves nothing behind", "[sim]") {
  const TemporaryFolder folder;
  // In a mount namespace of our own, so that nothing outside this process sees the small disk.
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
      mount("tmpfs", folder.path().c_str(), "tmpfs", 0, "size=16k") != 0) {
    WARN("skipped: this user may not mount a small disk");
    return;
  }
  const std::string path = folder.file("run.h5");
  CHECK_THROWS_WITH(write_run(path, tiny_run()),
                    Equals(path + ": cannot be written: No space left on device"));
  CHECK(folder.files().empty());
  umount(folder.path().c_str());
}
