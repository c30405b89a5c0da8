#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "analysis/json.hpp"
#include "analysis/studies/bandwidth.hpp"
#include "analysis/table.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "sim/error.hpp"
#include "sim/run_file.hpp"

namespace stepsim {
namespace {

constexpr std::array option_specs{
    OptionSpec{"cluster", "NAME", "a cluster or node of the catalogue"},
    OptionSpec{"nodes", "N", "number of nodes (default 1)"},
    OptionSpec{"network", "NAME", "instead of the cluster's own"},
    OptionSpec{"ranks", "LIST", "members of the group, such as 0,1 or 0-7,16 (default all)"},
    OptionSpec{"sizes", "A:B", "doubling from A to B, or a list (default 64KiB:4GiB)"},
    OptionSpec{"algorithm", "NAME",
               "ring, direct, tree, hierarchical, nvls, nvls_tree (default: the cheapest that the "
               "library considers)"},
    OptionSpec{"protocol", "NAME", "ll or simple (default: the cheapest)"},
    OptionSpec{"detail", "LEVEL", "fluid or stepped (default fluid)"},
    OptionSpec{"fold", "MODE",
               "auto or off: simulate one of what is alike, or everything (default auto)"},
    OptionSpec{"compare", "FILE", "measured rows as CSV: signed error per row and its median"},
    OptionSpec{"output", "FILE", "write the replay as an HDF5 trace"},
    OptionSpec{"json", "", "for machines"},
};

constexpr Usage usage{
    "stepsim collective NAME --cluster C [options]",
    "Replays a collective (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, "
    "send_recv) or a copy between GPU and host memory (h2d, d2h) for a range of message sizes and "
    "prints what nccl-tests would print. Sizes count as there: all_gather and reduce_scatter by "
    "the "
    "full buffer, the others by the buffer of one rank.",
    option_specs,
    "  stepsim collective all_reduce --cluster mi300x-8\n"
    "  stepsim collective all_reduce --cluster mi300x-8 --ranks 0,1 --sizes 1MiB:16GiB\n"
    "  stepsim collective all_gather --cluster superpod-h100 --nodes 4 --json\n"
    "  stepsim collective all_reduce --cluster h100-8 --compare "
    "scenarios/measured/collectives.csv\n"
    "  stepsim collective --compare scenarios/measured/collectives.csv\n",
    1};

std::string rate_text(BytesPerSecond rate) {
  return fmt::format("{:.2f}", rate.value / 1e9);
}

std::string word(const Options& options, std::string_view option, std::string_view fallback,
                 std::initializer_list<std::string_view> allowed) {
  const std::string text = options.get(option).value_or(std::string(fallback));
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  if (std::find(names.begin(), names.end(), text) == names.end())
    throw UserError(fmt::format("--{}: expected {}, found \"{}\"{}", option, one_of(names), text,
                                did_you_mean(text, names)));
  return text;
}

void check_operation(const std::string& name) {
  const auto& known = bandwidth_operations();
  if (std::find(known.begin(), known.end(), name) == known.end())
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
    question.options.protocol = word(options, "protocol", "", {"ll", "simple"});
  question.options.detail = word(options, "detail", "fluid", {"fluid", "stepped"}) == "fluid"
                                ? Detail::fluid
                                : Detail::stepped;
  question.folding =
      word(options, "fold", "auto", {"auto", "off"}) == "auto" ? Folding::automatic : Folding::off;
  return question;
}

std::string json_of(const BandwidthAnswer& answer) {
  JsonWriter json;
  json.begin_object().member("ranks", static_cast<double>(answer.ranks));
  json.key("rows").begin_array();
  for (const BandwidthRow& row : answer.rows)
    json.begin_object()
        .member("bytes", row.bytes)
        .member("time_s", row.time.value)
        .member("algbw_GBps", row.algorithm_bandwidth.value / 1e9)
        .member("busbw_GBps", row.bus_bandwidth.value / 1e9)
        .member("algorithm", row.algorithm)
        .member("protocol", row.protocol)
        .member("busiest_link", row.busiest_link)
        .end_object();
  json.end_array().end_object();
  return json.take();
}

std::string text_of(const Cluster& cluster, const BandwidthQuestion& question,
                    const BandwidthAnswer& answer) {
  std::string text = fmt::format("{} of {} rank{} on {} x {} ({})", question.operation,
                                 answer.ranks, answer.ranks == 1 ? "" : "s", cluster.nodes,
                                 cluster.node.name, cluster.gpu.title);
  if (cluster.nodes > 1) text += fmt::format(", {}", cluster.network->title);
  text += "\n\n";
  TextTable table{
      {"size", "time", "algbw GB/s", "busbw GB/s", "algorithm", "protocol", "busiest link"},
      {Align::right, Align::right, Align::right, Align::right, Align::left, Align::left,
       Align::left},
      {}};
  for (const BandwidthRow& row : answer.rows)
    table.rows.push_back({size_text(row.bytes), to_text(row.time),
                          rate_text(row.algorithm_bandwidth), rate_text(row.bus_bandwidth),
                          row.algorithm, row.protocol, row.busiest_link});
  text += render(table);
  std::size_t guesses = 0;
  for (const NamedConstant& constant : cluster.constants)
    if (constant.grade == Grade::guess && constant.name.find("collectives") != std::string::npos)
      ++guesses;
  if (guesses > 0)
    text += fmt::format(
        "\nnote: {} of the constants behind these times are guesses; `stepsim show {}`"
        " names them\n",
        guesses, cluster.node.name);
  return text;
}

std::string json_of(const Comparison& comparison) {
  JsonWriter json;
  json.begin_object().key("rows").begin_array();
  for (const ComparedRow& row : comparison.rows) {
    json.begin_object()
        .member("id", row.measured.id)
        .member("collective", row.measured.collective)
        .member("bytes", row.measured.bytes)
        .member("cluster", row.cluster);
    if (row.cluster.empty())
      json.key("predicted_s").null().key("error").null();
    else
      json.member("predicted_s", row.predicted).member("error", row.error);
    json.member("algorithm", row.algorithm).member("reason", row.reason).end_object();
  }
  json.end_array();
  const auto share = [&json](std::string_view name, const Comparison::Share& s) {
    json.key(name)
        .begin_object()
        .member("rows", static_cast<double>(s.rows))
        .member("median_abs_error", s.median)
        .member("p90_abs_error", s.p90)
        .member("signed_mean", s.mean)
        .end_object();
  };
  share("from_16MiB", comparison.large);
  share("below_16MiB", comparison.small);
  json.end_object();
  return json.take();
}

std::string percent(double share) {
  return fmt::format("{:+.1f} %", 100 * share);
}

std::string text_of(const Comparison& comparison) {
  TextTable table{{"row", "operation", "ranks", "size", "measured", "predicted", "error",
                   "algorithm", "machine"},
                  {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right,
                   Align::right, Align::left, Align::left},
                  {}};
  std::string left_out, reasons;
  for (const ComparedRow& row : comparison.rows) {
    if (row.cluster.empty()) {
      left_out += fmt::format("  {}: {}\n", row.measured.id, row.reason);
      continue;
    }
    table.rows.push_back(
        {row.measured.id, row.measured.collective, fmt::format("{}", row.measured.gpus),
         row.measured.bytes > 0 ? size_text(row.measured.bytes) : "any",
         to_text(Seconds{row.predicted / (1 + row.error)}), to_text(Seconds{row.predicted}),
         percent(row.error), row.algorithm, row.cluster});
    if (!row.reason.empty())
      reasons += fmt::format("  {}: {}\n", row.measured.id, wrap(row.reason, 96, 4));
  }
  std::string text = render(table);
  const auto line = [&text](std::string_view what, const Comparison::Share& s) {
    if (s.rows > 0)
      text += fmt::format(
          "{}: {} rows, median absolute error {:.1f} %, 90th percentile {:.1f} %, "
          "signed mean {:+.1f} %\n",
          what, s.rows, 100 * s.median, 100 * s.p90, 100 * s.mean);
  };
  text += '\n';
  line("from 16 MiB ", comparison.large);
  line("below 16 MiB", comparison.small);
  if (!reasons.empty()) text += "\nknown about single rows:\n" + reasons;
  if (!left_out.empty()) text += "\nnot compared:\n" + left_out;
  return text;
}

int compare_command(const CommandLine& line, const Options& options) {
  const std::string file = *options.get("compare");
  CompareOptions how;
  if (const auto cluster = options.get("cluster")) {
    const Cluster loaded = load_cluster(line.data, {.name = *cluster, .nodes = {}, .network = ""});
    how.only = ClusterChoice{.name = loaded.node.name, .nodes = {}, .network = ""};
  }
  if (!options.words.empty()) how.operation = options.words.front();
  const CsvTable notes = read_csv(line.data + "/scenarios/measured/collectives-notes.csv");
  for (const CsvTable::Row& row : notes.rows)
    how.reasons.emplace_back(notes.cell(row, "id"), notes.cell(row, "note"));
  const Comparison comparison = compare(line.data, measured_collectives(read_csv(file)), how);
  if (comparison.rows.empty())
    throw UserError(fmt::format("{}: no row is about this machine and operation", file));
  fmt::print("{}", options.has("json") ? json_of(comparison) : text_of(comparison));
  return exit_code::yes;
}

}  // namespace

int collective_command(const CommandLine& line) {
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  if (!options->words.empty()) check_operation(options->words.front());
  if (options->has("compare")) return compare_command(line, *options);
  if (options->words.empty())
    throw UserError(fmt::format("which collective? usage: {}", usage.call));
  if (!options->has("cluster")) throw UserError("--cluster is missing; `stepsim list clusters`");
  const BandwidthQuestion question = question_of(*options);
  ClusterChoice choice{.name = *options->get("cluster"),
                       .nodes = {},
                       .network = options->get("network").value_or("")};
  if (const auto nodes = options->get("nodes")) choice.nodes = parse_count("--nodes", *nodes);
  const Cluster cluster = load_cluster(line.data, choice);
  BandwidthAnswer answer = measure_bandwidth(cluster, question);
  if (const auto output = options->get("output")) write_run(*output, answer.run);
  fmt::print("{}", options->has("json") ? json_of(answer) : text_of(cluster, question, answer));
  return exit_code::yes;
}

}  // namespace stepsim
