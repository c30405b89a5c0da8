// `fit network` finds what the collective library costs on a machine.
#include <fmt/format.h>

#include <filesystem>

#include "analysis/studies/fidelity/network_entry.hpp"
#include "analysis/studies/fidelity/network_fit.hpp"
#include "cli/comparison.hpp"
#include "cli/fits.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "scenarios/rows/nccl_output.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

std::string text_of(const NetworkFit& fit) {
  TextTable constants{{"constant", " stated", " from", " to", " fitted", " from", " to"}};
  bool bounded = false;
  for (const FittedCost& c : fit.constants) {
    const auto text = [&](double value) { return to_text(value, c.stated.dimension); };
    const bool at_end =
        c.seen && (c.fitted <= 1.001 * c.stated.low || c.fitted >= 0.999 * c.stated.high);
    bounded = bounded || at_end;
    constants.rows.push_back({c.stated.name, text(c.stated.value), text(c.stated.low),
                              text(c.stated.high),
                              c.seen ? text(c.fitted) + (at_end ? " *" : "") : "no row tells",
                              c.seen ? text(c.low) : "", c.seen ? text(c.high) : ""});
  }
  const std::string_view ends =
      bounded ? "* at the end of its stated range: the rows ask for more than this machine's file "
                "allows\n"
              : "";
  return fmt::format("{}{}\n\n{}{}\n{}", fit.machine,
                     fit.network.empty() ? "" : ", over " + fit.network, render(constants), ends,
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
             c.seen ? std::optional(c.fitted) : std::nullopt},
            {"fitted_low", "of eight in ten fits to rows that stray so far",
             c.seen ? std::optional(c.low) : std::nullopt},
            {"fitted_high", "likewise", c.seen ? std::optional(c.high) : std::nullopt}};
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

namespace {

struct Measured {
  std::vector<MeasuredCollective> rows;
  std::vector<RowNote> notes;
};

Measured read_all(const std::vector<std::string>& files, const std::string& machine) {
  Measured all;
  for (const std::string& file : files) {
    const std::vector<MeasuredCollective> inside = read_collectives(file, machine);
    for (RowNote& note : notes_beside(file, inside)) all.notes.push_back(std::move(note));
    all.rows.insert(all.rows.end(), inside.begin(), inside.end());
  }
  return all;
}

// The one machine that all rows are of.
std::string machine_of_rows(const Catalogue& data, const std::vector<std::string>& files) {
  std::string found;
  for (const std::string& file : files) {
    for (const MeasuredCollective& row : read_collectives(file, "")) {
      const std::optional<ClusterChoice> machine = machine_of(data, row);
      const std::string name = machine ? machine->name : "";
      if (name.empty())
        throw UserError(
            fmt::format("{}: {} is no GPU of a machine of the catalogue: say which, "
                        "`stepsim fit network MACHINE {}`",
                        file, row.hardware.empty() ? "nothing" : row.hardware, file));
      if (!found.empty() && name != found)
        throw UserError(fmt::format("{}: is of {}, and others are of {}: fit one machine at a time",
                                    file, name, found));
      found = name;
    }
  }
  return found;
}

// Writes the entry, and says how to use it.
void write_entry(const std::string& path, const NetworkFit& fit) {
  const std::string name = std::filesystem::path(path).stem().string();
  write_file(path, network_entry(fit, name));
  say(stderr, "{} is like {}: use it as DIR/{} with `--data DIR`, or in ~/.config/stepsim\n", path,
      fit.network.empty() ? fit.machine : fit.network, place_of_entry(fit, name));
}

}  // namespace

int fit_network(const CommandLine& line, std::span<const std::string> words,
                const Options& options) {
  if (words.empty())
    throw UserError(
        "fit network: which machine? `stepsim list nodes` and `stepsim list clusters` name them; "
        "or which file of measurements?");
  std::error_code failed;
  const bool named = !std::filesystem::is_regular_file(words.front(), failed);
  std::vector<std::string> files(words.begin() + (named ? 1 : 0), words.end());
  if (files.empty()) files.push_back(line.data.file("scenarios/measured/collectives.csv"));
  const std::string wanted = named ? words.front() : machine_of_rows(line.data, files);
  Cluster machine = load_cluster(line.data, {.name = wanted, .nodes = {}, .network = ""});
  Measured measured = read_all(files, machine.node.name);
  std::uint32_t nodes = 1;
  for (const MeasuredCollective& row : measured.rows) nodes = std::max(nodes, row.nodes);
  // Tables of other machines may stand in the same file: a node without a network is fitted alone.
  if (nodes > 1 && (wanted != machine.node.name || !machine.node.network.empty()))
    machine = load_cluster(line.data, {.name = wanted, .nodes = 2, .network = ""});
  CompareOptions how;
  how.notes = std::move(measured.notes);
  how.only = ClusterChoice{.name = machine.node.name, .nodes = {}, .network = ""};
  const NetworkFit fit = fit_network(line.data, machine, measured.rows, how);
  if (options.has("json"))
    print_result(network_kind, {}, records_of(fit));
  else
    say("{}", text_of(fit));
  if (const auto output = options.get("output")) write_entry(*output, fit);
  return exit_code::yes;
}

}  // namespace stepsim
