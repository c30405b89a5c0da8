// Which points a sweep has.
#include "analysis/studies/sweep/sweep_plan.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

std::vector<std::string> values_of(std::string_view text) {
  std::vector<std::string> values;
  for (const auto& choice : parse_axis("--vary", text).choices) values.push_back(choice.front());
  return values;
}

using Words = std::vector<std::string>;

std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an axis is a list, a range or both", "[sweep]") {
  CHECK(values_of("a.b=1,2,4") == Words{"1", "2", "4"});
  CHECK(values_of("a.b=2:5") == Words{"2", "3", "4", "5"});
  CHECK(values_of("a.b=4:16:4") == Words{"4", "8", "12", "16"});
  CHECK(values_of("a.b=1:20:*2") == Words{"1", "2", "4", "8", "16"});
  CHECK(values_of("a.b=0.1:0.5:0.1") == Words{"0.1", "0.2", "0.3", "0.4", "0.5"});
  CHECK(values_of("a.b=1, 4:6, 9") == Words{"1", "4", "5", "6", "9"});
  CHECK(values_of("a.b=[4, 4],[1],'x,y'") == Words{"[4, 4]", "[1]", "'x,y'"});
  CHECK(values_of("a.b=25 GB/s") == Words{"25 GB/s"});
}

TEST_CASE("the last axis runs fastest, and conditions leave points out", "[sweep]") {
  SweepPlan plan;
  plan.fixed = {{"c", "7"}};
  plan.axes = {parse_axis("--vary", "a=1,2"), parse_axis("--vary", "b=10,20,30")};
  CHECK(expand(plan) ==
        std::vector<SweepValues>{
            {"1", "10"}, {"1", "20"}, {"1", "30"}, {"2", "10"}, {"2", "20"}, {"2", "30"}});
  plan.where = {"a * b <= 20", "b != 10 or a == 1"};
  CHECK(expand(plan) == std::vector<SweepValues>{{"1", "10"}, {"1", "20"}});
  CHECK(settings_of(plan, {"1", "20"}) ==
        std::vector<Setting>{{"c", "7"}, {"a", "1"}, {"b", "20"}});
}

TEST_CASE("a sweep file says the same as options do", "[sweep]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("sweep.yaml");
  put_bytes(file, R"(
scenario: here.yaml
set: {job.epochs: 1}
vary: {cluster.nodes: 2:4, strategy.zero: [2, 3]}
zip:
  job.micro_batch: [1, 2]
  job.gradient_accumulation: [4, 2]
list:
  - {model: a}
  - {model: b, job.learners: [4, 4]}
where: [cluster.nodes > 2]
)");
  const SweepPlan plan = read_sweep_file(file);
  CHECK(is_sweep_file(file));
  CHECK(plan.keys() == Words{"cluster.nodes", "strategy.zero", "job.micro_batch",
                             "job.gradient_accumulation", "model", "job.learners"});
  const auto points = expand(plan);
  CHECK(points.size() == 2 * 2 * 2 * 2);
  CHECK(points.front() == SweepValues{"3", "2", "1", "4", "a", ""});
  CHECK(points.back() == SweepValues{"4", "3", "2", "2", "b", "[4, 4]"});
  CHECK(settings_of(plan, points.front()).size() == 1 + 5);
}

TEST_CASE("an axis that cannot be meant is refused", "[sweep]") {
  const auto axis = [](std::string_view text) {
    return complaint([&] { parse_axis("--vary", text); });
  };
  CHECK(axis("cluster.nodes") ==
        "--vary: expected KEY=VALUES such as cluster.nodes=2:32, found \"cluster.nodes\"");
  CHECK(axis("a=1,,2") == "--vary a: a value is missing between the commas");
  CHECK(axis("a=5:2") == "--vary a: \"5:2\" runs backwards");
  CHECK(axis("a=1:8:0") == "--vary a: \"1:8:0\" never arrives: expected a step above 0");
  CHECK(axis("a=0:8:*2") ==
        "--vary a: \"0:8:*2\" never arrives: expected a step above 1, and a start above 0");
  CHECK(complaint([] {
          zip("--zip", Words{"a=1,2", "b=1,2,3"});
        }) == "--zip: a has 2 values and b has 3: they move together");
  CHECK(axis("a=1:1e9") == "--vary a: \"1:1e9\" is more than 1048576 values");
  CHECK(axis("a=1:1e300:*1.0001") == "--vary a: \"1:1e300:*1.0001\" is more than 1048576 values");
  CHECK(axis("a=1:1e6,1:1e6,1:1e6") == "--vary a: more than 1048576 values in one list");
  SweepPlan plan;
  CHECK(complaint([&] { expand(plan); }) ==
        "nothing is varied: --vary KEY=VALUES such as cluster.nodes=2:32");
  plan.axes = {parse_axis("--vary", "a=1"), parse_axis("--vary", "a=2")};
  CHECK(complaint([&] { expand(plan); }) == "a is varied twice");
  plan.axes = {parse_axis("--vary", "a=1:1e6")};
  for (int i = 0; i < 20; ++i) plan.axes.push_back(Axis{{"b" + std::to_string(i)}, {{"1"}}});
  CHECK(complaint([&] { expand(plan); }) ==
        "1000000 points of 21 settings are more than 16777216 values");
  plan.axes = {parse_axis("--vary", "a=1")};
  plan.fixed = {{"a", "2"}};
  CHECK(complaint([&] { expand(plan); }) == "a is both set and varied");
  plan.fixed.clear();
  plan.where = {"a > 1"};
  CHECK(complaint([&] { expand(plan); }) ==
        "no point is left: no combination meets every condition");
  plan.where = {"b > 1"};
  CHECK(complaint([&] { expand(plan); }) == "where: nothing is called \"b\"\n  b > 1\n    ^");
}

}  // namespace stepsim
