// Comments in JSON: what is a comment and what is a text.
#include "scenarios/foreign/text/relaxed_json.hpp"

#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("comments become spaces, lines and texts stay", "[scenarios]") {
  const auto plain = [](const std::string& text) { return without_comments(text, "a.json"); };
  CHECK(plain("{\"a\": 1} // b\n# c\n") == "{\"a\": 1}     \n   \n");
  CHECK(plain("{/* a\n b */\"c\": 1}") == "{    \n     \"c\": 1}");
  CHECK(plain(R"({"a": "http://b/*c*/ # d"})") == R"({"a": "http://b/*c*/ # d"})");
  CHECK(plain(R"({"a\"//": "\\"} //)") == R"({"a\"//": "\\"}   )");
  CHECK(plain("\"never closed // ") == "\"never closed // ");
  CHECK_THROWS_WITH(plain("{\n/* a"), "a.json:2: a comment is never closed");
}

}  // namespace stepsim
