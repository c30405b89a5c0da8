// `together` says what two jobs on one fabric lose to each other.
#include "analysis/studies/together/together.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "cli/command.hpp"
#include "cli/engine_options.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_shared = 5;

// The nodes of B are those behind the nodes of A, unless somebody says it.
std::array<std::string, 2> placements(const Options& options, std::uint32_t a, std::uint32_t b) {
  const std::string said = options.get("placement").value_or("");
  if (said.empty()) return {fmt::format("0-{}", a - 1), fmt::format("{}-{}", a, a + b - 1)};
  const std::size_t slash = said.find('/');
  if (slash == said.npos)
    throw UserError(fmt::format(
        "--placement: expected the nodes of A and those of B, such as 0-3/4-7, found \"{}\"",
        said));
  return {said.substr(0, slash), said.substr(slash + 1)};
}

struct PlayedJob {
  std::string word, name;
  Scenario scenario;
  std::string nodes{};  // of the machine
};

std::array<PlayedJob, 2> read_jobs(const CommandLine& line, const Options& options) {
  if (options.words.size() != 2)
    throw UserError(
        fmt::format("which two scenarios? usage: {}", usage_of_command("together").call));
  const std::vector<Setting> settings = settings_of(options);
  std::array<PlayedJob, 2> jobs;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    Scenario scenario = load_scenario(line.data, options.words[i], settings);
    jobs[i] = {options.words[i], scenario.name, std::move(scenario)};
  }
  const bool said = std::ranges::any_of(
      jobs, [](const PlayedJob& job) { return !job.scenario.cluster.placement.empty(); });
  if (said && !options.has("placement")) {
    for (PlayedJob& job : jobs)
      job.nodes = fmt::format("{}", fmt::join(job.scenario.cluster.placement, ","));
    return jobs;
  }
  const auto whose =
      placements(options, jobs[0].scenario.cluster.nodes, jobs[1].scenario.cluster.nodes);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<Setting> own = settings;
    own.emplace_back("cluster.placement", whose[i]);
    jobs[i].nodes = whose[i];
    jobs[i].scenario = load_scenario(line.data, jobs[i].word, own);
    jobs[i].scenario.name = jobs[i].name;
  }
  return jobs;
}

std::string together_text(const std::array<PlayedJob, 2>& jobs, const JobsTogether& answer) {
  TextTable table{{"", "job", " nodes", " alone", " together", " shortest to longest", " loses"}};
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const JobBeside& job = answer.jobs[i];
    table.rows.push_back({i == 0 ? "A" : "B", jobs[i].name, jobs[i].nodes, to_text(job.alone),
                          to_text(job.beside),
                          fmt::format("{} to {}", to_text(job.shortest), to_text(job.longest)),
                          percent(job.loses())});
  }
  std::string text = render(table, line_width()) + "\n";
  if (answer.links.empty()) text += "No link between nodes carries both.\n";
  for (std::size_t i = 0; i < std::min(most_shared, answer.links.size()); ++i)
    text += fmt::format("{} carries both, and something for {} of the time\n", answer.links[i].name,
                        percent(answer.links[i].busy, 0));
  if (answer.links.size() > most_shared)
    text += fmt::format("and {} more links\n", answer.links.size() - most_shared);
  return text + played_text(answer.by);
}

Records job_records(const std::string& name, const JobBeside& job) {
  return {{"name", "of the scenario", name},
          {"alone_s", "a step without the other job", job.alone},
          {"together_s", "a step while the other job runs, mean", job.beside},
          {"shortest_s", "of these", job.shortest},
          {"longest_s", "of these", job.longest},
          {"steps", "so many", job.steps},
          {"loses", "of its time alone", job.loses(), Measure::error}};
}

Records together_records(const std::array<std::string, 2>& names, const JobsTogether& answer) {
  const auto link = [](const SharedLink& each) -> Records {
    return {{"name", "of the link", each.name},
            {"busy", "share of the time in which something is on it", each.busy, Measure::share}};
  };
  return {
      {"a", "the first job", job_records(names[0], answer.jobs[0])},
      {"b", "the second job", job_records(names[1], answer.jobs[1])},
      {"links", "between nodes that carry both, the busiest first", list_of(answer.links, link)},
      played_record(answer.by)};
}

}  // namespace

Records together_sample() {
  JobsTogether answer;
  answer.links.emplace_back();
  answer.by = PlayedBy{.difference = 0.0, .energy_difference = 0.0};
  return together_records({"", ""}, answer);
}

int together_command(const CommandLine& line) {
  const auto options = parse("together", line.words);
  if (!options) return exit_code::yes;
  const std::array<PlayedJob, 2> jobs = read_jobs(line, *options);
  const JobsTogether answer =
      play_together(jobs[0].scenario, jobs[1].scenario, player_of(*options));
  if (options->has("json"))
    print_result(together_kind, {}, together_records({jobs[0].name, jobs[1].name}, answer));
  else
    say("{}", together_text(jobs, answer));
  return exit_code::yes;
}

}  // namespace stepsim
