// `plan` says how to split a job over a machine.
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <filesystem>

#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/outcome/played_again.hpp"
#include "cli/engine_options.hpp"
#include "cli/models.hpp"
#include "cli/outputs.hpp"
#include "cli/plan_text.hpp"
#include "cli/progress.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/sweep_files.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

constexpr std::uint32_t most_rows = 1u << 30;

// A plan leaves this many percent free. Of the 105 published steps with a memory figure
// (`stepsim-rows`) three in four need at most 9.7 % more than is predicted: a plan that leaves 9 %
// fits in as many.
constexpr std::uint32_t usually_free = 9;

constexpr std::uint32_t usual_seconds = 60, most_seconds = 1'000'000;
constexpr double usual_memory = 1.5e9;

volatile std::sig_atomic_t was_interrupted = 0;

// The first Ctrl-C ends the search, one that comes later the program: wrappers may send it twice.
void end_search_on_interrupt() {
  static volatile std::time_t since = 0;
  struct sigaction action = {};
  action.sa_handler = [](int number) {
    if (was_interrupted == 0) {
      since = ::time(nullptr);
      was_interrupted = 1;
    } else if (::time(nullptr) > since + 1) {
      ::signal(number, SIG_DFL);
      ::raise(number);
    }
  };
  ::sigaction(SIGINT, &action, nullptr);
}

// Says on standard error which plan is the best so far. Who looks at a terminal sees each, and how
// far the search is; elsewhere a search that is over soon says nothing.
class BestSoFar {
 public:
  BestSoFar(const PlanSpace& space, PlanGoal goal) : space_(space), goal_(goal) {}

  void tell(const SoFar& so_far) {
    constexpr double soon = 3;  // s
    if (so_far.plan && so_far.plan != last_ && (line_.is_seen() || so_far.seconds >= soon)) {
      last_ = so_far.plan;
      line_.news(best_so_far_text(space_, goal_, so_far));
    }
    line_.redraw(
        [&] { return fmt::format("{:.0f} s, {} replays", so_far.seconds, so_far.replayed); });
  }

 private:
  const PlanSpace& space_;
  PlanGoal goal_;
  std::optional<std::size_t> last_;
  StatusLine line_;
};

std::vector<std::uint32_t> nodes_of(const Options& options) {
  const auto text = options.get("nodes");
  if (!text) return {};
  constexpr std::uint32_t most = 8192;
  const Axis axis = parse_axis("--nodes", fmt::format("cluster.nodes={}", *text));
  return mapped(axis.choices, [](const std::vector<std::string>& choice) {
    return parse_count("--nodes", choice.front(), 1, most);
  });
}

// A model, unless it is the name or the file of a scenario.
bool names_model(const Catalogue& data, const std::string& word) {
  const auto is_scenario = [&](const std::string& name) {
    return name == word || fs::path(name).filename() == word;
  };
  std::error_code failed;
  if (fs::is_regular_file(word, failed))
    return !is_script(word) && content_of(word).root().has("architectures");
  return std::ranges::none_of(scenario_names(data), is_scenario);
}

// Returns the question with the settings that options stand for; a model becomes the scenario that
// plans begin with.
PlanQuestion question_of(const CommandLine& line, const Options& options) {
  PlanQuestion question;
  question.data = line.data;
  question.source = options.words.front();
  question.nodes = nodes_of(options);
  question.where = all_of(options, "where");
  question.wide_tensor = options.has("wide-tensor");
  question.batch = count_of(options, "global-batch", 1, most_rows).value_or(0);
  const bool model = names_model(line.data, question.source);
  if (model) {
    find_model(line.data, question.source);  // has the better words where there is none
    question.settings.emplace_back("model", question.source);
    question.settings.emplace_back("name", question.source);
    question.source = scenario_file(line.data, "plan");
    question.of_model = true;
    if (question.batch == 0) question.batch = 256;
  }
  const auto add = [&](std::string_view option, std::string_view key) {
    if (const auto value = options.get(option)) question.settings.emplace_back(key, *value);
  };
  if (const auto cluster = options.get("cluster")) {
    const auto& nodes = question.nodes;
    question.settings.push_back(
        cluster_setting(*cluster, nodes.empty() ? std::nullopt : std::optional(nodes.front())));
  } else if (model) {
    throw UserError(
        "on which machine? --cluster NAME: `stepsim list clusters` and `list nodes` "
        "name them");
  } else if (question.nodes.size() == 1) {
    question.settings.emplace_back("cluster.nodes", std::to_string(question.nodes.front()));
  }
  if (question.nodes.size() == 1) question.nodes.clear();  // said above
  add("stack", "stack");
  add("sequence", "job.sequence");
  add("precision", "strategy.precision");
  append(question.settings, said_settings_of(options));
  return question;
}

PlanSearch search_of(const CommandLine& line, const Options& options) {
  PlanSearch search;
  search.data = line.data;
  const std::string goal = word_of(options, "goal", "time", {"time", "cost", "memory", "energy"});
  search.goal =
      static_cast<PlanGoal>(std::ranges::find(plan_goal_names, goal) - plan_goal_names.begin());
  if (search.goal == PlanGoal::cost && !options.has("price"))
    throw UserError("--goal cost: needs --price N, money for a GPU and an hour");
  search.top = count_of(options, "top", 1, 1000).value_or(5);
  search.samples = count_of(options, "samples", 0, 4096).value_or(8);
  search.free = count_of(options, "free", 0, 90).value_or(usually_free) / 100.0;
  search.workers = count_of(options, "workers", 1, 4096).value_or(search.workers);
  search.within = count_of(options, "within", 0, most_seconds).value_or(usual_seconds);
  search.memory = size_of(options, "memory").value_or(usual_memory);
  search.interrupted = [] { return was_interrupted != 0; };
  search.progress = progress_bar("draws");
  return search;
}

void make_folder(const std::string& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (failed) throw UserError({{folder, 0, "", "cannot be made: " + failed.message()}});
}

// These name the files in the folder of the best plans: the table of all that were replayed, and
// the n-th plan as a scenario.
std::string table_stem(const std::string& folder) {
  return folder + "/plans";
}
std::string plan_file(const std::string& folder, std::size_t n) {
  return fmt::format("{}/{}.yaml", folder, n);
}

// Makes it, unless plans would be written over what they are made from.
void prepare_folder(const std::string& folder, const CommandLine& line,
                    const PlanQuestion& question, const PlanSpace& space, std::size_t top) {
  const std::vector<std::string> inputs = files_of(line, question.source, space.asked);
  require_own_names(table_stem(folder), inputs);
  for (std::size_t n = 1; n <= top; ++n) require_no_input(plan_file(folder, n), inputs);
  make_folder(folder);
}

// The best as scenarios, in their order, and a table of all replays.
void write_plans(const std::string& folder, const PlanSpace& space, const PlanSearch& search,
                 const PlanAnswer& answer) {
  std::size_t number = 0;
  for (const FoundPlan& found : answer.best)
    write_file(plan_file(folder, ++number),
               scenario_yaml(load_scenario(search.data, space.sweep.scenario,
                                           settings_of(space.sweep, space.points[found.plan]))));
  write_tables(table_stem(folder), answer.table);
}

// Tries twice as many nodes, and twice as many again, until something fits.
std::string more_nodes_text(const PlanQuestion& question, const PlanSpace& space,
                            PlanSearch search) {
  if (!question.nodes.empty()) return "";
  search.top = 1;
  search.samples = 0;
  search.journal.clear();
  search.begun = std::chrono::steady_clock::now();
  for (std::uint32_t nodes = 2 * space.asked.cluster.nodes; nodes <= most_nodes_tried; nodes *= 2) {
    PlanQuestion more = question;
    more.settings.emplace_back("cluster.nodes", std::to_string(nodes));
    try {
      const PlanSpace wider = plan_space(more);
      const PlanAnswer answer = search_plans(wider, search);
      if (answer.best.empty() && answer.open.plans > 0) return "";
      if (!answer.best.empty())
        return fmt::format("On {} nodes this one fits:\n{}", nodes,
                           plan_answer_text(wider, search, answer, {}));
    } catch (const UserError&) {  // nothing comes out even
    }
  }
  return fmt::format("Up to {} nodes nothing fits.\n", most_nodes_tried);
}

// Plays the plan that stands first by the engine of what is read.
std::optional<PlayedBy> first_again(const PlanQuestion& question, const PlanSpace& space,
                                    const PlanAnswer& answer, PlanGoal goal, const Player& player) {
  if (answer.best.empty()) return std::nullopt;
  const FoundPlan& first = answer.best.front();
  return play_again(question.data, question.source,
                    settings_of(space.sweep, space.points[first.plan]),
                    *first.outcome.of("step_time"), player, goal == PlanGoal::energy);
}

// Unless all are asked for, only a batch of which every GPU has equally many rows is looked at, and
// it has to be much better.
std::vector<OtherBatch> other_batches(const PlanQuestion& question, const PlanSpace& space,
                                      const PlanSearch& search, const PlanAnswer& answer,
                                      bool all) {
  constexpr double much = 0.05;
  if (answer.open.plans > 0 && !all) return {};
  std::vector<OtherBatch> better = better_batches(question, space, search, answer, !all);
  if (all) return better;
  std::erase_if(better, [](const OtherBatch& each) { return each.gain < much; });
  better.resize(std::min<std::size_t>(better.size(), 1));
  return better;
}

PlanAnswer search_and_tell(const PlanSpace& space, PlanSearch search) {
  end_search_on_interrupt();
  BestSoFar best_so_far(space, search.goal);
  search.tell = [&](const SoFar& so_far) { best_so_far.tell(so_far); };
  return search_plans(space, search);
}

void require_energy(const PlanSpace& space) {
  if (space.asked.grpo)
    throw UserError("--goal energy: the energy of GRPO jobs is not predicted, take another goal");
  for (const auto& kind : space.kinds)
    if (!power_of(kind.scenario.cluster))
      throw UserError(
          fmt::format("--goal energy: the files of {} do not say what its parts draw (draw: of the "
                      "GPU, the node and the network)",
                      kind.scenario.cluster.node.name));
}

}  // namespace

int plan_command(const CommandLine& line) {
  const auto options = parse("plan", line.words);
  if (!options) return exit_code::yes;
  require_one_form(*options, {"brief", "json"});
  const PlanQuestion question = question_of(line, *options);
  PlanSearch search = search_of(line, *options);
  const std::string folder = options->get("output").value_or("");
  const PlanSpace space = plan_space(question);
  const Rates rates = rates_of(*options, line.data, space.asked.cluster);
  if (!folder.empty()) {
    prepare_folder(folder, line, question, space, search.top);
    search.journal = table_stem(folder) + ".journal";
  }
  if (space.asked.grpo && options->has("free"))
    throw UserError("--free: engines of a GRPO job fill the memory on purpose");
  if (space.asked.grpo) search.free = 0;
  if (search.goal == PlanGoal::energy) require_energy(space);
  const PlanAnswer answer = search_and_tell(space, search);
  if (!folder.empty()) write_plans(folder, space, search, answer);
  const bool fits = !answer.best.empty();
  // A search that was cut short has no time for another replay, unless somebody asks for it.
  const Player player = player_of(*options);
  const auto played = answer.open.plans > 0 && !options->has("engine")
                          ? std::nullopt
                          : first_again(question, space, answer, search.goal, player);
  const std::vector<OtherBatch> batches =
      other_batches(question, space, search, answer, options->has("also-batch"));
  if (options->has("json"))
    print_result(plan_kind, asked_records(space.asked, {question.source, question.settings}),
                 plan_answer_records(space, search, answer, rates, batches, played));
  else if (options->has("brief"))
    say("{}{}{}", plan_answer_text(space, search, answer, rates, taken_in_brief(space.asked)),
        batches_text(space, batches),
        fits || answer.open.plans > 0 ? "" : more_nodes_text(question, space, search));
  else
    say("{}{}{}{}{}{}", assumptions_text(space.asked.assumptions),
        plan_answer_text(space, search, answer, rates), batches_text(space, batches),
        fits || answer.open.plans > 0 ? "" : more_nodes_text(question, space, search),
        notes_text(space.asked), played ? "\nthe first plan: " + to_text(*played) + "\n" : "");
  // The journal stays where plans are left open: the same command goes on from it.
  const std::string done = answer.open.plans > 0 ? "" : search.journal;
  return finish_sweep(done, answer.table, fits ? exit_code::yes : exit_code::no);
}

}  // namespace stepsim
