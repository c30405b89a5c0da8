#include <fmt/format.h>

#include "sim/base/config.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;
using Catch::Contains;
using Catch::Equals;

namespace {

// What somebody who wants the key "a" is told of `text`; empty when all is well.
std::string told(std::string_view text) {
  try {
    const Document file = parse_document(text, "a.yaml");
    file.root().text_or("a", "");
    file.finish();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string repeated(std::string_view text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

}  // namespace

TEST_CASE("JSON is read too, tabs and all", "[sim]") {
  const Document file =
      parse_document("{\n\t\"a\":\t\"x\\/y\",\n\t\"b\": [1, 2.5e3, null]\n}\n", "j");
  CHECK(file.root().text("a") == "x/y");
  CHECK(file.root().texts("b").at(1) == "2.5e3");
}

TEST_CASE("a file is one document and nothing follows it", "[sim]") {
  const std::string end = "expected the end of the file here";
  CHECK(told("a: 1\n---\nb: 2\n") == "a.yaml:2: " + end);
  CHECK(told("a: 1\n...\nb: 2\n") == "a.yaml:3: " + end);
  CHECK(told("{\"a\": 1}\nx") == "a.yaml:2: " + end);
  CHECK(told("{\"a\": 1},\n") == "a.yaml:1: " + end);
  CHECK(told("---\na: 1\n...\n").empty());
}

TEST_CASE("what is no mapping is refused", "[sim]") {
  const auto text = GENERATE("", "# nothing\n", "- a\n- b\n", "word\n");
  CHECK(told(text) == "a.yaml: expected a mapping of keys to values");
}

TEST_CASE("what is no YAML is refused with its line", "[sim]") {
  CHECK(told("a: 1\nb: [1, 2\n").starts_with("a.yaml:3: is no valid YAML: "));
  CHECK(told("a:\n\tb: 1\n").starts_with("a.yaml:2: is no valid YAML: "));
  CHECK(told("a: *b\n").starts_with("a.yaml:1: is no valid YAML: "));
  CHECK(told("a: \"x\nb: 1\n") == "a.yaml: is no valid YAML: a quote is never closed");
  CHECK(told("a: 1\n? [x]\n: 2\n") == "a.yaml:2: a key must be a word");
}

TEST_CASE("letters of two bytes are refused by name", "[sim]") {
  const std::string_view little(
      "\xff\xfe"
      "a\0:\0 \0"
      "1\0",
      10),
      big("\xfe\xff\0a\0:\0 \0"
          "1",
          10);
  CHECK(told(little) == "a.yaml: is UTF-16 or UTF-32: expected UTF-8");
  CHECK(told(big) == "a.yaml: is UTF-16 or UTF-32: expected UTF-8");
}

TEST_CASE("letters outside of ASCII stand where TOML has none", "[sim]") {
  CHECK_THROWS_WITH(parse_toml_document("a = 1 \u00e9\n", "a.toml"), Contains("a.toml:1"));
  CHECK_THROWS_WITH(parse_toml_document("\u0139 = 1\n", "a.toml"), Contains("a.toml:1"));
  CHECK(parse_toml_document("a = '\u00e9'\n", "a.toml").root().text("a") == "\u00e9");
}

TEST_CASE("nesting without end is refused, however it is written", "[sim]") {
  CHECK_THAT(told("a: " + repeated("[", 100) + repeated("]", 100)),
             Contains("is nested too deeply"));
  CHECK_THAT(told("a: " + repeated("[", 100'000)), Contains("is nested too deeply"));
  CHECK_THAT(told(repeated("{a: ", 100'000)), Contains("is nested too deeply"));
  CHECK_THAT(told(repeated("- ", 100'000)), Contains("is nested too deeply"));
  CHECK_THAT(told("a: &x [*x]\n"), Contains("is nested too deeply"));
}

TEST_CASE("TOML is nested no deeper", "[sim]") {
  const auto told_of = [](const std::string& text) {
    try {
      parse_toml_document(text, "a.toml");
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string too_deep = "a.toml:2: is nested too deeply";
  CHECK(told_of("\n[a" + repeated(".b", 100'000) + "]\n") == too_deep);
  CHECK(told_of("\n\"a\\\"\"" + repeated(".b", 100'000) + " = 1\n") == too_deep);
  CHECK(told_of("\na" + repeated(".b", 100) + " = 1\n") == too_deep);
  CHECK(told_of("\na" + repeated(".b", 60) + " = '" + repeated(".", 1000) + "'\n").empty());
}

TEST_CASE("aliases cannot blow up a small file", "[sim]") {
  std::string values = "a0: &a0 [x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 12; ++i)
    values += fmt::format("a{0}: &a{0} [{1}*a{2}]\n", i, repeated(fmt::format("*a{}, ", i - 1), 7),
                          i - 1);
  CHECK_THAT(told(values), Contains("is nested too deeply or too large"));
  const std::string text = "b: &b " + std::string(1 << 20, 'x') + "\na: [" + repeated("*b, ", 1000);
  CHECK_THAT(told(text + "*b]\n"), Contains("is nested too deeply or too large"));
}

TEST_CASE("a merge key of YAML brings another mapping's keys", "[sim]") {
  const auto as_read = [](const std::string& text) {
    return parse_document(text, "a.yaml").canonical();
  };
  CHECK(as_read("<<: {a: 1, b: 2}\nb: 3\n") == as_read("b: 3\na: 1\n"));
  CHECK(as_read("c: &c {a: 1}\nd: {<<: *c, b: 2}\n") == as_read("c: {a: 1}\nd: {b: 2, a: 1}\n"));
  CHECK(as_read("c: &c {a: 1}\nd: &d {<<: *c, b: 2}\ne:\n  <<: *d\n") ==
        as_read("c: {a: 1}\nd: {b: 2, a: 1}\ne: {b: 2, a: 1}\n"));
  CHECK(as_read("c: &c {a: 1}\nd: &d {a: 2, b: 2}\ne: {<<: [*c, *d]}\n") ==
        as_read("c: {a: 1}\nd: {a: 2, b: 2}\ne: {a: 1, b: 2}\n"));
  CHECK(parse_document("c: &c\n  a: 1\n\n<<: *c\n", "a.yaml").root().origin("a")->line == 2);
  CHECK(parse_document("'<<': 1\n", "a.json").root().has("<<"));
  CHECK_THAT(told("a: 1\n<<: [1]\n"),
             Contains("a.yaml:2: <<: expected a mapping, or a list of mappings"));
}

TEST_CASE("very many texts are not kept for ever", "[sim]") {
  const std::string rest = repeated("x", 200 << 10);
  for (int i = 0; i < 90; ++i)  // 18 MiB, of which 16 may stay
    CHECK(parse_document(fmt::format("a: {}{}", i, rest), "a.yaml").root().text("a").size() >
          rest.size());
}

TEST_CASE("a file that cannot be read is named with the reason", "[sim]") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.yaml");
  CHECK_THROWS_WITH(read_document(path),
                    Equals(path + ": cannot be read: No such file or directory"));
  CHECK_THROWS_WITH(read_document(folder.path()),
                    Equals(folder.path() + ": cannot be read: it is a folder"));
  put_bytes(path, "a: 1\n");
  CHECK(read_document(path).root().text("a") == "1");
  put_bytes(path, std::string((16u << 20) + 1, '#'));
  CHECK_THROWS_WITH(read_document(path), Equals(path + ": is larger than 16 MiB"));
}

TEST_CASE("a key at the top of a file is found without what comes after it", "[sim]") {
  const TemporaryFolder folder;
  const auto [text, title] = GENERATE(table<std::string, std::string>({
      {"name: a\ntitle: what it is\nbroken: [\n", "what it is"},
      {"title: what\n  it is\n# a word\nbroken: [\n", "what it is"},
      {"title: |-\n  what:\n\n  it is\nbroken: [\n", "what:\n\nit is"},
      {"{name: a, title: what it is}", "what it is"},
      {"name: {title: not this}\ntitles: nor this\n", ""},
      {"name: a\ntitle: what it is", "what it is"},
  }));
  put_bytes(folder.file("a.yaml"), text);
  CHECK(heading_in(folder.file("a.yaml"), "title") == title);
}
