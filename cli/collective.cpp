#include <fmt/format.h>

#include <filesystem>
#include <limits>

#include "analysis/studies/fidelity/comparison.hpp"
#include "analysis/studies/predict/bandwidth.hpp"
#include "cli/command.hpp"
#include "cli/engine_options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/rows/nccl_output.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

void check_operation(const std::string& name) {
  const auto& known = bandwidth_operations();
  if (!holds(known, name))
    throw UserError(fmt::format("no collective \"{}\"{}; expected {}", name,
                                did_you_mean(name, known), one_of(known)));
}

BandwidthQuestion question_of(const Options& options) {
  BandwidthQuestion question;
  question.operation = options.words.front();
  if (const auto ranks = options.get("ranks")) question.ranks = parse_ranks(*ranks);
  question.sizes = parse_sizes(options.get("sizes").value_or("64KiB:4GiB"));
  question.options.algorithm = options.get("algorithm").value_or("");
  if (options.has("protocol"))
    question.options.protocol = word_of(options, "protocol", "", {"ll", "ll128", "simple"});
  question.options.detail = word_of(options, "detail", "fluid", {"fluid", "stepped"}) == "fluid"
                                ? Detail::fluid
                                : Detail::stepped;
  if (const auto budget = count_of(options, "budget", 1, std::numeric_limits<std::uint32_t>::max()))
    question.budget = *budget;
  question.folding = word_of(options, "fold", "auto", {"auto", "off"}) == "auto"
                         ? Folding::automatic
                         : Folding::off;
  question.player = player_of(options);
  return question;
}

// Writes "all_reduce of 16 ranks", "send_recv from rank 0 to rank 7", "h2d by 8 ranks at once".
std::string what(const BandwidthQuestion& question, std::size_t ranks) {
  if (question.operation == "send_recv" && ranks > 1)
    return fmt::format("send_recv from rank {} to rank {}",
                       question.ranks.empty() ? 0 : question.ranks.front(),
                       question.ranks.empty() ? ranks - 1 : question.ranks.back());
  const bool copy = !collective_of(question.operation);
  return fmt::format("{} {} {} rank{}{}", question.operation, copy ? "by" : "of", ranks,
                     ranks == 1 ? "" : "s", copy && ranks > 1 ? " at once" : "");
}

// The guesses among the constants that such a time is made of.
std::vector<std::string> guesses(const Cluster& cluster, const BandwidthQuestion& question) {
  const bool copy = !collective_of(question.operation);
  const bool leaves =
      cluster.network && (cluster.routes || cluster.nodes > cluster.network->leaf.nodes);
  std::vector<std::string> names;
  for (const NamedConstant& constant : cluster.constants) {
    const std::string& name = constant.name;
    const bool used =
        copy
            ? name == "node.host.copy_start"
            : name.starts_with("node.collectives.") ||
                  (cluster.nodes > 1 && name.starts_with("network.collectives.")) ||
                  (leaves && (name == "network.leaf.uplink" || name.starts_with("network.tiers.") ||
                              name.starts_with("network.cables")));
    if (used && constant.grade == Grade::guess) names.push_back(name);
  }
  return names;
}

RecordList row_list(const BandwidthAnswer& answer) {
  return list_of(answer.rows, [](const BandwidthRow& row) -> Records {
    return {
        {"bytes", "size", row.bytes, Measure::binary_bytes},
        {"time_s", "time", row.time},
        {"algbw_GBps", "algbw GB/s", row.algorithm_bandwidth.value / 1e9,
         Measure::gigabytes_per_second},
        {"busbw_GBps", "busbw GB/s", row.bus_bandwidth.value / 1e9, Measure::gigabytes_per_second},
        {"algorithm", "algorithm", row.algorithm},
        {"protocol", "protocol", row.protocol},
        {"busiest_link", "busiest link", row.busiest_link}};
  });
}

Records records_of(const Cluster& cluster, const BandwidthQuestion& question,
                   const BandwidthAnswer& answer, const std::vector<std::string>& overlays) {
  std::vector<std::string> notes;
  if (!overlays.empty()) notes.push_back(overlay_note(overlays));
  return {
      {"operation", "collective or copy", question.operation},
      {"node", "kind of node", cluster.node.name},
      {"nodes", "of it", cluster.nodes},
      {"network", "between them", cluster.network ? cluster.network->name : ""},
      {"ranks", "that take part", answer.ranks},
      {"guesses", "constants behind this that are guesses", list_of(guesses(cluster, question))},
      {"rows", "one for each size", row_list(answer)},
      played_record(answer.run.trace.by),
      {"notes", "files of the user's own that were read", list_of(notes)}};
}

std::string text_of(const Cluster& cluster, const BandwidthQuestion& question,
                    const BandwidthAnswer& answer, const std::vector<std::string>& overlays) {
  std::string title = fmt::format("{} on {} x {} ({})", what(question, answer.ranks), cluster.nodes,
                                  cluster.node.name, cluster.gpu.title);
  if (cluster.nodes > 1)
    title += fmt::format(" over {} ({})", cluster.network->name, cluster.network->title);
  std::string text = wrap(title, 100, 0) + "\n\n";
  text +=
      render(table_of(row_list(answer).items,
                      "bytes; time_s; algbw_GBps; busbw_GBps; algorithm; protocol; busiest_link"));
  if (const auto names = guesses(cluster, question); !names.empty())
    text += fmt::format("\nguesses among the constants behind these times: {}\n",
                        wrap(fmt::format("{}", fmt::join(names, ", ")), 100, 4));
  if (!overlays.empty()) text += fmt::format("\nnote: {}\n", overlay_note(overlays));
  return text + played_text(answer.run.trace.by);
}

constexpr std::size_t page = 100;  // columns of running text

Records error_records(const Errors& errors) {
  const auto share = [](const Errors::Share& s) -> Records {
    return {{"rows", "that were compared", s.rows},
            {"median_abs_error", "of the time", s.median, Measure::share},
            {"p90_abs_error", "of the time", s.p90, Measure::share},
            {"signed_mean", "of the time", s.mean, Measure::error}};
  };
  return {{"below_16MiB", "small messages", share(errors.small)},
          {"from_16MiB", "large messages", share(errors.large)},
          {"worst", "error", errors.worst, Measure::error}};
}

Records compared_records(const ComparedRow& row) {
  const auto compared = [&](auto value) {
    return row.compared() ? std::optional(value) : std::nullopt;
  };
  return {{"id", "of the row", row.measured.id},
          {"source", "where it is from", row.measured.source},
          {"operation", "collective or copy", row.operation},
          {"ranks", "that take part", row.measured.gpus},
          {"bytes", "of the message", Bytes{row.measured.bytes}},
          {"compared", "a figure was predicted for it", row.compared()},
          {"measured_s", "time", compared(Seconds{row.time})},
          {"predicted_s", "time", compared(Seconds{row.predicted})},
          {"error", "of the time", compared(row.error), Measure::error},
          {"machine", "cluster and nodes", row.machine},
          {"algorithm", "and protocol", row.algorithm},
          {"note", "what is known about it, or why it is left out", row.note}};
}

Records records_of(const Comparison& comparison) {
  const auto source = [](const SourceErrors& each) {
    return joined({{{"source", "where rows are from", each.source},
                    {"machine", "cluster and nodes", each.machine}},
                   error_records(each.errors)});
  };
  return {{"rows", "one for each measured row", list_of(comparison.rows, compared_records)},
          {"sources", "errors by source and machine", list_of(comparison.sources, source)},
          {"all", "errors of all", error_records(comparison.all)}};
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
          {{"row", " ranks", " size", " measured", " predicted", " time error", "algorithm"}});
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
  TextTable table{{"source", "machine", " rows", " < 16 MiB", " >= 16 MiB", " worst"}};
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

// The notes about the rows of a.csv are in a-notes.csv, if somebody wrote any.
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
  std::string machine;
  if (const auto cluster = options.get("cluster")) {
    machine = load_cluster(line.data, {.name = *cluster, .nodes = {}, .network = ""}).node.name;
    how.only = ClusterChoice{.name = machine, .nodes = {}, .network = ""};
  }
  const std::vector<MeasuredCollective> rows = read_collectives(file, machine);
  if (!options.words.empty()) how.operation = options.words.front();
  how.notes = notes_beside(file, rows);
  const Comparison comparison = compare(line.data, rows, how);
  if (comparison.rows.empty())
    throw UserError(fmt::format("{}: no row is about this machine and operation", file));
  if (options.has("json"))
    print_result(compare_kind, {}, records_of(comparison));
  else
    say("{}", text_of(comparison));
  return exit_code::yes;
}

}  // namespace

Records collective_sample() {
  BandwidthAnswer answer;
  answer.rows.emplace_back();
  return records_of({}, {}, answer, {""});
}

Records compare_sample() {
  Comparison comparison;
  comparison.rows.emplace_back();
  comparison.sources.emplace_back();
  return records_of(comparison);
}

int collective_command(const CommandLine& line) {
  const auto options = parse("collective", line.words);
  if (!options) return exit_code::yes;
  if (!options->words.empty()) check_operation(options->words.front());
  if (options->has("compare")) return compare_command(line, *options);
  if (options->words.empty())
    throw UserError(fmt::format("which collective? expected {}", one_of(bandwidth_operations())));
  if (!options->has("cluster") && !options->has("platform"))
    throw UserError("--cluster is missing; `stepsim list clusters` names them");
  const BandwidthQuestion question = question_of(*options);
  const Cluster cluster =
      load_cluster(line.data, cluster_choice(options->get("cluster").value_or(""), *options));
  const BandwidthAnswer answer = measure_bandwidth(cluster, question);
  if (const auto output = options->get("output")) write_run(*output, answer.run);
  const std::vector<std::string> overlays = overlay_files(line.data, cluster);
  if (options->has("json"))
    print_result(collective_kind, {}, records_of(cluster, question, answer, overlays));
  else
    say("{}", text_of(cluster, question, answer, overlays));
  return exit_code::yes;
}

}  // namespace stepsim
