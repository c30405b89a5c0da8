#include "sim/base/table.hpp"

#include <sstream>

#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

}  // namespace

TEST_CASE("words stand to the left, numbers to the right, and no line has trailing blanks",
          "[analysis]") {
  const std::string text =
      render({{"name", " value", "note"}, {{"a", "1", ""}, {"longer", "1000000", "x"}}});
  CHECK(text ==
        "name      value  note\n"
        "------  -------  ----\n"
        "a             1\n"
        "longer  1000000  x\n");
}

TEST_CASE("a character of several bytes takes one column", "[analysis]") {
  const auto lines = lines_of(render({{"unit", " n"}, {{"\u00b5s", "1"}, {"ms", "2"}}}));
  CHECK(lines.at(2) == "\u00b5s    1");
  CHECK(lines.at(3) == "ms    2");
}

TEST_CASE("a table as wide as a terminal breaks its widest words, and never numbers",
          "[analysis]") {
  const TextTable table{
      {"plan", " time", "why"},
      {{"data 4 x tensor 2, micro-batch 8", "1 s", "compute 82 %"}, {"data 8", "2 s", "launch"}}};
  CHECK(render(table, 46) ==
        "plan                        time  why\n"
        "--------------------------  ----  ------------\n"
        "data 4 x tensor 2,           1 s  compute 82 %\n"
        "micro-batch 8\n"
        "data 8                       2 s  launch\n");
  CHECK(render(table, 1000) == render(table));
  for (const std::string& line : lines_of(render(table, 40))) CHECK(line.size() <= 40);
  CHECK(render(table, 10) == render(table, 32));  // no narrower than words can be read
}

TEST_CASE("a word that is too long for its column makes it wider in all rows", "[analysis]") {
  const TextTable table{{"plan", " time"},
                        {{"one reshard_after_forward two three", "1 s"},
                         {"four five six seven eight nine ten", "20 s"}}};
  const std::vector<std::string> lines = lines_of(render(table, 20));
  const std::size_t end = lines.front().size();  // of the times
  CHECK(lines[1].size() == end);
  CHECK(end == std::string("reshard_after_forward").size() + 2 + 4);
  for (const std::string& line : lines)
    if (line.ends_with(" s")) CHECK(line.size() == end);
}

TEST_CASE("a table without rows is a header", "[analysis]") {
  CHECK(render({.columns = {"a"}}) == "a\n-\n");
}

TEST_CASE("wrapped text stays within the width and keeps every word", "[analysis]") {
  const std::string text = "one two three four five six seven eight nine ten eleven twelve";
  const std::size_t width = GENERATE(8u, 11u, 20u, 40u, 200u);
  const std::size_t indent = GENERATE(0u, 2u);
  CAPTURE(width, indent);
  const std::string wrapped = std::string(indent, ' ') + wrap(text, width, indent);
  std::string words;
  for (const std::string& line : lines_of(wrapped)) {
    CHECK(line.size() <= width);
    CHECK(line.substr(0, indent) == std::string(indent, ' '));
    if (!words.empty()) words += ' ';
    words += line.substr(indent);
  }
  CHECK(words == text);
}

TEST_CASE("a word longer than the width has a line of its own", "[analysis]") {
  CHECK(wrap("a incomprehensibilities b", 5, 1) == "a\n incomprehensibilities\n b");
  CHECK(wrap("", 5, 1).empty());
}
