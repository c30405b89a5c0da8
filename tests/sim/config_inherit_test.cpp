#include "sim/base/config.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;
using Catch::Contains;

namespace {

std::string merged(std::string_view text, std::string_view base) {
  Document document = parse_document(text, "new.yaml");
  document.inherit(parse_document(base, "base.yaml"), {"name"});
  return document.canonical();
}

}  // namespace

TEST_CASE("a file says only what is different", "[sim]") {
  CHECK(
      merged("name: new\nhost: {cores: 2}\n", "name: base\nhost: {cores: 1, sockets: 1}\nx: y\n") ==
      "name: new\nhost:\n  cores: 2\n  sockets: 1\nx: y\n");
}

TEST_CASE("a constant is replaced as a whole", "[sim]") {
  CHECK(merged("c: {value: 1 s, grade: guess}\n", "c: {value: 2 s, low: 1 s, grade: measured}\n") ==
        "c:\n  value: \"1 s\"\n  grade: guess\n");
}

TEST_CASE("what the base has and the file has not is null there", "[sim]") {
  const Document document = [] {
    Document own = parse_document("peak: {bf16: 2, fp8: null}\n", "new.yaml");
    own.inherit(parse_document("peak: {bf16: 1, fp8: 1}\n", "base.yaml"), {});
    return own;
  }();
  CHECK(document.root().table("peak").has("bf16"));
  CHECK_FALSE(document.root().table("peak").has("fp8"));
}

TEST_CASE("entries with a name meet those of the same name, in the order of the base", "[sim]") {
  CHECK(merged("links: [{name: b, rate: 2}, {name: c}]\n",
               "links: [{name: a, rate: 1}, {name: b, rate: 1, wide: yes}]\n") ==
        "links:\n  -\n    name: a\n    rate: 1\n  -\n    name: b\n    rate: 2\n    wide: yes\n  "
        "-\n    "
        "name: c\n");
  CHECK(merged("list: [1]\n", "list: [2, 3]\n") == "list:\n  - 1\n");
}

TEST_CASE("what came from the base has no line in the file", "[sim]") {
  Document document = parse_document("name: new\n", "new.yaml");
  document.inherit(parse_document("\n\nhost: {cores: many}\n", "base.yaml"), {});
  document.root().text("name");
  document.root().table("host").integer("cores", 1, 4);
  CHECK_THROWS_WITH(document.finish(), Contains("new.yaml: host.cores: expected a plain number"));
}

TEST_CASE("what lies under a file fills its gaps and says where it came from") {
  Document file = parse_document("a: 1\nblock: {b: 2}\n", "top.yaml");
  file.underlay(parse_document("a: 7\nblock: {b: 8, c: 3}\nlist: [1]\n", "base.yaml"), "the base");
  file.underlay(parse_document("block: {c: 9, d: 4}\n", "lowest.yaml"), "the lowest");
  const Table root = file.root(), block = root.table("block");
  CHECK(root.integer("a", 0, 10) == 1);
  CHECK(block.integer("b", 0, 10) == 2);
  CHECK(block.integer("c", 0, 10) == 3);
  CHECK(block.integer("d", 0, 10) == 4);
  CHECK(root.origin("a")->source.empty());
  CHECK(root.origin("a")->line == 1);
  CHECK(block.origin("c")->source == "the base");
  CHECK(block.origin("d")->source == "the lowest");
  CHECK(!root.origin("nowhere"));
}
