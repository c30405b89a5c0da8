#include "sim/base/json.hpp"

#include <cmath>
#include <cstdlib>

#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

std::string number(double value) {
  JsonWriter json;
  json.value(value);
  std::string text = json.take();
  text.pop_back();
  return text;
}

}  // namespace

TEST_CASE("objects and lists nest, with commas between and none after", "[analysis]") {
  JsonWriter json;
  json.begin_object().member("a", 1.0).key("list").begin_array().value("x").value(true).null();
  json.begin_object().end_object().begin_array().end_array().end_array().member("b", false);
  json.end_object();
  CHECK(json.take() == "{\"a\": 1, \"list\": [\"x\", true, null, {}, []], \"b\": false}\n");
}

TEST_CASE("quotes, backslashes and control characters are escaped", "[analysis]") {
  JsonWriter json;
  json.value("say \"no\" \\ \n\t\x01 \u00b5");
  CHECK(json.take() == "\"say \\\"no\\\" \\\\ \\u000a\\u0009\\u0001 \u00b5\"\n");
}

TEST_CASE("numbers read back to the same bits", "[analysis]") {
  const double value =
      GENERATE(0.0, -1.5, 0.1, 1.0 / 3, 1e-300, 6.02214076e23, 123456789012345678.0, 5e-324);
  CHECK(std::strtod(number(value).c_str(), nullptr) == value);
}

TEST_CASE("what is no number is null", "[analysis]") {
  CHECK(number(std::nan("")) == "null");
  CHECK(number(HUGE_VAL) == "null");
}
