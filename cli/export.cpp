// `export` writes a step, or a scenario, as other programs read it.
#include <fmt/format.h>

#include <filesystem>

#include "analysis/report/memory_viz.hpp"
#include "analysis/report/paje.hpp"
#include "analysis/report/trace_events.hpp"
#include "cli/engine_options.hpp"
#include "cli/outputs.hpp"
#include "cli/runs.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/foreign/write/exports.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/simgrid_platform.hpp"

namespace stepsim {
namespace {

constexpr std::uint32_t usual_events = 200'000;

std::string output_of(const Options& options) {
  const auto output = options.get("output");
  if (!output) throw UserError("-o FILE is missing: where the file goes");
  return *output;
}

std::string run_line(const std::string& file, std::string_view kind,
                     const std::vector<Setting>& beside) {
  std::string line = fmt::format("stepsim run {} --from {}", file, kind);
  for (const auto& [key, value] : beside)
    line += " --set " + shell_word(fmt::format("{}={}", key, value));
  return line;
}

// Says what a program that has the file alone loses of the model.
std::vector<std::string> model_unsaid(const CommandLine& line, const Model& model,
                                      const std::string& file, std::vector<Setting> settings) {
  std::erase_if(settings, [](const Setting& each) { return each.first == "model"; });
  try {
    return model_differences(model, load_scenario(line.data, file, settings).model);
  } catch (const UserError& error) {
    return {fmt::format("model: {}; read back without --set model= it is refused: {}", model.name,
                        error.what())};
  }
}

// Reads the files as anybody would. Files that cannot be read would not run there either, and are
// removed.
Scenario read_back(const CommandLine& line, const std::string& kind,
                   const std::vector<ExportedFile>& files, const std::vector<Setting>& settings) {
  try {
    return load_scenario(line.data, files.front().path, settings);
  } catch (const UserError& error) {
    std::error_code failed;
    for (const ExportedFile& file : files) std::filesystem::remove(file.path, failed);
    std::vector<Problem> problems = error.problems();
    std::string& place = problems.front().file;
    place = fmt::format("--as {}: what it would say is refused when it is read{}{}", kind,
                        place.empty() ? "" : ": ", place);
    throw UserError(std::move(problems));
  }
}

// The file is read as anybody would read it, and says itself what that leaves out.
int export_file(const CommandLine& line, const Options& options, const std::string& kind) {
  const std::string& name = options.words.front();
  const std::vector<Setting> settings = settings_of(options);
  const Scenario scenario = load_scenario(line.data, name, settings);
  const std::string output = output_of(options);
  const std::vector<ExportedFile> files = export_as(line.data, scenario, kind, output);
  for (const ExportedFile& file : files) {
    require_no_input(file.path, run_files(line, name, settings));
    write_file(file.path, file.text);
  }
  std::vector<Setting> beside = settings_beside(scenario);
  const std::string again = run_line(output, read_as(kind), beside);
  beside.emplace_back(source_kind_setting, read_as(kind));
  std::vector<std::string> unsaid = left_unsaid(scenario, read_back(line, kind, files, beside));
  if (describes_model(kind)) {
    std::vector<std::string> of_model = model_unsaid(line, scenario.model, output, beside);
    append(of_model, std::move(unsaid));
    unsaid = std::move(of_model);
  }
  std::vector<std::string> comment{fmt::format("{}, written from {}", scenario.name, name), again};
  if (!unsaid.empty()) comment.emplace_back("What this file cannot say:");
  for (const std::string& each : unsaid) comment.push_back("  " + each);
  if (has_comments(kind)) {
    write_file(output, with_comment(kind, files.front().text, comment));
  } else {
    for (const std::string& each : unsaid) say(stderr, "note: {} cannot say {}\n", output, each);
  }
  say("{}: {} key{} of the scenario it cannot say\n{}\n", output, unsaid.size(),
      unsaid.size() == 1 ? "" : "s", again);
  return exit_code::yes;
}

int export_platform(const CommandLine& line, const Options& options) {
  const std::string output = output_of(options);
  if (options.has("set")) throw UserError("--set: expected with a scenario, not with a cluster");
  const Cluster cluster = load_cluster(line.data, cluster_choice(options.words.front(), options));
  if (cluster.ranks() > most_exported_gpus)
    throw UserError(
        fmt::format("--as simgrid: a route between any two of {} GPUs takes minutes "
                    "to load; expected at most {}: say fewer --nodes",
                    cluster.ranks(), most_exported_gpus));
  write_file(output, simgrid_platform(cluster));
  say("{}: {} GPUs of {} node{} of {}\n", output, cluster.ranks(), cluster.nodes,
      cluster.nodes == 1 ? "" : "s", cluster.node.name);
  return exit_code::yes;
}

std::uint32_t most_events_of(const Options& options) {
  const auto text = options.get("max-events");
  return text ? parse_count("--max-events", *text, 100, 100'000'000) : usual_events;
}

Run run_of(const CommandLine& line, const Options& options, const std::string& path) {
  const std::string& name = options.words.front();
  require_no_input(path, run_files(line, name, settings_of(options)));
  return load_run(line, name, settings_of(options), player_of(options));
}

std::string sharing_text(double resolution) {
  return resolution > 0 ? fmt::format(" (those that follow each other within {} share one)",
                                      to_text(Seconds{resolution}))
                        : "";
}

int export_trace(const CommandLine& line, const Options& options, const std::string& path) {
  const std::uint32_t most_events = most_events_of(options);
  const TraceText trace = trace_events(run_of(line, options, path), most_events);
  write_file(path, trace.text);
  say("{}: {} operations in {} slices{}, {}\nopen it at https://ui.perfetto.dev or "
      "chrome://tracing\n",
      path, trace.operations, trace.spans, sharing_text(trace.resolution),
      to_text(Bytes{static_cast<double>(trace.text.size())}));
  return exit_code::yes;
}

int export_paje(const CommandLine& line, const Options& options) {
  const std::string path = output_of(options);
  const std::uint32_t most_events = most_events_of(options);
  const TraceText trace = paje_trace(run_of(line, options, path), most_events);
  write_file(path, trace.text);
  say("{}: {} operations in {} states{}, {}\nopen it with PajeNG (`pj_dump {}`) or ViTE\n", path,
      trace.operations, trace.spans, sharing_text(trace.resolution),
      to_text(Bytes{static_cast<double>(trace.text.size())}), shell_word(path));
  return exit_code::yes;
}

int export_memory(const CommandLine& line, const Options& options, const std::string& path) {
  const std::string& name = options.words.front();
  const std::vector<Setting> settings = settings_of(options);
  require_no_input(path, run_files(line, name, settings));
  const Scenario scenario = load_scenario(line.data, name, settings);
  if (scenario.grpo)
    throw UserError("--memory-viz: the memory of GRPO jobs is not written, only a training step's");
  const Run run = load_run(line, name, settings, player_of(options));
  const auto last = static_cast<std::uint32_t>(run.platform.devices.size() - 1);
  const RankMemory memory = rank_memory(scenario, run, count_of(options, "rank", 0, last));
  const MemoryViz viz = memory_viz(memory, run.graph);
  write_file(path, viz.pickle);
  say("{}: {} requests of rank {}, {} at the peak, {} in segments\nopen it at "
      "https://pytorch.org/memory_viz\n",
      path, viz.requests, memory.rank, to_text(Bytes{viz.peak}), to_text(Bytes{viz.reserved}));
  return exit_code::yes;
}

}  // namespace

int export_command(const CommandLine& line) {
  const auto options = parse("export", line.words);
  if (!options) return exit_code::yes;
  const auto trace = options->get("perfetto"), memory = options->get("memory-viz"),
             kind = options->get("as");
  if (trace.has_value() + memory.has_value() + kind.has_value() > 1)
    throw UserError("--perfetto, --memory-viz and --as: expected one of them");
  if (options->has("rank") && !memory) throw UserError("--rank: expected with --memory-viz alone");
  if (kind == "simgrid") return export_platform(line, *options);
  for (const char* option : {"nodes", "network", "placement"})
    if (options->has(option))
      throw UserError(fmt::format("--{}: expected with --as simgrid alone", option));
  if (kind == "paje") return export_paje(line, *options);
  if (kind) return export_file(line, *options, *kind);
  if (memory) return export_memory(line, *options, *memory);
  if (trace) return export_trace(line, *options, *trace);
  throw UserError("--perfetto FILE is missing: where the trace goes");
}

}  // namespace stepsim
