// read_corpus FOLDER...: reads every file of each folder by the target that the folder is named
// after, without a fuzzer. --list prints the targets.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "sim/base/whole_file.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

namespace fs = std::filesystem;
namespace fuzz = stepsim::fuzz;

constexpr double longest = 5;  // s, under sanitizers

// How many were read; nothing is caught, so that a debugger stops where it is thrown.
std::size_t read_folder(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    fmt::print(stderr, "{}\n", file.string());  // the last one is it, should this one not come back
    const auto begun = std::chrono::steady_clock::now();
    fuzz::read_by(folder.filename().string(), stepsim::read_file(file.string()));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
    if (took.count() > longest)
      throw std::runtime_error(fmt::format("{} takes {:.1f} s", file.string(), took.count()));
  }
  return files.size();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    for (const auto targets :
         {fuzz::file_targets(), fuzz::scenario_targets(), fuzz::study_targets()})
      for (const fuzz::Target& each : targets) fmt::print("{}\n", each.name);
    return 0;
  }
  std::size_t read = 0;
  for (int i = 1; i < argc; ++i) read += read_folder(argv[i]);
  fmt::print("{} files in {} folders\n", read, argc - 1);
  return read > 0 ? 0 : 1;
}
