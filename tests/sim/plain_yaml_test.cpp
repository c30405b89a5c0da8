#include "sim/base/plain_yaml.hpp"

#include <filesystem>

#include "sim/base/whole_file.hpp"
#include "sim/base/yaml_tree.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/same_tree.hpp"

using namespace stepsim;
using detail::parse_plain_yaml;

namespace {

// Nothing where the text is no YAML, or has keys that stand twice.
std::optional<detail::Node> read_by_the_other(std::string_view text) {
  detail::Notes notes;
  try {
    detail::Node tree = detail::parse_any_yaml(text, "a.yaml", notes);
    if (notes.problems.empty()) return tree;
  } catch (const UserError&) {
  }
  return std::nullopt;
}

bool is_plain(std::string_view text) {
  const auto plain = parse_plain_yaml(text);
  if (!plain) return false;
  const auto other = read_by_the_other(text);
  INFO(text);
  CHECK(other);
  if (other) CHECK(same_tree(*plain, *other));
  return true;
}

}  // namespace

TEST_CASE("what people write is read as the parser of all YAML reads it", "[sim]") {
  CHECK(is_plain("a: 1"));
  CHECK(is_plain("word\n"));
  CHECK(is_plain("# of\n\na: b c  # d\n\n  # e\nf:\n  g: x#y\n  h: http://x/y?z\n"));
  CHECK(is_plain("a:\nb: ~\nc: null\nd: 'null'\ne: \"\"\nf:\n"));
  CHECK(is_plain("a:\n- b\n- c: 1\n  d: 2\n- - x\n  - y\ne:\n  - 'f: g'\n  -  {h: 1}\n"));
  CHECK(is_plain("a: {b: 1, c: [x, \"y, z\", {d: e}], f: {}, g: []}  # h\ni: -1\nj: [-2, -.5]\n"));
  CHECK(is_plain("{\"a\": 1,  # b\n \"c\":\n [\n1\n,\n2] }\n"));
  CHECK(is_plain("a: >-\n  b c\n  # d: e\nf: |\n  g\n  h\n\n# i\nj: >\n  k\n"));
  CHECK(is_plain("a:\n  b: |-\n    c\n\n  d: 1\n"));
  CHECK(is_plain("\"a.b*\": 1\n'c d': 2\ne f: \u00e9\n"));
}

TEST_CASE("what is not read plainly is left to the parser of all YAML", "[sim]") {
  for (const std::string_view text : {"",
                                      "# nothing\n",
                                      "a: 1\na: 2\n",
                                      "a: *b\n",
                                      "a: &b 1\n",
                                      "a: !c 1\n",
                                      "? a\n: b\n",
                                      "a: b\n  c\n",
                                      "a: \"b\n  c\"\n",
                                      "a: \"\\n\"\n",
                                      "a: 'b''c'\n",
                                      "a:\tb\n",
                                      "a: b\r\n",
                                      "a: 1\n---\nb: 2\n",
                                      "a: 1\n...\nb: 2\n",
                                      "%YAML 1.2\n---\na: 1\n",
                                      "a: b: c\n",
                                      "a: 'b' c\n",
                                      "a: {b}\n",
                                      "a: [b: c]\n",
                                      "a: {b: }\n",
                                      "a: [b,]\n",
                                      "a: [b\n c]\n",
                                      "a: {b:c}\n",
                                      "a: [\n",
                                      "a: {b: c\n",
                                      "a: \"b\n",
                                      "a: >\n  b\n\n  c\n",
                                      "a: >\n  b\n    c\n",
                                      "a: |2\n  b\n",
                                      "a: >\n",
                                      "a: b\n c: d\n",
                                      "  a: b\nc: d\n",
                                      "a:\n    b: 1\n  c: 2\n",
                                      "- a\nb: c\n",
                                      "a: 1\n- b\n",
                                      "null: 1\n",
                                      "a: {<<: {b: 1}}\n",
                                      "a: - b\n",
                                      "-\n  a: 1\n",
                                      "a: @b\n",
                                      "a: `b\n",
                                      "a: [b?c]\n",
                                      "\xef\xbb\xbf"
                                      "a: 1\n"})
    CHECK_FALSE(is_plain(text));
  CHECK_FALSE(is_plain(std::string(100, '[') + std::string(100, ']')));
}

TEST_CASE("nearly all of the catalogue is read plainly", "[sim]") {
  int files = 0, plain = 0;
  for (const std::string_view folder : {"topology", "workloads", "scenarios", "claims"})
    for (const auto& entry : std::filesystem::recursive_directory_iterator(
             std::filesystem::path(STEPSIM_SOURCE_DATA) / folder)) {
      if (entry.path().extension() != ".yaml") continue;
      ++files;
      plain += is_plain(read_text(entry.path().string())) ? 1 : 0;
    }
  CHECK(files > 500);
  CHECK(plain > 0.95 * files);
}
