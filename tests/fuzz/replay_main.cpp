// read_corpus FOLDER...: reads every file of each folder by the target that the folder is named
// after, without a fuzzer.
//   --repeat N FOLDER...  N times for each file, with a piece of it repeated very often, each time
//                         as it is or with another number in it: what is nested without end, or
//                         takes a time that grows with the square of its size, is found by no
//                         fuzzer that keeps its inputs short
//   --list                the targets
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "sim/base/whole_file.hpp"
#include "tests/fuzz/targets.hpp"
#include "tests/support/dice.hpp"

namespace {

namespace fs = std::filesystem;
namespace fuzz = stepsim::fuzz;

constexpr double longest = 5;  // s of a processor, under sanitizers
constexpr std::size_t repeated_bytes = 200'000;

// Nothing is caught, so that a debugger stops where it is thrown; what was read last is on stderr.
void read_in_time(const std::string& target, const std::string& what, const std::string& bytes) {
  fmt::print(stderr, "{}\n", what);
  const std::clock_t begun = std::clock();
  fuzz::read_by(target, bytes);
  const double took = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
  if (took > longest) {
    fmt::print(stderr, "takes {:.1f} s\n", took);
    std::abort();
  }
}

void read_repeated(const std::string& target, const std::string& file, const std::string& bytes,
                   int times) {
  stepsim::Dice dice(bytes.size());
  const auto below = [&](std::size_t sides) {
    return std::size_t{dice.roll(static_cast<std::uint32_t>(sides))};
  };
  for (int i = 0; i < times && !bytes.empty(); ++i) {
    constexpr std::size_t longest_piece = 12;
    const std::size_t at = below(bytes.size());
    // Whole lines are what most formats have many of.
    const std::size_t line_end = std::min(bytes.find('\n', at), bytes.size() - 1);
    const bool whole_line = below(3) == 0;
    const std::string piece =
        bytes.substr(at, whole_line ? line_end + 1 - at : 1 + below(longest_piece));
    const bool numbered = below(2) == 0;
    const std::size_t place = below(piece.size());
    std::string all;
    for (int number = 0; all.size() < repeated_bytes; ++number) {
      const std::size_t begin = all.size();
      all += piece;
      if (numbered) all.insert(begin + place, std::to_string(number));
    }
    read_in_time(target,
                 fmt::format("{}, {} bytes from {} repeated{}", file, piece.size(), at,
                             numbered ? fmt::format(" with a number at {}", place) : ""),
                 std::string(bytes).insert(at, all));
  }
}

std::size_t read_folder(const fs::path& folder, int times) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::ranges::sort(files);
  const std::string target = folder.filename().string();
  for (const fs::path& file : files) {
    const std::string bytes = stepsim::read_file(file.string());
    if (times == 0)
      read_in_time(target, file.string(), bytes);
    else
      read_repeated(target, file.string(), bytes, times);
  }
  return files.size();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view first = argc > 1 ? argv[1] : "";
  if (first == "--list") {
    for (const auto targets :
         {fuzz::file_targets(), fuzz::scenario_targets(), fuzz::study_targets()})
      for (const fuzz::Target& each : targets) fmt::print("{}\n", each.name);
    return 0;
  }
  const bool repeats = first == "--repeat" && argc > 2;
  const int times = repeats ? std::atoi(argv[2]) : 0;
  std::size_t read = 0;
  for (int i = repeats ? 3 : 1; i < argc; ++i) read += read_folder(argv[i], times);
  fmt::print("{} files\n", read);
  return read > 0 ? 0 : 1;
}
