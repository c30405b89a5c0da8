#include "analysis/studies/plan/plan_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <numeric>
#include <span>

#include "analysis/studies/plan/grpo_plans.hpp"
#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_catalog.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/pipeline/stages.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_plans = 200'000;
constexpr std::int64_t most_pieces = 8, most_rows = 64;

constexpr std::string_view batch_key = "job.global_batch";
constexpr std::string_view accumulation_key = "job.gradient_accumulation";
constexpr std::string_view schedule_key = "strategy.pipeline_parallel.schedule";
constexpr std::string_view layers_key = "strategy.pipeline_parallel.layers";

// A size, the ways to split that it belongs to, and what it changes.
struct SizeAxis {
  std::string_view key;
  std::int64_t PlanSizes::*size;
  std::optional<Split> split;  // nothing: every stack has it
  void (*put)(std::int64_t, Strategy&, Job&);
};
constexpr std::array size_axes{
    SizeAxis{"strategy.tensor_parallel.size", &PlanSizes::tensor, Split::tensor,
             [](std::int64_t n, Strategy& s, Job&) { s.tensor_parallel.size = n; }},
    SizeAxis{"strategy.sequence_parallel.ring", &PlanSizes::context, Split::ring,
             [](std::int64_t n, Strategy& s, Job&) { s.sequence_parallel.ring = n; }},
    SizeAxis{"strategy.sequence_parallel.ulysses", &PlanSizes::context, Split::ulysses,
             [](std::int64_t n, Strategy& s, Job&) { s.sequence_parallel.ulysses = n; }},
    SizeAxis{"strategy.pipeline_parallel.size", &PlanSizes::stages, Split::stages,
             [](std::int64_t n, Strategy& s, Job&) { s.pipeline_parallel.size = n; }},
    SizeAxis{"strategy.pipeline_parallel.virtual_stages", &PlanSizes::pieces, Split::stages,
             [](std::int64_t n, Strategy& s, Job&) { s.pipeline_parallel.virtual_stages = n; }},
    SizeAxis{"strategy.moe.expert_parallel", &PlanSizes::experts, Split::experts,
             [](std::int64_t n, Strategy& s, Job&) { s.experts.parallel = n; }},
    SizeAxis{"strategy.moe.expert_tensor_parallel", &PlanSizes::expert_tensor, Split::experts,
             [](std::int64_t n, Strategy& s, Job&) { s.experts.tensor = n; }},
    SizeAxis{"job.micro_batch", &PlanSizes::rows, std::nullopt,
             [](std::int64_t n, Strategy&, Job& job) { job.micro_batch = n; }},
};

bool has_split(const Scenario& scenario, Split split) {
  if (split == Split::experts && !scenario.model.experts) return false;
  return holds(scenario.stack.choices.splits, split);
}
bool is_open(const SizeAxis& axis, const Scenario& scenario) {
  return !axis.split || has_split(scenario, *axis.split);
}

// Embedding and head in the place of a layer each, as in the layouts that recipes have. Returns
// whether the pieces are so nearly alike: one in twenty of their layers may be missing.
bool nearly_even(std::int64_t layers, std::int64_t pieces) {
  const std::int64_t rows = layers + 2, most = (rows + pieces - 1) / pieces;
  return pieces <= rows && 20 * rows >= 19 * most * pieces;
}

// Returns the layers of each piece; empty: as many as of any other.
std::vector<std::int64_t> layers_dealt(const Model& model, PipelineParallel pipeline) {
  pipeline.layers.clear();
  const std::int64_t pieces = pipeline.pieces();
  if (model.layers % pieces == 0) return {};
  if (pieces == 1 || !nearly_even(model.layers, pieces)) return layers_of_pieces(model, pipeline);
  const std::int64_t most = (model.layers + 2 + pieces - 1) / pieces;
  std::vector<std::int64_t> layers(static_cast<std::size_t>(pieces), most);
  --layers.front();
  --layers.back();
  // Stages in the middle have one less: the ends hold more beside their layers.
  const std::int64_t missing = most * pieces - model.layers - 2;
  for (std::int64_t piece = 0; piece < missing; ++piece)
    --layers[static_cast<std::size_t>((pieces - missing) / 2 + piece)];
  return layers;
}

void put_sizes(const PlanSpace& space, const JobPlan& plan, Strategy& strategy, Job& job) {
  const Scenario& kind = space.kinds[plan.kind].scenario;
  for (const SizeAxis& axis : size_axes)
    if (is_open(axis, kind) && (axis.split != Split::experts || plan.sizes.experts > 1))
      axis.put(plan.sizes.*axis.size, strategy, job);
  PipelineParallel& pipeline = strategy.pipeline_parallel;
  pipeline.schedule = plan.sizes.schedule;
  pipeline.layers = layers_dealt(kind.model, pipeline);
  job.accumulation = plan.accumulation;
}

// A scenario's rules, asked of sizes that no file says.
class Rules {
 public:
  Rules()
      : document_(parse_document("strategy: {pipeline_parallel: {}, tensor_parallel: {}, "
                                 "sequence_parallel: {}, zero_optimization: {}, moe: {}}",
                                 "a plan")),
        root_(document_.root()),
        strategy_(root_.table("strategy")),
        moe_(strategy_.table("moe")) {}

  bool allow(const StepSplit& split) const {
    const std::size_t before = root_.problems();
    check_parallel(strategy_, split);
    check_experts(moe_, split, {true, true});
    return root_.problems() == before;
  }

 private:
  Document document_;
  Table root_, strategy_, moe_;
};

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= std::min(number, most); ++n)
    if (number % n == 0) list.push_back(n);
  return list;
}
std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= most; n *= 2) list.push_back(n);
  return list;
}

// Enumerates what comes out even of one kind.
class Sizes {
 public:
  Sizes(PlanSpace& space, std::size_t kind, const PlanQuestion& question, const Rules& rules)
      : space_(space), kind_(kind), question_(question), rules_(rules) {}

  void add_all() {
    const Scenario& scenario = space_.kinds[kind_].scenario;
    const std::int64_t ranks = scenario.cluster.ranks();
    const std::int64_t near =
        question_.wide_tensor ? ranks : std::int64_t{scenario.cluster.gpus_per_node()};
    PlanSizes sizes;
    for_each(&PlanSizes::tensor, sizes, divisors(near, ranks), [&] {
      for_each(&PlanSizes::context, sizes, powers_of_two(ranks / sizes.tensor), [&] {
        const std::int64_t shared = sizes.tensor * sizes.context;
        if (ranks % shared != 0) return;
        for_each(&PlanSizes::stages, sizes, divisors(ranks / shared, scenario.model.layers), [&] {
          if (ranks % (shared * sizes.stages) != 0) return;  // somebody said the stages
          const std::int64_t data = ranks / shared / sizes.stages;
          if (space_.batch % data != 0) return;
          add_pieces(scenario, sizes, space_.batch / data);
        });
      });
    });
  }

 private:
  void add_pieces(const Scenario& scenario, PlanSizes sizes, std::int64_t rows) {
    std::vector<std::int64_t> pieces(sizes.stages == 1 ? 1 : most_pieces);
    std::iota(pieces.begin(), pieces.end(), 1);
    if (sizes.stages > 1) add_own(pieces, space_.asked.strategy.pipeline_parallel.virtual_stages);
    std::vector<PipelineSchedule> schedules = scenario.stack.choices.schedules;
    if (sizes.stages == 1 || schedules.empty()) schedules = {sizes.schedule};
    for (const PipelineSchedule schedule : schedules) {
      sizes.schedule = schedule;
      for_each(&PlanSizes::pieces, sizes, pieces, [&] { add_more_pieces(scenario, sizes, rows); });
    }
  }
  void add_more_pieces(const Scenario& scenario, PlanSizes sizes, std::int64_t rows) {
    const std::int64_t layers = scenario.model.layers, pieces = sizes.stages * sizes.pieces;
    if (sizes.pieces > 1 && layers % pieces != 0 && !nearly_even(layers, pieces)) return;
    for_each(&PlanSizes::experts, sizes, holders_of_experts(scenario), [&] {
      const bool shared = sizes.experts > 1 && sizes.tensor > 1;
      std::vector<std::int64_t> tensor{1};
      if (shared) tensor.push_back(sizes.tensor);
      for_each(&PlanSizes::expert_tensor, sizes, tensor, [&] {
        std::vector<std::int64_t> list =
            powers_of_two(sizes.context > 1 ? 1 : std::min(rows, most_rows));
        add_own(list, space_.asked.job.micro_batch);
        for_each(&PlanSizes::rows, sizes, list, [&] {
          if (rows % sizes.rows == 0) add({kind_, sizes, rows / sizes.rows});
        });
      });
    });
  }

  // The size that the scenario has is tried, too.
  static void add_own(std::vector<std::int64_t>& list, std::int64_t own) {
    if (!holds(list, own)) list.push_back(own);
  }

  std::vector<std::int64_t> holders_of_experts(const Scenario& scenario) const {
    if (!space_.kinds[kind_].experts) return {1};
    std::vector<std::int64_t> list =
        divisors(scenario.model.experts->count, scenario.cluster.ranks());
    std::erase(list, 1);
    return list;
  }

  // Tries the values of a size. A size that the stack does not have, or that somebody set, has one.
  template <class Use>
  void for_each(std::int64_t PlanSizes::*size, PlanSizes& sizes, std::vector<std::int64_t> values,
                const Use& use) {
    const Scenario& scenario = space_.kinds[kind_].scenario;
    const auto axis = std::ranges::find_if(size_axes, [&](const SizeAxis& each) {
      return each.size == size && is_open(each, scenario);
    });
    if (axis == size_axes.end()) {
      values = {1};
    } else if (const auto said = said_size(axis->key)) {
      values = {*said};
    }
    for (const std::int64_t value : values) {
      sizes.*size = value;
      use();
    }
    sizes.*size = 1;
  }

  std::optional<std::int64_t> said_size(std::string_view key) const {
    const auto place = std::ranges::find(question_.settings, key, &Setting::first);
    if (place == question_.settings.end()) return std::nullopt;
    const auto number = parse_quantity(place->second);
    return number ? std::optional(static_cast<std::int64_t>(number->value)) : std::nullopt;
  }

  void add(const JobPlan& plan) {
    const StepInput input = input_of(space_, plan);
    if (!rules_.allow({input.model, input.cluster, input.strategy, input.job, input.stack})) return;
    if (space_.plans.size() == most_plans)
      throw UserError(
          fmt::format("there are more than {} plans: --set some of their keys, such as "
                      "--set strategy.tensor_parallel.size=8",
                      most_plans));
    space_.plans.push_back(plan);
  }

  PlanSpace& space_;
  std::size_t kind_;
  const PlanQuestion& question_;
  const Rules& rules_;
};

// Returns all combinations of what the stack's users choose among, less what somebody set; what is
// chosen for experts, where ranks hold different ones.
std::vector<std::vector<Setting>> choices_of(const StackChoices& choices,
                                             std::span<const Setting> set, bool sharing) {
  std::vector<std::vector<Setting>> all{{}};
  for (const auto& [key, values] : choices.keys) {
    if (values.empty() || is_set(set, key)) continue;
    if (!sharing && key.starts_with("strategy.moe.")) continue;
    std::vector<std::vector<Setting>> more;
    for (const std::vector<Setting>& before : all)
      for (const std::string& value : values) {
        more.push_back(before);
        more.back().emplace_back(key, value);
      }
    all = std::move(more);
  }
  return all;
}

// Sets every size to 1, so that what is not a size can be loaded; the rows of a step are any number
// that comes out even.
std::vector<Setting> without_sizes(const Scenario& asked, std::int64_t ranks) {
  std::vector<Setting> settings;
  for (const SizeAxis& axis : size_axes)
    if (is_open(axis, asked)) settings.emplace_back(axis.key, "1");
  const PipelineParallel& pipeline = asked.strategy.pipeline_parallel;
  if (pipeline.size > 1) settings.emplace_back(schedule_key, "1f1b");
  if (!pipeline.layers.empty()) settings.emplace_back(layers_key, "[]");
  if (asked.job.global_batch > 0) settings.emplace_back(batch_key, std::to_string(ranks));
  return settings;
}

Scenario load_kind(const PlanQuestion& question, const std::vector<Setting>& more,
                   std::span<const Setting> without, std::int64_t holders) {
  std::vector<Setting> settings = question.settings;
  for (const Setting& each : without) settings.push_back(each);
  if (holders > 1) settings.emplace_back("strategy.moe.expert_parallel", std::to_string(holders));
  append(settings, more);
  return load_scenario(question.data, question.source, settings);
}

// The fewest that share experts, so that what follows from sharing them is loaded.
std::int64_t fewest_holders(const Scenario& asked) {
  if (!has_split(asked, Split::experts)) return 1;
  for (const std::int64_t n : divisors(asked.model.experts->count, asked.cluster.ranks()))
    if (n > 1 && asked.cluster.ranks() % n == 0) return n;
  return 1;
}

void add_kinds(PlanSpace& space, const PlanQuestion& question) {
  const std::uint32_t usual = space.asked.cluster.nodes;
  const std::vector<std::uint32_t> nodes =
      question.nodes.empty() ? std::vector<std::uint32_t>{usual} : question.nodes;
  std::vector<std::int64_t> holders{1};
  if (const std::int64_t fewest = fewest_holders(space.asked); fewest > 1)
    holders.push_back(fewest);
  std::exception_ptr refused;
  for (const std::uint32_t count : nodes) {
    const std::int64_t ranks = std::int64_t{count} * space.asked.cluster.gpus_per_node();
    const std::vector<Setting> without = without_sizes(space.asked, ranks);
    for (const std::int64_t sharing : holders) {
      for (std::vector<Setting> chosen :
           choices_of(space.asked.stack.choices, question.settings, sharing > 1)) {
        if (!question.nodes.empty()) chosen.emplace_back("cluster.nodes", std::to_string(count));
        try {
          space.kinds.push_back(
              {chosen, load_kind(question, chosen, without, sharing), sharing > 1, {}});
        } catch (const UserError&) {  // this stack or model does not have it
          refused = std::current_exception();
        }
      }
    }
  }
  if (space.kinds.empty()) std::rethrow_exception(refused);
}

void fill_points(PlanSpace& space, const PlanQuestion& question) {
  std::map<std::string, std::vector<std::string>> columns;  // by key, plan by plan
  std::vector<std::string> keys;
  const auto column = [&](std::string_view key) -> std::vector<std::string>& {
    auto [place, added] = columns.try_emplace(std::string(key));
    if (added) keys.emplace_back(key);
    place->second.resize(space.plans.size());
    return place->second;
  };
  for (std::size_t i = 0; i < space.plans.size(); ++i) {
    const JobPlan& plan = space.plans[i];
    const PlanKind& kind = space.kinds[plan.kind];
    for (const auto& [key, value] : kind.settings) column(key)[i] = value;
    if (space.asked.grpo) continue;
    for (const SizeAxis& axis : size_axes)
      if (is_open(axis, kind.scenario) && !is_set(question.settings, axis.key) &&
          (axis.size != &PlanSizes::expert_tensor || plan.sizes.experts > 1))
        column(axis.key)[i] = std::to_string(plan.sizes.*axis.size);
    if (has_split(kind.scenario, Split::stages))
      column(schedule_key)[i] =
          pipeline_schedule_names[static_cast<std::size_t>(plan.sizes.schedule)];
    const PipelineParallel pipeline = input_of(space, plan).strategy.pipeline_parallel;
    if (!pipeline.layers.empty() || !space.asked.strategy.pipeline_parallel.layers.empty())
      column(layers_key)[i] = fmt::format("[{}]", fmt::join(pipeline.layers, ", "));
    if (space.asked.job.global_batch == 0 && question.batch == 0)
      column(accumulation_key)[i] = std::to_string(plan.accumulation);
  }
  Axis axis{keys, std::vector<std::vector<std::string>>(space.plans.size())};
  for (const std::string& key : keys)
    for (std::size_t i = 0; i < space.plans.size(); ++i) axis.choices[i].push_back(columns[key][i]);
  space.sweep.scenario = question.source;
  space.sweep.fixed = question.settings;
  if (question.batch > 0) space.sweep.fixed.emplace_back(batch_key, std::to_string(question.batch));
  space.sweep.where = question.where;
  space.sweep.axes.push_back(std::move(axis));
}

// Keeps the plans that meet the conditions, in the same order.
void keep_points(PlanSpace& space) {
  std::map<SweepValues, std::size_t> places;
  const auto& choices = space.sweep.axes.front().choices;
  for (std::size_t i = 0; i < choices.size(); ++i) places.emplace(choices[i], i);
  space.points = expand(space.sweep);
  space.plans =
      mapped(space.points, [&](const SweepValues& point) { return space.plans[places.at(point)]; });
}

// Returns the plan whose settings the scenario has already; what a plan leaves as it is, is so.
std::optional<std::size_t> own_plan(const PlanSpace& space) {
  std::map<std::string, std::string> has;
  for (const ResolvedKey& key : resolved_keys(space.asked)) has.emplace(key.path(), key.value);
  const auto& layers = space.asked.strategy.pipeline_parallel.layers;
  has[std::string(layers_key)] =
      layers.empty() ? "[]" : fmt::format("[{}]", fmt::join(layers, ", "));
  has["strategy.moe.expert_tensor_parallel"] =
      std::to_string(expert_tensor_of(space.asked.strategy));
  const std::vector<std::string>& keys = space.sweep.axes.front().keys;
  const auto same = [&](const SweepValues& point) {
    for (std::size_t i = 0; i < keys.size(); ++i)
      if (!point[i].empty() && has[keys[i]] != point[i]) return false;
    return true;
  };
  const auto place = std::ranges::find_if(space.points, same);
  if (place == space.points.end()) return std::nullopt;
  return static_cast<std::size_t>(place - space.points.begin());
}

[[noreturn]] void fail_uneven(const PlanSpace& space, const PlanQuestion& question) {
  const Model& model = space.asked.model;
  const std::int64_t ranks = space.asked.cluster.ranks();
  const bool said = is_set(question.settings, "job.micro_batch");
  const std::int64_t rows = said ? space.asked.job.micro_batch : 1;
  const std::int64_t even = (space.batch + ranks * rows - 1) / (ranks * rows) * ranks * rows;
  throw UserError(fmt::format(
      "no plan comes out even: {} rows of a step{}, {} layers and {} heads of {}, on {} GPUs{}",
      space.batch, said ? fmt::format(", {} to a micro-batch", rows) : "", model.layers,
      model.attention.heads, model.name, ranks,
      even == space.batch ? "" : fmt::format("; {} rows would divide among them", even)));
}

// Adds the plans of a GRPO job, each of which is a kind.
void add_grpo_plans(PlanSpace& space, const PlanQuestion& question) {
  for (PlanKind& kind : grpo_kinds(space.asked, question)) {
    space.plans.push_back({space.kinds.size(), {}, 1});
    space.kinds.push_back(std::move(kind));
  }
}

bool same_word(std::string_view one, std::string_view other) {
  return std::ranges::equal(
      one, other, {}, [](char c) { return c == '-' ? '_' : c; },
      [](char c) { return c == '-' ? '_' : c; });
}

// Adds, in the words of a scenario, what settings decide in the words of another program's file.
PlanQuestion in_words_of_scenario(PlanQuestion question) {
  const auto theirs = settings_of_source(question.settings);
  const std::string file = find_scenario(question.data, question.source);
  if (theirs.empty() || file.ends_with(".h5")) return question;
  const auto source = translate_source(question.data, file, question.settings);
  if (!source) return question;
  for (const TranslatedLine& line : source->lines)
    if (std::ranges::any_of(theirs,
                            [&](const Setting& set) { return same_word(set.first, line.key); }))
      question.settings.emplace_back(line.path, line.value);
  return question;
}

// Returns whether plans differ in a key of their kinds.
bool varies(const PlanSpace& space, const std::string& key) {
  const auto value_of = [&](const PlanKind& kind) {
    const auto place = std::ranges::find(kind.settings, key, &Setting::first);
    return place == kind.settings.end() ? std::string() : place->second;
  };
  return std::ranges::any_of(space.kinds, [&](const PlanKind& kind) {
    return value_of(kind) != value_of(space.kinds.front());
  });
}

// Returns whether a plan leaves this as plain as the job that was asked about has it.
bool stays_off(const PlanSpace& space, const std::string& key, const std::string& value) {
  if (value != "none" && value != "false" && value != "all_to_all") return false;
  const std::vector<ResolvedKey> keys = resolved_keys(space.asked);
  const auto own = std::ranges::find(keys, key, &ResolvedKey::path);
  return own == keys.end() || own->value == value;
}

}  // namespace

PlanSpace plan_space(const PlanQuestion& asked) {
  const PlanQuestion question = in_words_of_scenario(asked);
  PlanSpace space;
  space.asked = load_scenario(question.data, question.source, question.settings);
  if (space.asked.grpo) {
    add_grpo_plans(space, question);
    fill_points(space, question);
    keep_points(space);
    return space;
  }
  const Job& job = space.asked.job;
  const auto data =
      static_cast<std::int64_t>(mesh_of(space.asked.strategy, space.asked.cluster).data());
  space.batch = question.batch > 0     ? question.batch
                : job.global_batch > 0 ? job.global_batch
                                       : job.micro_batch * job.accumulation * data;
  add_kinds(space, question);
  const Rules rules;
  for (std::size_t kind = 0; kind < space.kinds.size(); ++kind)
    Sizes(space, kind, question, rules).add_all();
  if (space.plans.empty()) fail_uneven(space, question);
  fill_points(space, question);
  keep_points(space);
  if (!question.of_model) space.own = own_plan(space);
  return space;
}

StepInput input_of(const PlanSpace& space, const JobPlan& plan) {
  StepInput input = step_input(space.kinds[plan.kind].scenario);
  put_sizes(space, plan, input.strategy, input.job);
  return input;
}

std::string plan_text(const PlanSpace& space, const JobPlan& plan) {
  const auto last = [](const std::string& key) { return key.substr(key.rfind('.') + 1); };
  if (space.asked.grpo) return space.kinds[plan.kind].title;
  const StepInput input = input_of(space, plan);
  std::string text = to_text(mesh_of(input.strategy, input.cluster));
  if (text.empty()) text = fmt::format("data {}", input.cluster.ranks());
  if (plan.sizes.experts > 1 && text.find("experts") == std::string::npos)
    text += fmt::format(", experts over {}", plan.sizes.experts);
  if (plan.sizes.pieces > 1) text += fmt::format(", {} pieces a stage", plan.sizes.pieces);
  if (splits_backward(plan.sizes.schedule))
    text += fmt::format(", {}", to_text(plan.sizes.schedule));
  text += fmt::format(", micro-batch {}", plan.sizes.rows);
  for (const auto& [key, value] : space.kinds[plan.kind].settings) {
    if (!varies(space, key) || stays_off(space, key, value)) continue;
    text += fmt::format(", {}", last(key));
    if (value != "true") text += fmt::format(" {}", value);
  }
  return text;
}

}  // namespace stepsim
