// Layouts of one model, batch and machine: are they predicted in the order in which they were
// measured?
#include "analysis/studies/fidelity/row_order.hpp"

#include "tests/support/exactly.hpp"

using namespace stepsim;

namespace {

struct Rows {
  std::vector<StepRow> rows;
  std::vector<PredictedRow> predicted;

  StepRow& add(std::string id, double measured, double made) {
    StepRow& row = rows.emplace_back();
    row.id = id;
    row.printed = {{"model", "a model"}, {"gpus", "8"}, {"global_batch_seqs", "64"}};
    PredictedRow& result = predicted.emplace_back();
    result.id = id;
    result.scenario = "name: " + id + "\nmodel: a model\njob: of " + id;
    result.timed = true;
    result.measured_tokens_per_gpu = measured;
    result.tokens_per_gpu = made;
    return row;
  }
  std::vector<OrderedGroup> groups() const { return ordered_groups(rows, predicted); }
};

}  // namespace

TEST_CASE("pairs that differ tellably count, and those that are alike do not", "[analysis]") {
  Rows table;
  table.add("slow", 100, 90);
  table.add("alike", 103, 80);  // 3 % faster than the first: nobody can tell
  table.add("fast", 120, 110);
  const std::vector<OrderedGroup> groups = table.groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups.front().rows == 3);
  CHECK(groups.front().pairs == 2);
  CHECK(groups.front().right == 2);
  CHECK(groups.front().picked == "fast");
  CHECK(groups.front().lost == 0);
}

TEST_CASE("a wrong pick loses what the best would have saved", "[analysis]") {
  Rows table;
  table.add("best", 120, 80);
  table.add("picked", 100, 90);
  const OrderSummary all = summary_of(table.groups());
  CHECK(all.pairs == 1);
  CHECK(all.right == 0);
  CHECK_THAT(all.worst_lost, exactly(0.2));
}

TEST_CASE("a layout that was measured twice counts once, with the mean", "[analysis]") {
  Rows table;
  table.add("first", 100, 90);
  table.add("again", 120, 90);
  table.predicted.back().scenario = "name: again\nmodel: a model\njob: of first";
  CHECK(table.groups().empty());  // one layout
  table.add("other", 108, 80);
  const std::vector<OrderedGroup> groups = table.groups();
  REQUIRE(groups.size() == 1);
  CHECK(groups.front().rows == 3);
  CHECK(groups.front().pairs == 0);  // 110 beside 108
  CHECK(groups.front().picked == "first");
  CHECK(groups.front().lost == 0);
}

TEST_CASE("rows of other batches, GPUs or states of a machine are no group", "[analysis]") {
  Rows table;
  table.add("one", 100, 100);
  table.add("batch", 120, 100).printed["global_batch_seqs"] = "128";
  table.add("gpus", 120, 100).printed["gpus"] = "16";
  table.add("state", 120, 100).printed["notes"] = "tuned later; this row is before that";
  table.add("no batch", 120, 100).printed.erase("global_batch_seqs");
  CHECK(table.groups().empty());
  table.add("the same", 120, 100);
  CHECK(table.groups().size() == 1);
}
