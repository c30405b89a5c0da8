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

TEST_CASE("numbers in quotes are numbers where they are values", "[scenarios]") {
  CHECK(with_bare_numbers(R"({"1": "2e8", "a": ["3", "x", ""], "b": "4 5"})") ==
        R"({"1":  2e8 , "a": [ 3 , "x", ""], "b": "4 5"})");
  CHECK(with_bare_numbers(R"({"a": "nan", "b": "auto", "c": "\"7\""})") ==
        R"({"a": "nan", "b": "auto", "c": "\"7\""})");
  CHECK(with_bare_numbers("\"1") == "\"1");
}

}  // namespace stepsim
