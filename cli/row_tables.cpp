#include "cli/row_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "analysis/studies/anchor/anchored_rows.hpp"
#include "analysis/studies/anchor/posterior.hpp"
#include "analysis/studies/explain/carriers.hpp"
#include "analysis/studies/fidelity/recorded_errors.hpp"
#include "analysis/studies/fidelity/rl_rows.hpp"
#include "analysis/studies/fidelity/row_order.hpp"
#include "analysis/studies/fidelity/row_validation.hpp"
#include "analysis/studies/predict/footprint_text.hpp"
#include "cli/outputs.hpp"
#include "cli/result_kinds.hpp"
#include "cli/row_reading.hpp"
#include "cli/screen.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

std::string in_one_line(const std::vector<std::string>& texts) {
  return fmt::format("{}", fmt::join(texts, "; "));
}

Records figure_records(const PredictedRow& row, const RowFigure& figure) {
  std::optional<Range> interval;
  if (row.interval && figure.metric == "step_s")
    interval = {figure.measured * (1 + row.interval->low),
                figure.measured * (1 + row.interval->high)};
  return {{"id", "row", row.id},
          {"family", "family", row.family},
          {"metric", "metric", figure.metric},
          {"predicted", "as the table's column; of a verdict: fits or oom", figure.predicted,
           Measure::rounded},
          {"measured", "as the table's column; of a verdict: fits or oom", figure.measured,
           Measure::rounded},
          {"error", "of a figure", std::optional(figure.error()), Measure::error},
          {"interval", "8 of 10 draws", interval}};
}

RecordList figure_list(const PredictedRow& row) {
  return list_of(row.figures, [&](const RowFigure& each) { return figure_records(row, each); });
}

TextTable figure_table(const std::vector<PredictedRow>& rows) {
  Records all;
  for (const PredictedRow& row : rows) append(all, figure_list(row).items);
  return table_of(
      all,
      "family=family; id=row; metric=metric; measured=measured; predicted=predicted; error=error");
}

TextTable missing_table(const std::vector<PredictedRow>& rows) {
  TextTable table{{"not predicted", "what is missing"}};
  for (const PredictedRow& row : rows)
    if (!row.predicted() && row.crashes.empty())
      table.rows.push_back({row.id, in_one_line(row.missing)});
  return table;
}

// Rows whose workers crashed, and why: no lack of data, but a bug or too little memory.
TextTable crash_table(const std::vector<PredictedRow>& rows) {
  TextTable table{{"no answer", " workers", "why"}};
  for (const PredictedRow& row : rows)
    if (!row.crashes.empty())
      table.rows.push_back({row.id, fmt::format("{}", row.crashes.size()), row.crashes.front()});
  return table;
}

// Shows what rows leave open and how it was taken, the most frequent first.
TextTable assumed_table(const std::vector<PredictedRow>& rows) {
  struct Taken {
    std::string what, first;
    std::size_t rows = 0;
  };
  std::vector<Taken> all;
  for (const PredictedRow& row : rows) {
    if (!row.predicted()) continue;
    for (const std::string& what : row.assumed) {
      auto place = std::ranges::find(all, what, &Taken::what);
      if (place == all.end()) place = all.insert(all.end(), {what, row.id, 0});
      place->rows += 1;
    }
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Taken::rows);
  TextTable table{{"assumed", " rows", "first row"}};
  for (const Taken& taken : all)
    table.rows.push_back({taken.what, fmt::format("{}", taken.rows), taken.first});
  return table;
}

TextTable family_table(const std::vector<RowFamily>& families, bool intervals) {
  TextTable table{{"family", " rows", " median |error|", " 90 %", " signed mean", " worst", "",
                   " memory rows", " median |error|", " fits right"}};
  if (intervals) append(table.columns, {" inside 80 %", " median width"});
  for (const RowFamily& f : families) {
    std::vector<std::string> row{f.name, fmt::format("{}", f.rows)};
    const bool timed = f.rows > 0, sized = f.memory_rows > 0;
    row.push_back(timed ? percent(f.median) : "-");
    row.push_back(timed ? percent(f.p90) : "-");
    row.push_back(timed ? signed_percent(f.signed_mean) : "-");
    row.push_back(timed ? signed_percent(f.worst_error) : "-");
    row.push_back(f.worst);
    row.push_back(sized ? fmt::format("{}", f.memory_rows) : "-");
    row.push_back(sized ? percent(f.memory_median) : "-");
    row.push_back(fmt::format("{} of {}", f.fits_right, f.fits));
    if (intervals) append(row, {fmt::format("{} of {}", f.inside, f.intervals), percent(f.width)});
    table.rows.push_back(std::move(row));
  }
  return table;
}

RecordList memory_list(const std::vector<MemoryErrors>& errors) {
  return list_of(errors, [](const MemoryErrors& kind) -> Records {
    return {
        {"counts",
         "what the figure counts: tensors (allocated), what the allocator holds for them "
         "(reserved), all that the device has lost (device), or the source does not say; at "
         "most: rounded up, or all of the card",
         std::string(kind.counts)},
        {"rows", "with a figure of memory", kind.rows},
        {"median_abs_error", "of the memory; a bound's is 0 below it", kind.median, Measure::share},
        {"p90_abs_error", "of the memory", kind.p90, Measure::share},
        {"signed_mean", "of the memory", kind.signed_mean, Measure::error},
        {"worst", "row of the worst error", kind.worst},
        {"worst_error", "of the memory", kind.worst_error, Measure::error}};
  });
}

TextTable memory_table(const std::vector<PredictedRow>& rows) {
  return table_of(memory_list(memory_errors(rows)).items,
                  "counts=memory that counts; rows= rows; median_abs_error= median |error|; "
                  "p90_abs_error= 90 %; signed_mean= signed mean; worst_error= worst; worst=");
}

RecordList chance_list(const std::vector<PredictedRow>& rows) {
  return list_of(chances_of(rows), [](const ChanceRows& band) -> Records {
    return {{"from", "the lower end of a tenth of chances", band.low, Measure::share},
            {"rows", "that got such a chance to fit", band.rows},
            {"chance", "that they got in the mean", band.mean, Measure::share},
            {"fitted", "of them ran", band.fitted},
            {"share", "of them ran",
             static_cast<double>(band.fitted) / static_cast<double>(band.rows), Measure::share}};
  });
}

// Writes how often chances came true, and answers to questions of others, the wrong ones first.
std::string chances_text(const std::vector<PredictedRow>& rows) {
  const RecordList chances = chance_list(rows);
  if (chances.items.empty()) return "";
  std::string text =
      "\n" + render(table_of(
                 chances.items,
                 "from= chance from; rows= rows; chance= mean chance; fitted= ran; share= share"));
  std::vector<const PredictedRow*> asked;
  for (const PredictedRow& row : rows)
    if (row.predicted() && !row.asked.empty()) asked.push_back(&row);
  if (asked.empty()) return text;
  std::ranges::stable_sort(asked, {}, [](const PredictedRow* row) { return row->right(); });
  TextTable table{{"asked", "known", "answered", " fits in", ""}};
  for (const PredictedRow* row : asked)
    table.rows.push_back({row->asked, row->known, std::string(to_text(row->fit)),
                          row->chance ? chance_text(*row->chance) : "-",
                          row->right() ? "right" : "wrong"});
  const auto right = std::ranges::count_if(asked, &PredictedRow::right);
  return text + "\n" + render(table) +
         fmt::format("\n{} of {} questions are answered right\n", right, asked.size());
}

RecordList series_list(const std::vector<AxisErrors>& errors) {
  return list_of(errors, [](const AxisErrors& axis) -> Records {
    return {{"along", "from one row to the next along",
             axis_names[static_cast<std::size_t>(axis.axis)]},
            {"steps", "steps", axis.steps},
            {"median_abs_error", "median |error|", axis.median, Measure::share},
            {"p90_abs_error", "90 %", axis.p90, Measure::share}};
  });
}

TextTable series_table(std::vector<AxisErrors> errors) {
  std::erase_if(errors, [](const AxisErrors& axis) { return axis.steps == 0; });
  return table_of(series_list(errors).items, "along; steps; median_abs_error; p90_abs_error");
}

// These compare rows with each other: what changes from row to row, and layouts of one model and
// batch.
struct RowComparisons {
  std::vector<AxisErrors> series;
  std::vector<OrderedGroup> order;
};

RecordList order_list(const std::vector<OrderedGroup>& groups) {
  return list_of(groups, [](const OrderedGroup& group) -> Records {
    return {{"model", "layouts of one model and batch", group.model},
            {"gpus", "GPUs", group.gpus},
            {"batch", "sequences", group.batch},
            {"rows", "rows", group.rows},
            {"pairs", "pairs 5 % apart", group.pairs},
            {"pairs_right", "in the right order", group.right},
            {"picked", "fastest as predicted", group.picked},
            {"best", "as measured", group.best},
            {"lost", "slower than that", group.lost, Measure::share}};
  });
}

// Groups in which nothing could be told apart say nothing.
std::string order_text(std::vector<OrderedGroup> groups) {
  std::erase_if(groups, [](const OrderedGroup& group) { return group.pairs == 0; });
  if (groups.empty()) return "";
  const OrderSummary all = summary_of(groups);
  return "\n" +
         render(table_of(order_list(groups).items,
                         "model; gpus; batch; rows; pairs; pairs_right; picked; best; lost")) +
         fmt::format(
             "\n{} of {} pairs are in the right order; the layout picked is at most {} "
             "slower than the best of its group\n",
             all.right, all.pairs, percent(all.worst_lost));
}

std::string text_of(const std::vector<PredictedRow>& rows, const RowComparisons& beside,
                    bool intervals) {
  std::string text = render(figure_table(rows));
  if (const TextTable missing = missing_table(rows); !missing.rows.empty())
    text += "\n" + render(missing);
  if (const TextTable crashes = crash_table(rows); !crashes.rows.empty())
    text += "\n" + render(crashes);
  if (const TextTable assumed = assumed_table(rows); !assumed.rows.empty())
    text += "\n" + render(assumed);
  text += "\n" + render(family_table(families_of(rows), intervals));
  if (const TextTable table = memory_table(rows); !table.rows.empty()) text += "\n" + render(table);
  if (const TextTable table = series_table(beside.series); !table.rows.empty())
    text += "\n" + render(table);
  text += order_text(beside.order) + chances_text(rows);
  const auto predicted = std::ranges::count_if(rows, &PredictedRow::predicted);
  if (predicted == 0)
    return text + fmt::format("\n0 of {} rows are predicted: nothing was compared\n", rows.size());
  return text + fmt::format(
                    "\n{} of {} rows are predicted; errors are those of the time of a step or of a "
                    "served load, negative when it is predicted too short\n",
                    predicted, rows.size());
}

Records verdict_records(const PredictedRow& row) {
  return {{"id", "row", row.id},
          {"family", "family", row.family},
          {"metric", "metric", "verdict"},
          {"predicted", "as the table's column; of a verdict: fits or oom",
           row.fit == Fit::oom ? "oom" : "fits"},
          {"measured", "as the table's column; of a verdict: fits or oom",
           row.measured_fits ? "fits" : "oom"},
          {"judged", "it counts among the verdicts", row.judged},
          {"chance", "of a verdict: that it fits", row.chance, Measure::share},
          {"needed_bytes", "of a GPU", Bytes{row.needed}},
          {"capacity_bytes", "what a framework can allocate", Bytes{row.capacity}},
          {"error", "of a verdict: none", std::optional<double>()}};
}

// Draws with where the constant that holds for all times lies in its range: fits of it ask for
// that.
void append_draws(const PredictedRow& row, RecordList& draws) {
  for (const DrawnError& drawn : row.drawn)
    draws.items.emplace_back(
        "", "",
        Records{{"id", "row", row.id},
                {"error", "of the time", drawn.error, Measure::error},
                {"unexplained", "where stack.unexplained lies in its range, from 0 to 1",
                 quantile(drawn.draw, carries_everything)}});
}

Records family_records(const RowFamily& family) {
  return {{"name", "family", family.name},
          {"rows", "with a time", family.rows},
          {"median_abs_error", "of the time", family.median, Measure::share},
          {"p90_abs_error", "of the time", family.p90, Measure::share},
          {"signed_mean", "of the time", family.signed_mean, Measure::error},
          {"worst", "row of the worst error", family.worst},
          {"worst_error", "of the time", family.worst_error, Measure::error},
          {"memory_rows", "with a figure of memory", family.memory_rows},
          {"memory_median_abs_error", "of the memory", family.memory_median, Measure::share},
          {"verdicts", "whether it fits", family.fits},
          {"verdicts_right", "of these", family.fits_right},
          {"intervals", "that were drawn", family.intervals},
          {"inside_interval", "measured ones in theirs", family.inside},
          {"interval_width", "median of theirs, over the predicted time", family.width,
           Measure::share}};
}

Records why_not(const PredictedRow& row, std::string_view key,
                const std::vector<std::string>& texts) {
  return {{"id", "row", row.id}, {"family", "family", row.family}, {key, "why", list_of(texts)}};
}

Records order_records(const std::vector<OrderedGroup>& groups) {
  const OrderSummary all = summary_of(groups);
  return {
      {"pairs", "of rows whose measured times differ by more than 5 %", all.pairs},
      {"pairs_right", "that are predicted in that order", all.right},
      {"worst_lost", "by how much the layout picked is slower than the best, in the worst group",
       all.worst_lost, Measure::share},
      {"groups", "of one model, batch, machine and number of GPUs", order_list(groups)}};
}

Records records_of(const std::vector<PredictedRow>& rows, const RowComparisons& beside) {
  RecordList predicted, missing, crashed, assumed, scenarios, draws;
  for (const PredictedRow& row : rows) {
    if (!row.crashes.empty())
      crashed.items.emplace_back("", "", why_not(row, "crashes", row.crashes));
    else if (!row.predicted())
      missing.items.emplace_back("", "", why_not(row, "missing", row.missing));
    if (!row.predicted()) continue;
    for (Record& figure : figure_list(row).items) predicted.items.push_back(std::move(figure));
    predicted.items.emplace_back("", "", verdict_records(row));
    append_draws(row, draws);
    if (!row.scenario.empty())
      scenarios.items.emplace_back(
          "", "",
          Records{{"id", "row", row.id},
                  {"resolved", "what was predicted: YAML that can be run", row.scenario}});
    if (!row.assumed.empty())
      assumed.items.emplace_back(
          "", "", Records{{"id", "row", row.id}, {"assumed", "what", list_of(row.assumed)}});
  }
  return {
      {"rows", "figures of each row, then its verdict", predicted},
      {"not_predicted", "rows that do not say enough", missing},
      {"no_answer", "rows whose workers died", crashed},
      {"assumed", "what rows leave open and how it was taken", assumed},
      {"scenarios", "that rows became", scenarios},
      {"draws", "with --samples: of rows with a time", draws},
      {"families", "errors by family, then of all", list_of(families_of(rows), family_records)},
      {"memory", "errors of the memory, by what figures count", memory_list(memory_errors(rows))},
      {"chances", "to fit, by tenths, and how often they came true", chance_list(rows)},
      {"series", "errors of what changes from one row to the next", series_list(beside.series)},
      {"order", "of layouts", order_records(beside.order)}};
}

RecordList anchored_list(std::span<const AnchoredFamily> families) {
  return list_of(families, [](const AnchoredFamily& f) -> Records {
    return {{"name", "anchored on one row in turn", f.name},
            {"rows", "rows", f.rows},
            {"median_abs_error", "median |error|", f.median, Measure::share},
            {"anchored_median_abs_error", "anchored", f.anchored_median, Measure::share},
            {"p90_abs_error", "90 %", f.p90, Measure::share},
            {"anchored_p90_abs_error", "anchored", f.anchored_p90, Measure::share},
            {"held", "in the interval", f.held, Measure::share},
            {"anchored_held", "anchored", f.anchored_held, Measure::share},
            {"width", "width of it", f.width, Measure::rounded}};
  });
}

// Anchors rows on one another, and prints that alone.
int print_anchored(const CommandLine& line, const RowTablesQuestion& question,
                   const RowTables& tables) {
  const std::vector<PredictedRow> predicted =
      predict_rows({.data = line.data,
                    .rows = tables.steps,
                    .samples = question.samples,
                    .seed = 1,
                    .like = draws_before(question.samples, 1)});
  const std::vector<AnchoredFamily> families = anchored_families(tables.steps, predicted);
  if (question.json) {
    print_result(anchored_rows_kind, {},
                 {{"families", "then all of them", anchored_list(families)}});
  } else {
    say("{}",
        render(table_of(anchored_list(families).items,
                        "name; rows; median_abs_error; anchored_median_abs_error; p90_abs_error; "
                        "anchored_p90_abs_error; held; anchored_held; width")));
  }
  return families.back().rows == 0 ? exit_code::no : exit_code::yes;
}

// The answer is no when a family got worse.
int compare_with(const CsvTable& recorded, const std::vector<RowFamily>& families) {
  const std::vector<ErrorChange> changes = changes_since(recorded, families);
  TextTable table{{"since " + recorded.file, "", " was", " is", ""}};
  bool worse = false;
  for (const ErrorChange& change : changes) {
    worse = worse || change.worse;
    table.rows.push_back(
        {change.family, change.what, change.before, change.now, change.worse ? "worse" : "better"});
  }
  say("\n{}",
      changes.empty() ? fmt::format("nothing changed since {}\n", recorded.file) : render(table));
  if (!changes.empty())
    say("\nif that is meant: stepsim validate --rows ... --record {}\n", recorded.file);
  return worse ? exit_code::no : exit_code::yes;
}

}  // namespace

Records anchored_rows_sample() {
  return {{"families", "then all of them", anchored_list(std::vector(1, AnchoredFamily{}))}};
}

Records rows_sample() {
  PredictedRow row, other, third;
  row.figures.emplace_back();
  row.scenario = "a scenario";
  row.memory_error = 0;
  row.capacity = 1;
  row.chance = 1;
  row.drawn.emplace_back();
  row.assumed = other.missing = third.crashes = {""};
  return records_of({row, other, third}, {{AxisErrors{}}, {OrderedGroup{}}});
}

int validate_row_tables(const CommandLine& line, const RowTablesQuestion& question) {
  std::optional<CsvTable> recorded;  // read first: nothing is predicted in vain
  if (!question.recorded.empty()) recorded = read_csv(question.recorded);
  if (!question.record.empty()) require_no_input(question.record, question.files);
  const RowTables tables = read_row_tables(line.data, question.files);
  for (const std::string& note : tables.notes) say(stderr, "note: {}\n", readable(note));
  if (question.anchored) return print_anchored(line, question, tables);
  std::vector<PredictedRow> predicted = predict_rows(
      {.data = line.data, .rows = tables.steps, .samples = question.samples, .seed = 1});
  const RowComparisons beside{errors_by_axis(series_steps(tables.steps, predicted)),
                              ordered_groups(tables.steps, predicted)};
  const RowSampling sampling{question.samples, 1};
  append(predicted, predict_grpo_rows(line.data, tables.grpo, sampling));
  append(predicted, predict_rows(line.data, tables.engines, sampling));
  if (question.json)
    print_result(rows_kind, {}, records_of(predicted, beside));
  else
    say("{}", text_of(predicted, beside, question.samples > 0));
  if (!question.scenarios.empty()) {
    const std::size_t files = export_rows(question.scenarios, predicted);
    say(stderr, "note: {} scenarios are in {}\n", files, question.scenarios);
  }
  // Errors without these rows are none that anybody should keep or compare with.
  if (std::ranges::any_of(predicted, [](const PredictedRow& row) { return !row.crashes.empty(); }))
    return exit_code::bug;
  if (!question.record.empty())
    write_file(question.record, recorded_errors(families_of(predicted)));
  if (!std::ranges::any_of(predicted, &PredictedRow::predicted)) return exit_code::no;
  if (!recorded) return exit_code::yes;
  const std::size_t all = recorded->rows.size();
  std::erase_if(recorded->rows, [&](const CsvTable::Row& row) {
    return !holds_family(tables, recorded->cell(row, "family"));
  });
  const int answer = compare_with(*recorded, families_of(predicted));
  if (const std::size_t others = all - recorded->rows.size(); others > 0)
    say("families of tables that were not given, not compared: {}\n", others);
  return answer;
}

}  // namespace stepsim
