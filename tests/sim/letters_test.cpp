// Letters: small ones, and bytes that are none.
#include "sim/base/letters.hpp"

#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("capital letters become small ones, and nothing else changes", "[sim]") {
  CHECK(in_small_letters("MI300X-8 \xC3\x84") == "mi300x-8 \xC3\x84");
}

TEST_CASE("text in UTF-8 stays, other bytes are marked", "[sim]") {
  const std::string text = "a \xC3\xA4 \xE2\x82\xAC \xF0\x9F\x98\x80";
  CHECK(as_utf8(text) == text);
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(as_utf8("a\xFF.yaml") == "a" + mark + ".yaml");
  CHECK(as_utf8("\xC3") == mark);                                   // cut off
  CHECK(as_utf8("\xC0\x80") == mark + mark);                        // longer than it has to be
  CHECK(as_utf8("\xED\xA0\x80") == mark + mark + mark);             // half of a pair
  CHECK(as_utf8("\xF4\x90\x80\x80") == mark + mark + mark + mark);  // beyond the last
}

}  // namespace stepsim
