#include "topology/prices.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

Provider provider_of(const std::string& text) {
  const Document file = parse_document(text, "own.yaml");
  Provider provider = read_provider(file.root());
  file.finish();
  return provider;
}

TEST_CASE("every provider rents cards that there are, and no price is older than it says",
          "[prices]") {
  const Catalogue& data = source_data();
  const std::vector<std::string> names = names_on(data, price_shelf);
  REQUIRE(names.size() > 10);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Document file = open_entry(data, price_shelf, name);
    const Provider provider = read_provider(file.root());
    file.finish();
    CHECK(provider.name == name);
    CHECK_FALSE(provider.prices.empty());
    for (const Price& price : provider.prices) {
      CHECK(is_on(data, gpu_shelf, price.gpu));
      CHECK(price.date >= provider.oldest);
      CHECK(price.rate > 0.05);
      CHECK(price.rate < 30);
    }
  }
}

TEST_CASE("a price is that of as many GPUs as a node has, and the cheapest of those", "[prices]") {
  const Catalogue& data = source_data();
  const auto price = [&](std::string_view said, const char* node) {
    return price_called(data, said, load_cluster(data, {.name = node, .nodes = {}, .network = ""}));
  };
  CHECK(price("lambda", "h100-8").rate == 3.99);
  CHECK(price("lambda", "h100-1").rate == 4.29);
  CHECK(price("aws:reserved-3y", "h100-8").rate < price("aws", "h100-8").rate);
  const Price cheapest = price("cheapest", "h100-8");
  for (const char* name : {"aws", "coreweave", "lambda"})
    CHECK(cheapest.rate <= price(name, "h100-8").rate);
  CHECK_THROWS_WITH(price("lamda", "h100-8"), Catch::Contains("did you mean \"lambda\"?"));
  CHECK_THROWS_WITH(price("lambda:often", "h100-8"),
                    Catch::Contains("\"often\" is no kind of price"));
  CHECK_THROWS_WITH(price("lambda", "mi355x-8"), Catch::Contains("nobody here has: say the money"));
}

TEST_CASE("a price without its day, or older than its file says, is refused", "[prices]") {
  const std::string head = "name: own\ntitle: Own\ncurrency: EUR\noldest: 2026-01-01\nrates:\n  - ";
  CHECK(provider_of(head + "{gpu: h100-sxm, kind: spot, price: 2, date: 2026-02-03, source: bill}")
            .prices.front()
            .rate == 2);
  CHECK_THROWS_WITH(
      provider_of(head + "{gpu: h100-sxm, kind: spot, price: 2, date: 2025-12-31, source: bill}"),
      Catch::Contains("2025-12-31 is before 2026-01-01, the oldest of this file"));
  CHECK_THROWS_WITH(
      provider_of(head + "{gpu: h100-sxm, kind: spot, price: 2, date: May, source: bill}"),
      Catch::Contains("expected a date such as 2026-09-20, found \"May\""));
  CHECK_THROWS_WITH(
      provider_of(head + "{gpu: h100-sxm, kind: cheap, price: 2, date: 2026-02-03, source: bill}"),
      Catch::Contains("expected one of on-demand, spot, reserved-1y, reserved-3y"));
}

}  // namespace
}  // namespace stepsim
