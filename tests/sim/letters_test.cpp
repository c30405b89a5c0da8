// Letters: small ones, and bytes that are none.
#include "sim/base/letters.hpp"

#include <array>

#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("capital letters become small ones, and nothing else changes", "[sim]") {
  CHECK(in_small_letters("MI300X-8 \xC3\x84") == "mi300x-8 \xC3\x84");
}

TEST_CASE("what can be seen stays", "[sim]") {
  for (const std::string text :
       {"a \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80", "two\n\tlines", "\xC2\xA0",
        "\xE4\xBD\xA0\xE5\xA5\xBD \xD8\xB3\xD9\x84\xD8\xA7\xD9\x85 \xD7\xA9"})
    CHECK(printable(text) == text);
  CHECK(on_one_line("two\n\tlines") == R"(two\u000a\u0009lines)");
}

TEST_CASE("bytes that are no UTF-8 are shown as such", "[sim]") {
  CHECK(printable("a\xFF.yaml") == R"(a\xff.yaml)");
  CHECK(printable("\xC3") == R"(\xc3)");                          // cut off
  CHECK(printable("\xC0\x80") == R"(\xc0\x80)");                  // longer than it has to be
  CHECK(printable("\xED\xA0\x80") == R"(\xed\xa0\x80)");          // half of a pair
  CHECK(printable("\xF4\x90\x80\x80") == R"(\xf4\x90\x80\x80)");  // beyond the last
  CHECK(json_escaped("a\xFF.yaml") == "a\xEF\xBF\xBD.yaml");
}

TEST_CASE("what moves the cursor, turns the writing or hides is an escape, and stays one",
          "[sim]") {
  struct Case {
    std::string_view raw, shown;
  };
  for (const auto& [raw, shown] : std::to_array<Case>({
           {std::string_view("\0", 1), R"(\u0000)"},
           {"\x1b]0;t\a", R"(\u001b]0;t\u0007)"},
           {"\r", R"(\u000d)"},
           {"\x7f", R"(\u007f)"},
           {"\xC2\x80", R"(\u0080)"},
           {"\xC2\x9B", R"(\u009b)"},
           {"\xC2\x9F", R"(\u009f)"},
           {"\xC2\xAD", R"(\u00ad)"},
           {"\xD8\x9C", R"(\u061c)"},
           {"\xE2\x80\x8B", R"(\u200b)"},
           {"\xE2\x80\x8D", R"(\u200d)"},
           {"\xE2\x80\x8E", R"(\u200e)"},
           {"\xE2\x80\x8F", R"(\u200f)"},
           {"\xE2\x80\xA8", R"(\u2028)"},
           {"\xE2\x80\xAA", R"(\u202a)"},
           {"\xE2\x80\xAE", R"(\u202e)"},
           {"\xE2\x81\xA0", R"(\u2060)"},
           {"\xE2\x81\xA6", R"(\u2066)"},
           {"\xE2\x81\xA9", R"(\u2069)"},
           {"\xEF\xB8\x8F", R"(\ufe0f)"},
           {"\xEF\xBB\xBF", R"(\ufeff)"},
           {"\xF3\xA0\x81\x81", R"(\U000e0041)"},
       })) {
    CAPTURE(shown);
    CHECK(printable(raw) == shown);
    CHECK(on_one_line(raw) == shown);
    CHECK(printable(printable(raw)) == shown);
  }
  CHECK(json_escaped("\"\\\n\xC2\x9B\xF3\xA0\x81\x81") == R"(\"\\\u000a\u009b\udb40\udc41)");
}

}  // namespace stepsim
