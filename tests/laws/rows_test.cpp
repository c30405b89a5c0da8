// A row of a measured table and the scenario that it is exported as are one run.
#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "analysis/studies/fidelity/row_validation.hpp"
#include "analysis/studies/predict/prediction.hpp"
#include "cli/row_reading.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/defaults.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/step_row.hpp"
#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"
#include "sim/process/worker.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "topology/catalog.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

std::vector<StepRow> all_step_rows() {
  std::vector<StepRow> rows;
  std::set<std::filesystem::path> tables;
  for (const auto& file :
       std::filesystem::directory_iterator(data.file("scenarios/measured/steps")))
    tables.insert(file.path());
  for (const std::filesystem::path& table : tables)
    for (StepRow& row : step_rows(data, read_csv(table.string()))) rows.push_back(std::move(row));
  return rows;
}

std::vector<StepRow> all_rows() {
  std::vector<StepRow> rows = all_step_rows();
  for (StepRow& row : step_rows(data, read_csv(data.file("scenarios/measured/grpo/grpo.csv"))))
    rows.push_back(std::move(row));
  std::erase_if(rows, [](const StepRow& row) { return !row.missing.empty(); });
  return rows;
}

// The file as it is read, with what recipes and stack fill in.
std::string resolved(const std::string& text) {
  Document document = parse_document(text, "row.yaml");
  lay_defaults(data, document);
  return document.canonical();
}

}  // namespace

TEST_CASE("an exported row is read as the row is", "[laws][slow]") {
  const TemporaryFolder folder;
  const std::vector<StepRow> rows = all_rows();
  CHECK(rows.size() >= 390);
  std::vector<PredictedRow> predicted;
  for (const StepRow& row : rows) {
    PredictedRow& made = predicted.emplace_back();
    made.id = row.id;
    made.scenario = row.scenario;
    made.assumed = row.assumed;
  }
  CHECK(export_rows(folder.path(), predicted) == rows.size());
  for (const StepRow& row : rows) {
    CAPTURE(row.id, row.scenario);
    const std::string text = read_file(fmt::format("{}/{}.yaml", folder.path(), row.id));
    CHECK(resolved(text) == resolved(row.scenario));
  }
}

TEST_CASE("who types all that a row's recipes and stack fill in changes nothing", "[laws][slow]") {
  for (const StepRow& row : all_rows()) {
    CAPTURE(row.id);
    const std::string typed = resolved(row.scenario);
    CHECK(resolved(typed) == typed);
  }
}

TEST_CASE("the run of an exported row takes and needs bit for bit what the row does",
          "[laws][slow]") {
  const TemporaryFolder folder;
  const std::vector<StepRow> all = all_step_rows();
  std::vector<StepRow> some;  // each third: all take minutes
  for (std::size_t i = 0; i < all.size(); i += 3) some.push_back(all[i]);
  std::vector<PredictedRow> rows = predict_rows({.data = data, .rows = some});
  export_rows(folder.path(), rows);
  std::erase_if(rows, [](const PredictedRow& row) { return !row.predicted(); });
  Tasks<std::vector<double>> runs;
  for (const PredictedRow& row : rows)
    runs.push_back([&] {
      const std::string file = fmt::format("{}/{}.yaml", folder.path(), row.id);
      const Prediction run = predict(load_scenario(data, file), Kept::figures);
      return std::vector{run.step_time.value, run.memory.needed()};
    });
  const std::vector<std::vector<double>> figures = in_workers(runs, usual_workers());
  CHECK(rows.size() > 140);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].id);
    CHECK(figures[i][1] == rows[i].needed);
    for (const RowFigure& figure : rows[i].figures)
      if (figure.metric == "step_s") CHECK(figures[i][0] == figure.predicted);
  }
}

TEST_CASE("what every stack fills in goes with what a user may choose", "[laws][slow]") {
  for (const std::string& stack : names_on(data, stack_shelf))
    for (const std::string model : {"llama-3.1-8b", "qwen3-30b-a3b"})
      for (const std::string strategy :
           {"{}", "{zero: 0}", "{zero: 1}", "{zero: 2}", "{zero: 3}", "{zero: fsdp}",
            "{checkpointing: full}", "{checkpointing: none}", "{lora: {}}",
            "{lora: {rank: 4}, zero: 0}", "{zero: 1, tensor_parallel: {size: 2}}",
            "{zero: fsdp, tensor_parallel: {size: 2}}", "{zero: 1, pipeline_parallel: {size: 2}}",
            "{zero: 1, offload: {optimizer: cpu}}",
            "{zero: 1, tensor_parallel: {size: 2}, pipeline_parallel: {size: 2}}"}) {
        CAPTURE(stack, model, strategy);
        const std::string text = fmt::format(
            "name: a run\nmodel: {}\ncluster: {{node: h100-8}}\nstack: {}\njob: {{sequence: 4096, "
            "gradient_accumulation: 8}}\nstrategy: {}\n",
            model, stack, strategy);
        CHECK_NOTHROW(parse_scenario(data, text, "run.yaml"));
      }
}
