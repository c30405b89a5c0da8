// What fits, and what would make it fit.
#include "analysis/studies/footprint.hpp"

#include "analysis/studies/interval.hpp"
#include "analysis/studies/worker.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {
namespace {

const std::string data = STEPSIM_SOURCE_DATA;

Scenario seed(const std::string& name, std::vector<Setting> settings = {}) {
  return load_scenario(data, name, settings);
}

}  // namespace

TEST_CASE("a run that fits says so, and its classes add up to what it needs", "[analysis]") {
  const Footprint needs = footprint(seed("llama32-3b-sft-zero3"));
  double sum = needs.resident + needs.slack;
  for (const auto& [name, bytes] : needs.peak.classes) sum += bytes;
  CHECK(needs.fit() == Fit::fits);
  CHECK(std::abs(sum - needs.needed()) < 1e-9 * needs.needed());
}

TEST_CASE("every remedy for a run that does not fit makes it fit, and changes one thing",
          "[analysis]") {
  const Scenario scenario = seed("mpt7b-zero2-oom");
  REQUIRE(footprint(scenario).fit() == Fit::oom);
  const std::vector<Remedy> list = remedies(scenario);
  CHECK(!list.empty());
  for (const Remedy& remedy : list) {
    CAPTURE(remedy.change);
    CHECK(remedy.footprint.fit() != Fit::oom);
  }
}

TEST_CASE("the largest micro-batch that fits is the largest", "[analysis]") {
  const std::vector<Setting> far_too_large{{"job.micro_batch", "256"}};
  const Scenario scenario = seed("llama32-3b-sft-zero3", far_too_large);
  REQUIRE(footprint(scenario).fit() == Fit::oom);
  const std::vector<Remedy> list = remedies(scenario);
  REQUIRE(!list.empty());
  REQUIRE(list.front().change.starts_with("job.micro_batch: "));
  const std::int64_t largest = std::stoll(list.front().change.substr(17));
  Scenario changed = scenario;
  changed.job.micro_batch = largest;
  CHECK(footprint(changed).fit() != Fit::oom);
  changed.job.micro_batch = largest + 1;
  CHECK(footprint(changed).fit() == Fit::oom);
}

TEST_CASE("the same question has the same interval, and more doubt a wider one", "[analysis]") {
  const IntervalQuestion question{
      .data = data, .scenario = "llama32-3b-sft-zero3", .settings = {}, .samples = 6};
  const Interval first = step_time_interval(question), second = step_time_interval(question);
  CHECK(first.low == second.low);
  CHECK(first.high == second.high);
  CHECK(first.low < first.high);
}

TEST_CASE("workers answer in the order of their tasks, however many run at once", "[analysis]") {
  std::vector<std::function<std::string()>> tasks;
  for (int i = 0; i < 7; ++i) tasks.emplace_back([i] { return std::to_string(i * i); });
  for (const std::size_t at_once : {1u, 2u, 5u}) {
    const std::vector<std::string> answers = in_workers(tasks, at_once);
    REQUIRE(answers.size() == tasks.size());
    for (int i = 0; i < 7; ++i)
      CHECK(answers[static_cast<std::size_t>(i)] == std::to_string(i * i));
  }
}

}  // namespace stepsim
