// `fit network`: what the collective library costs on a machine.
#include <fmt/format.h>

#include "analysis/studies/fidelity/network_fit.hpp"
#include "cli/comparison.hpp"
#include "cli/fits.hpp"
#include "cli/result_kinds.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

std::string text_of(const NetworkFit& fit) {
  TextTable constants{{"constant", " stated", " fitted", " low", " high"}};
  for (const FittedCost& c : fit.constants) {
    const auto text = [&](double value) { return to_text(value, c.stated.dimension); };
    constants.rows.push_back({c.stated.name, text(c.stated.value),
                              c.seen ? text(c.fitted) : "no row tells", text(c.stated.low),
                              text(c.stated.high)});
  }
  return fmt::format("{}{}\n\n{}\n{}", fit.machine,
                     fit.network.empty() ? "" : ", over " + fit.network, render(constants),
                     source_table(fit.sources));
}

Records records_of(const NetworkFit& fit) {
  const auto constant = [](const FittedCost& c) -> Records {
    return {{"name", "constant", c.stated.name},
            {"unit", "of its figures", si_unit(c.stated.dimension)},
            {"stated", "in the machine's file", c.stated.value},
            {"low", "of its range", c.stated.low},
            {"high", "of its range", c.stated.high},
            {"fitted", "that meets the rows best; null: no row tells",
             c.seen ? std::optional(c.fitted) : std::nullopt}};
  };
  return {{"machine", "node or cluster", fit.machine},
          {"network", "between nodes; empty: all rows are of one node", fit.network},
          {"constants", "of the collective library", list_of(fit.constants, constant)},
          {"sources", "errors by source", source_list(fit.sources)}};
}

}  // namespace

Records network_sample() {
  NetworkFit fit;
  fit.constants.emplace_back();
  fit.sources.emplace_back();
  return records_of(fit);
}

int fit_network(const CommandLine& line, std::span<const std::string> words,
                const Options& options) {
  if (words.empty())
    throw UserError(
        "fit network: which machine? `stepsim list nodes` and `stepsim list clusters` name them");
  std::vector<std::string> files(words.begin() + 1, words.end());
  if (files.empty()) files.push_back(data_file(line.data, "scenarios/measured/collectives.csv"));
  std::vector<MeasuredCollective> rows;
  CompareOptions how;
  std::uint32_t nodes = 1;
  for (const std::string& file : files) {
    const std::vector<MeasuredCollective> inside = measured_collectives(read_csv(file));
    for (RowNote& note : notes_beside(file, inside)) how.notes.push_back(std::move(note));
    for (const MeasuredCollective& row : inside) nodes = std::max(nodes, row.nodes);
    rows.insert(rows.end(), inside.begin(), inside.end());
  }
  Cluster machine = load_cluster(line.data, {.name = words.front(), .nodes = {}, .network = ""});
  // Tables of other machines may stand in the same file: a node without a network is fitted alone.
  if (nodes > 1 && (words.front() != machine.node.name || !machine.node.network.empty()))
    machine = load_cluster(line.data, {.name = words.front(), .nodes = 2, .network = ""});
  how.only = ClusterChoice{.name = machine.node.name, .nodes = {}, .network = ""};
  const NetworkFit fit = fit_network(line.data, machine, rows, how);
  if (options.has("json"))
    print_result(network_kind, {}, records_of(fit));
  else
    fmt::print("{}", text_of(fit));
  return exit_code::yes;
}

}  // namespace stepsim
