#include "sim/base/record.hpp"

#include "tests/support/catch.hpp"

using namespace stepsim;

namespace {

struct Range {
  double low = 0, high = 0;
};

Records row(std::string name, std::optional<double> error) {
  return {{"id", "row", name},
          {"step_s", "step time", Seconds{102.0 / 7}},
          {"error", "error", error, Measure::error},
          {"interval_s", "8 of 10 draws", std::optional<Range>({1, 2}), Measure::seconds},
          {"tags", "tags", list_of({"x", "y"})}};
}

Records result() {
  return {{"title", "name of it", std::string("a \"b\"")},
          {"fits", "whether it fits", true},
          {"bytes", "what it needs", Bytes{5e9}},
          {"host", "a node's host",
           Records{{"gpus", "GPUs", 8}, {"none", "unknown", std::optional<bool>()}}},
          {"rows", "one for each row",
           list_of(std::vector{0.5, -1.0}, [](double error) { return row("r", error); })}};
}

}  // namespace

TEST_CASE("a result as JSON keeps keys, order and all digits", "[sim]") {
  CHECK(to_json(Records{}) == "{}\n");
  const std::string text = to_json(result());
  CHECK(
      text.starts_with("{\"title\": \"a \\\"b\\\"\", \"fits\": true, \"bytes\": 5000000000, "
                       "\"host\": {\"gpus\": 8, \"none\": null}, \"rows\": [{\"id\": \"r\", "
                       "\"step_s\": 14.571428571428571, \"error\": 0.5, "
                       "\"interval_s\": [1, 2], \"tags\": [\"x\", \"y\"]}, "));
}

TEST_CASE("the same rows as a table have heads, units and a dash for what is missing", "[sim]") {
  const RecordList rows = list_of(std::vector<std::optional<double>>{0.5, std::nullopt},
                                  [](const auto& error) { return row("r", error); });
  CHECK(render(table_of(rows.items, "id; step_s; error; interval_s; tags=marks")) ==
        "row  step time    error     8 of 10 draws  marks\n"
        "---  ---------  -------  ----------------  -----\n"
        "r       14.6 s  +50.0 %  1.00 s to 2.00 s  x, y\n"
        "r       14.6 s        -  1.00 s to 2.00 s  x, y\n");
  CHECK_THROWS_WITH(table_of(rows.items, "eror"), "a record has no \"eror\"");
}

TEST_CASE("the same rows as CSV have keys above and all digits", "[sim]") {
  const RecordList rows = list_of(std::vector<int>{1, 2}, [](int i) -> Records {
    return {{"n", "number", i},
            {"t_s", "time", Seconds{0.1 * i}},
            {"why", "reason", i == 1 ? std::optional<std::string>() : "a, b"}};
  });
  CHECK(to_csv(rows.items) == "n,t_s,why\n1,0.1,\n2,0.2,\"a, b\"\n");
}

TEST_CASE("a schema says every key, its type and what it is", "[sim]") {
  CHECK(schema_of(result()) ==
        "| Key | Type | What it is |\n| --- | --- | --- |\n"
        "| `title` | text | name of it |\n"
        "| `fits` | true or false | whether it fits |\n"
        "| `bytes` | number, B | what it needs |\n"
        "| `host` | object | a node's host |\n"
        "| `host.gpus` | number | GPUs |\n"
        "| `host.none` | true or false, or null | unknown |\n"
        "| `rows` | list | one for each row |\n"
        "| `rows[].id` | text | row |\n"
        "| `rows[].step_s` | number, s | step time |\n"
        "| `rows[].error` | number, of one, or null | error |\n"
        "| `rows[].interval_s` | [low, high], s, or null | 8 of 10 draws |\n"
        "| `rows[].tags` | list | tags |\n");
}
