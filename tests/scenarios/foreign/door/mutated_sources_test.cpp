// Files of other programs with mistakes of every kind: each is read or refused in words.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/dice.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

const Catalogue& data = source_data();

// Values that no file means, and that some file has.
const std::vector<std::string> values{"",
                                      "-1",
                                      "0",
                                      "1e30",
                                      "NaN",
                                      "null",
                                      "~",
                                      "[]",
                                      "{}",
                                      "[1, 2]",
                                      "{a: 1}",
                                      "true",
                                      "$X",
                                      "${X:-4}",
                                      "\"",
                                      "'",
                                      "\\",
                                      "0x10",
                                      "1_000",
                                      "auto",
                                      "&a",
                                      "*a",
                                      "!!int 3",
                                      "$(exit 7)",
                                      "`ls`",
                                      "$((1/0))",
                                      "{{x}}",
                                      "- - -",
                                      "<<EOF",
                                      "2.5e",
                                      ": : :",
                                      "cpu",
                                      "None",
                                      "99999999999999999999",
                                      "lambda: 0",
                                      "\xff\xfe",
                                      std::string(5000, 'a'),
                                      std::string(300, '[')};

class Mutator {
 public:
  explicit Mutator(std::uint64_t seed) : dice_(seed) {}

  std::string mutated(const std::string& text) {
    std::vector<std::string> lines;
    std::istringstream stream(text);
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    for (std::size_t times = 1 + below(3); times > 0 && !lines.empty(); --times) mutate(lines);
    std::string result;
    for (const std::string& line : lines) result += line + "\n";
    if (below(8) == 0) result.resize(below(result.size() + 1));
    return result;
  }

 private:
  std::size_t below(std::size_t count) { return dice_.roll(static_cast<std::uint32_t>(count)); }

  void mutate(std::vector<std::string>& lines) {
    const std::size_t at = below(lines.size());
    std::string& line = lines[at];
    switch (below(7)) {
      case 0:
        lines.erase(lines.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), line);
        break;
      case 2:
        std::swap(line, lines[below(lines.size())]);
        break;
      case 3:
        if (!line.empty()) line[below(line.size())] = static_cast<char>(below(256));
        break;
      case 4:
        line.insert(below(line.size() + 1), 1, "{}[]:,'\"$\\#&*|>%@`()<;= \t"[below(25)]);
        break;
      case 5:
        line.resize(below(line.size() + 1));
        break;
      default:
        replace_value(line);
    }
  }

  // What stands behind the first sign that values stand behind.
  void replace_value(std::string& line) {
    std::size_t from = line.find_first_of(":=");
    if (from == std::string::npos) from = line.rfind(' ');
    if (from == std::string::npos) return;
    line.resize(from + 1);
    line += " " + values[below(values.size())];
  }

  Dice dice_;
};

// Whether it was read; what else than a UserError comes out of it fails the test.
bool is_read(const std::string& file) {
  try {
    const std::vector<Setting> settings =
        file.ends_with(".json") && file.find("arguments") == std::string::npos
            ? std::vector<Setting>{{"model", "llama-3.2-1b"}, {"cluster", "{node: h100-8}"}}
            : std::vector<Setting>{};
    load_scenario(data, file, settings);
    return true;
  } catch (const UserError& error) {
    CHECK(!error.problems().empty());
    for (const Problem& problem : error.problems()) CHECK(!problem.message.empty());
    return false;
  }
}

}  // namespace

TEST_CASE("files of other programs with mistakes are read or refused", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const fs::path fixtures = fs::path(STEPSIM_SOURCE_DATA) / "tests/cli";
  std::size_t read = 0, all = 0;
  for (const char* kind : {"axolotl", "scripts", "settings"}) {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(fixtures / kind)) {
      fs::copy_file(entry.path(), folder.file(entry.path().filename().string()),
                    fs::copy_options::overwrite_existing);
      files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      const std::string text = read_file(file.string());
      const std::string own = folder.file("own-" + file.filename().string());
      Mutator mutator(text.size());
      for (int time = 0; time < 60; ++time) {
        const std::string mutated = mutator.mutated(text);
        std::ofstream(own) << mutated;
        INFO(file.filename().string() << ":\n" << mutated);
        read += is_read(own);
        ++all;
      }
    }
  }
  // Mistakes that change nothing are many, and so are those that do.
  CHECK(read > all / 10);
  CHECK(read < all);
}

}  // namespace stepsim
