#include <fmt/format.h>

#include <limits>

#include "analysis/studies/predict/bandwidth.hpp"
#include "cli/cluster_options.hpp"
#include "cli/command.hpp"
#include "cli/comparison.hpp"
#include "cli/engine_options.hpp"
#include "cli/options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
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
    question.options.protocol = word_of(options, "protocol", "", {"ll", "simple"});
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
  text += render(table_of(row_list(answer).items, {{"bytes"},
                                                   {"time_s"},
                                                   {"algbw_GBps"},
                                                   {"busbw_GBps"},
                                                   {"algorithm"},
                                                   {"protocol"},
                                                   {"busiest_link"}}));
  if (const auto names = guesses(cluster, question); !names.empty())
    text += fmt::format("\nguesses among the constants behind these times: {}\n",
                        wrap(fmt::format("{}", fmt::join(names, ", ")), 100, 4));
  if (!overlays.empty()) text += fmt::format("\nnote: {}\n", overlay_note(overlays));
  return text + played_text(answer.run.trace.by);
}

}  // namespace

Records collective_sample() {
  BandwidthAnswer answer;
  answer.rows.emplace_back();
  return records_of({}, {}, answer, {""});
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
