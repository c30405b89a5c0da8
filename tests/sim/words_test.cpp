// These tests read members of an enumeration by their words.
#include "sim/base/words.hpp"

#include "tests/support/exactly.hpp"

namespace stepsim {
namespace {

enum class Meal : std::uint8_t { bread, soup };
constexpr std::array<std::string_view, 2> meal_words{"bread", "soup"};

TEST_CASE("words become members, and others are problems with the nearest word", "[sim]") {
  CHECK(member_of<Meal>(meal_words, "soup") == Meal::soup);
  CHECK_FALSE(member_of<Meal>(meal_words, "tea"));
  const Document document = parse_document("meal: soup\nall: [soup, bred]\nbad: tea\n", "day.yaml");
  const Table root = document.root();
  CHECK(read_word<Meal>(root, "meal", meal_words) == Meal::soup);
  CHECK(read_members<Meal>(root, "all", meal_words, root.texts("all")) == std::vector{Meal::soup});
  CHECK(read_word<Meal>(root, "bad", meal_words) == Meal::bread);
  CHECK_THROWS_WITH(document.finish(),
                    Catch::Contains("all: expected bread or soup, found \"bred\" (did you mean "
                                    "\"bread\"?)") &&
                        Catch::Contains("bad: expected bread or soup, found \"tea\""));
}

}  // namespace
}  // namespace stepsim
