// Keys of GRPO jobs that recipes and ranges have a say in.
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "workloads/grpo/lengths.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

}  // namespace

TEST_CASE("a time that nobody published has a range to draw from", "[grpo]") {
  const std::vector<Setting> settings{
      {"job.verify_time", "{value: 10 ms, low: 3 ms, high: 30 ms, grade: guess, source: nobody}"}};
  const auto time = [&](const MaybeDraw& draw) {
    return load_scenario(data, "colocated-8b", settings, draw).grpo->verify_time.value;
  };
  CHECK(time({}) == Approx(0.01));
  const double drawn = time(Draw{.seed = 3, .sample = 1, .of = 8});
  CHECK(drawn != Approx(0.01));
  CHECK(drawn > 0.003);
  CHECK(drawn < 0.03);
}

TEST_CASE("a protocol that a recipe's program has not is refused", "[grpo]") {
  const auto message = [](const char* recipe, const char* protocol) -> std::string {
    try {
      load_scenario(data, "colocated-8b",
                    std::vector<Setting>{{"recipe", recipe}, {"job.sync_protocol", protocol}});
    } catch (const UserError& error) {
      return error.problems().front().key + ": " + error.problems().front().message;
    }
    return "";
  };
  CHECK(message("nemo-rl", "v3") ==
        "job.sync_protocol: v3 is not in NeMo-RL's trainer, which has buckets");
  CHECK(message("verl", "files") ==
        "job.sync_protocol: files is not in verl's trainer, which has buckets, host_buckets");
  CHECK(message("verl", "host_buckets").empty());
}

TEST_CASE("a mean behind the limit is that of what the limit leaves", "[grpo]") {
  const auto mean = [](const std::string& said) {
    return mean_response(
        *load_scenario(data, "colocated-8b",
                       std::vector<Setting>{{"job.response_lengths.mean", said},
                                            {"job.response_lengths.behind_limit", "true"}})
             .grpo);
  };
  CHECK(mean("800") == Approx(800).epsilon(1e-6));
  CHECK(mean("2500") == Approx(2500).epsilon(1e-6));
  try {
    mean("3072");
    FAIL("a mean at the limit is no mean behind it");
  } catch (const UserError& error) {
    CHECK(error.problems().front().message ==
          "behind the limit it is less than response_length (3072)");
  }
}
