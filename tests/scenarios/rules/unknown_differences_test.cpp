// What tells two scenarios apart and is not modelled.
#include "scenarios/rules/rules.hpp"
#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

std::vector<std::string> between(const Scenario& a, const Scenario& b) {
  return unknown_differences({"A", a}, {"B", b});
}

}  // namespace

TEST_CASE("keys that are not modelled differ where one side says something else", "[scenarios]") {
  Scenario a, b;
  a.job.packed = b.job.packed = true;
  CHECK(between(a, b).empty());
  a.unmodelled = b.unmodelled = {{"fp8", "true", "products in 8 bits"}};
  CHECK(between(a, b).empty());
  b.unmodelled.front().value = "false";
  CHECK(between(a, b) == std::vector<std::string>{"fp8 (true in A, false in B): products in 8 "
                                                  "bits"});
  b.unmodelled = {{"dora", "", ""}};
  CHECK(between(a, b) == std::vector<std::string>{"fp8 (true in A, not in B): products in 8 bits",
                                                  "dora (not in A, said in B)"});
}

TEST_CASE("packing cannot be judged where nobody knows how long rows are", "[scenarios]") {
  Scenario open, packed;
  open.job.packed = false;
  packed.job.packed = true;
  REQUIRE(between(packed, open).size() == 1);
  CHECK(between(packed, open).front().starts_with("how long the rows of B are"));
  CHECK(between(open, open).empty());
  open.job.documents.mean = 300;
  CHECK(between(packed, open).empty());
}
