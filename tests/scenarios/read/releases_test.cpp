#include "scenarios/read/releases.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

// The release before this one, as far as facts tell: 0.19 as 0.18.99.
std::string just_before(const std::string& release) {
  auto numbers = *numbers_of_release(release);
  for (std::size_t i = numbers.size(); i-- > 0;)
    if (numbers[i] > 0) {
      --numbers[i];
      for (std::size_t j = i + 1; j < numbers.size(); ++j) numbers[j] = 99;
      break;
    }
  return fmt::format("{}.{}.{}", numbers[0], numbers[1], numbers[2]);
}

// A scenario in which the fact's conditions are met, under a release.
Scenario under_release(const Table& fact, const std::string& program, const std::string& release) {
  Document scenario = parse_document(
      "name: n\nmodel: llama-3.1-8b\ncluster: {node: h100-8}\nstack: deepspeed-hf\n"
      "job: {sequence: 128}\nstrategy: {zero: 3}\n",
      "test.yaml");
  if (program == "openrlhf" || program == "trl") scenario.set("stack", program);
  scenario.set(fmt::format("releases.{}", program), release);
  if (const auto when = fact.table_if("when"))
    for (const std::string& key : when->keys()) {
      std::string value = when->values(key).back();
      if (value == "absent") continue;
      if (value == "nvme") value = "cpu";
      const std::string inside = key == "job.save" ? ".every" : ".rank";
      scenario.set(value == "present" ? key + inside : key, value == "present" ? "8" : value);
    }
  if (scenario.peek("strategy.offload.optimizer")) scenario.set("strategy.zero", "2");
  return read_scenario(data, std::move(scenario), {}, {});
}

// What the keys that a fact sets come to.
std::vector<std::string> values_of(const Scenario& scenario, const std::string& program) {
  std::vector<std::string> values;
  for (const ResolvedKey& key : resolved_keys(scenario))
    if (key.path() != fmt::format("{}.{}", releases_block, program))
      values.push_back(fmt::format("{}: {}", key.path(), key.value));
  return values;
}

}  // namespace

TEST_CASE("two releases differ by each fact", "[releases]") {
  for (const std::string& program : names_on(data, release_shelf)) {
    const Document file = open_entry(data, release_shelf, program);
    CHECK(release_lines(file.root()).size() > 1);
    CHECK_NOTHROW(file.finish());
    for (const Table& fact : file.root().tables("facts"))
      for (const char* edge : {"from", "before"}) {
        const std::string second = fact.text_or(edge, "");
        if (second.empty()) continue;
        const std::string first = just_before(second);
        INFO(program << " " << first << " and " << second << ": " << fact.text("what"));
        if (fact.has("set"))
          CHECK(values_of(under_release(fact, program, first), program) !=
                values_of(under_release(fact, program, second), program));
        if (fact.has("absent"))
          CHECK(release_words(data, program, first) != release_words(data, program, second));
        if (const auto keys = fact.texts_or("keys"); !keys.empty())
          CHECK(release_with(data, program, keys) == fact.text("last"));
      }
  }
}

TEST_CASE("a release is numbers with dots", "[releases]") {
  CHECK(is_release("0.14"));
  CHECK(is_release("v0.14.0"));
  CHECK(is_release("0.5.2.post1"));
  CHECK(is_release("2.0rc1"));
  CHECK(is_release("2.1.0+cu121"));
  CHECK(is_release("5"));
  CHECK_FALSE(is_release("new"));
  CHECK_FALSE(is_release(""));
  CHECK_FALSE(is_release("-1.2"));
  CHECK(within_releases("0.18.99", "0.18.5", "0.19"));
  CHECK_FALSE(within_releases("0.19", "0.18.5", "0.19"));
  CHECK_FALSE(within_releases("0.18.4", "0.18.5", ""));
}

TEST_CASE("what a release says has the release as its origin", "[releases]") {
  const Scenario scenario = read_scenario(
      data,
      parse_document("name: n\nmodel: llama-3.1-8b\ncluster: {node: h100-8}\nstack: trl\n"
                     "releases: {trl: 0.14}\njob: {sequence: 128}\nstrategy: {zero: 3}\n",
                     "test.yaml"),
      {}, {});
  CHECK(scenario.strategy.checkpointing == Checkpointing::none);
  CHECK(scenario.strategy.cross_entropy == CrossEntropy::logits);
  CHECK(releases_text(data, scenario) == "trl 0.14");
  const auto keys = resolved_keys(scenario);
  const auto place = std::ranges::find(keys, "strategy.checkpointing", &ResolvedKey::path);
  REQUIRE(place != keys.end());
  CHECK(origin_text(*place) == "release trl 0.14");
}

}  // namespace stepsim
