// Values put into a document from outside, and the document written out again.
#include "sim/base/config.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {

using Catch::Contains;

TEST_CASE("a value set by its path is read as if the file said so", "[sim]") {
  Document document = parse_document("strategy:\n  zero: 3\njob: {sequence: 10}\n", "a.yaml");
  document.set("strategy.zero", "2");
  document.set("strategy.moe.kernel", "tutel");
  document.set("job.sequence", "4096");
  const Table root = document.root();
  CHECK(root.table("strategy").integer("zero", 0, 3) == 2);
  CHECK(root.table("strategy").table("moe").text("kernel") == "tutel");
  CHECK(root.table("job").integer("sequence", 1, 1 << 20) == 4096);
  CHECK_NOTHROW(document.finish());
}

TEST_CASE("what is set is checked like the rest of the file", "[sim]") {
  Document document = parse_document("strategy:\n  zero: 3\n", "a.yaml");
  document.set("strategy.zer", "2");
  document.root().table("strategy").integer("zero", 0, 3);
  CHECK_THROWS_WITH(document.finish(),
                    Contains("a.yaml: strategy.zer: unknown key (did you mean \"zero\"?)"));
}

TEST_CASE("a path is no deeper than a file", "[sim]") {
  Document document = parse_document("a: 1\n", "a.yaml");
  std::string path = "b";
  for (int i = 0; i < 63; ++i) path += ".b";
  CHECK_NOTHROW(document.set(path, "1"));
  CHECK_THROWS_WITH(document.set(path + ".b", "1"), Contains(".b: is nested too deeply"));
}

TEST_CASE("a path needs a word between its dots", "[sim]") {
  Document document = parse_document("a: 1\n", "a.yaml");
  CHECK_THROWS_WITH(document.set("a..b", "1"), Contains("is no path such as strategy.zero"));
  CHECK_THROWS_WITH(document.set("a.", "1"), Contains("is no path such as strategy.zero"));
}

TEST_CASE("a text that YAML reads as nothing stays a text", "[sim]") {
  const Document file =
      parse_document("a: \"null\"\nb: \"~\"\nc: \"Null\"\nd: \"NULL\"\n", "a.yaml");
  const Document again = parse_document(file.canonical(), "b.yaml");
  CHECK(again.root().text("a") == "null");
  CHECK(again.root().text("b") == "~");
  CHECK(again.root().text("c") == "Null");
  CHECK(again.root().text("d") == "NULL");
  CHECK(again.canonical() == file.canonical());
}

TEST_CASE("the canonical text says the same as the file", "[sim]") {
  const Document file = parse_document(
      "# a comment\nname: \"with: colon\"\nlist: [1, two, {three: 3}]\nempty: {}\nnested:\n  deep: "
      "yes\n",
      "a.yaml");
  const std::string text = file.canonical();
  CHECK(text ==
        "name: \"with: colon\"\nlist:\n  - 1\n  - two\n  -\n    three: 3\nempty: {}\nnested:\n"
        "  deep: yes\n");
  CHECK(parse_document(text, "b.yaml").canonical() == text);
}

}  // namespace stepsim
