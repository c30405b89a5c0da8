#include "cli/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "analysis/studies/fidelity/comparison.hpp"
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t page = 100;  // columns of running text

JsonWriter& add(JsonWriter& json, const Errors& errors) {
  const auto share = [&json](std::string_view name, const Errors::Share& s) {
    json.key(name)
        .begin_object()
        .member("rows", static_cast<double>(s.rows))
        .member("median_abs_error", s.median)
        .member("p90_abs_error", s.p90)
        .member("signed_mean", s.mean)
        .end_object();
  };
  share("below_16MiB", errors.small);
  share("from_16MiB", errors.large);
  return json.member("worst", errors.worst);
}

void add(JsonWriter& json, const ComparedRow& row) {
  json.begin_object()
      .member("id", row.measured.id)
      .member("source", row.measured.source)
      .member("operation", row.operation)
      .member("ranks", static_cast<double>(row.measured.gpus))
      .member("bytes", row.measured.bytes)
      .member("compared", row.compared());
  for (const auto& [name, value] :
       {std::pair{"measured_s", row.time}, {"predicted_s", row.predicted}, {"error", row.error}}) {
    if (row.compared())
      json.member(name, value);
    else
      json.key(name).null();
  }
  json.member("machine", row.machine)
      .member("algorithm", row.algorithm)
      .member("note", row.note)
      .end_object();
}

std::string json_of(const Comparison& comparison) {
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const ComparedRow& row : comparison.rows) add(json, row);
  json.end_array().key("sources").begin_array();
  for (const SourceErrors& source : comparison.sources) {
    json.begin_object().member("source", source.source).member("machine", source.machine);
    add(json, source.errors).end_object();
  }
  json.end_array().key("all").begin_object();
  add(json, comparison.all).end_object();
  json.end_object();
  return json.take();
}

// A row without a size gives a rate, and is answered with one.
std::vector<std::string> cells(const ComparedRow& row) {
  const bool sized = row.measured.bytes > 0;
  const BytesPerSecond rate{row.measured.rate};
  return {row.measured.id,
          fmt::format("{}", row.measured.gpus),
          sized ? size_text(row.measured.bytes) : "",
          sized ? to_text(Seconds{row.time}) : to_text(rate),
          sized ? to_text(Seconds{row.predicted}) : to_text(rate * (row.time / row.predicted)),
          signed_percent(row.error),
          row.algorithm};
}

std::string row_tables(const Comparison& comparison) {
  std::vector<std::string> titles;
  std::vector<TextTable> tables;
  for (const ComparedRow& row : comparison.rows) {
    if (!row.compared()) continue;
    const std::string title = fmt::format("{} on {}", row.operation, row.machine);
    std::size_t at = 0;
    while (at < titles.size() && titles[at] != title) ++at;
    if (at == titles.size()) {
      titles.push_back(title);
      tables.push_back(
          {{"row", "ranks", "size", "measured", "predicted", "time error", "algorithm"},
           {Align::left, Align::right, Align::right, Align::right, Align::right, Align::right,
            Align::left},
           {}});
    }
    tables[at].rows.push_back(cells(row));
  }
  std::string text;
  for (std::size_t i = 0; i < titles.size(); ++i)
    text += fmt::format("{}\n{}\n", titles[i], render(tables[i]));
  return text;
}

// Rows that share a note stand above it.
template <class Wanted>
std::string note_list(const Comparison& comparison, const Wanted& wanted) {
  std::vector<std::pair<std::string, std::string>> notes;  // note, rows
  for (const ComparedRow& row : comparison.rows) {
    if (!wanted(row)) continue;
    std::size_t at = 0;
    while (at < notes.size() && notes[at].first != row.note) ++at;
    if (at == notes.size()) notes.emplace_back(row.note, "");
    notes[at].second += (notes[at].second.empty() ? "" : ", ") + row.measured.id;
  }
  std::string text;
  for (const auto& [note, ids] : notes)
    text += fmt::format("  {}\n      {}\n", wrap(ids, page, 2), wrap(note, page, 6));
  return text;
}

std::string median(const Errors::Share& share) {
  return share.rows == 0 ? "" : fmt::format("{:.1f} %", 100 * share.median);
}

std::string source_table(const Comparison& comparison) {
  TextTable table{
      {"source", "machine", "rows", "< 16 MiB", ">= 16 MiB", "worst"},
      {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right},
      {}};
  for (const SourceErrors& source : comparison.sources)
    table.rows.push_back({source.source, source.machine,
                          fmt::format("{}", source.errors.small.rows + source.errors.large.rows),
                          median(source.errors.small), median(source.errors.large),
                          signed_percent(source.errors.worst)});
  return render(table);
}

std::string text_of(const Comparison& comparison) {
  std::string text = row_tables(comparison);
  const auto section = [&text](std::string_view title, const std::string& list) {
    if (!list.empty()) text += fmt::format("{}\n{}\n", title, list);
  };
  section("known about single rows", note_list(comparison, [](const ComparedRow& row) {
            return row.compared() && !row.note.empty();
          }));
  section("off by more than a factor of two, and nobody has said why",
          note_list(comparison,
                    [](const ComparedRow& row) { return row.far_off() && row.note.empty(); }));
  section("not compared",
          note_list(comparison, [](const ComparedRow& row) { return !row.compared(); }));
  if (comparison.sources.empty()) return text;
  section("median absolute error of the time, by source and message size",
          source_table(comparison));
  const auto line = [&text](std::string_view what, const Errors::Share& s) {
    if (s.rows > 0)
      text += fmt::format(
          "{} {:4} rows, median error {:4.1f} %, 90th percentile {:4.1f} %, "
          "signed mean {:+5.1f} %\n",
          what, s.rows, 100 * s.median, 100 * s.p90, 100 * s.mean);
  };
  line("below 16 MiB:", comparison.all.small);
  line("from 16 MiB: ", comparison.all.large);
  return text;
}

void refuse_other_options(const Options& options) {
  for (const auto& [name, value] : options.values)
    if (name != "compare" && name != "cluster" && name != "json")
      throw UserError(fmt::format(
          "--{} does not go with --compare: the rows say what was measured, and how", name));
}

}  // namespace

std::vector<RowNote> notes_beside(const std::string& file,
                                  std::span<const MeasuredCollective> rows) {
  std::filesystem::path path(file);
  path.replace_filename(path.stem().string() + "-notes" + path.extension().string());
  std::error_code failed;
  if (!std::filesystem::exists(path, failed)) return {};
  return row_notes(read_csv(path.string()), rows);
}

int compare_command(const CommandLine& line, const Options& options) {
  refuse_other_options(options);
  const std::string file = *options.get("compare");
  CompareOptions how;
  if (const auto cluster = options.get("cluster")) {
    const Cluster loaded = load_cluster(line.data, {.name = *cluster, .nodes = {}, .network = ""});
    how.only = ClusterChoice{.name = loaded.node.name, .nodes = {}, .network = ""};
  }
  if (!options.words.empty()) how.operation = options.words.front();
  const std::vector<MeasuredCollective> rows = measured_collectives(read_csv(file));
  how.notes = notes_beside(file, rows);
  const Comparison comparison = compare(line.data, rows, how);
  if (comparison.rows.empty())
    throw UserError(fmt::format("{}: no row is about this machine and operation", file));
  fmt::print("{}", options.has("json") ? json_of(comparison) : text_of(comparison));
  return exit_code::yes;
}

}  // namespace stepsim
