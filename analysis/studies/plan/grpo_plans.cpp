#include "analysis/studies/plan/grpo_plans.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "analysis/studies/grpo/grpo_memory.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/process/worker.hpp"
#include "workloads/grpo/placement.hpp"

namespace stepsim {
namespace {

// A part of a plan: what it sets, and how that is called.
struct GrpoPart {
  std::vector<Setting> settings{};
  std::string title{};
};

std::vector<std::int64_t> sizes_up_to(std::int64_t most) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n < most; n *= 2) list.push_back(n);
  list.push_back(most);
  return list;
}

// Returns the numbers that divide the GPUs of a node.
std::vector<std::int64_t> parts_of_node(const Cluster& cluster) {
  std::vector<std::int64_t> list;
  for (std::int64_t n = 1; n <= cluster.gpus_per_node(); ++n)
    if (cluster.gpus_per_node() % n == 0) list.push_back(n);
  return list;
}

std::string count_text(std::int64_t count, std::string_view what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// Puts learners on so many of the first nodes, as many on each; colocated they are everywhere.
std::vector<GrpoPart> learner_parts(const Cluster& cluster, const Grpo& grpo) {
  if (grpo.layout == GrpoLayout::colocated) return {GrpoPart{}};
  std::vector<GrpoPart> parts;
  for (const std::int64_t nodes : sizes_up_to(cluster.nodes))
    for (const std::int64_t each : parts_of_node(cluster)) {
      const std::vector<std::int64_t> list(static_cast<std::size_t>(nodes), each);
      parts.push_back(
          {{{"job.num_learners_per_node", fmt::format("[{}]", fmt::join(list, ", "))}},
           fmt::format("{} on {}", count_text(each, "learner"),
                       nodes == 1 ? "one node" : fmt::format("each of {} nodes", nodes))});
    }
  return parts;
}

std::vector<GrpoPart> engine_parts(const Cluster& cluster) {
  return mapped(parts_of_node(cluster), [](std::int64_t gpus) {
    return GrpoPart{{{"job.vllm_tensor_parallel_size", std::to_string(gpus)}}};
  });
}

// Returns the gathering as the job says it, and tensor by tensor where learners gather the whole
// model for a sync.
std::vector<GrpoPart> gathering_parts(const Grpo& grpo) {
  std::vector<GrpoPart> parts{
      {{{"job.gather_whole_model", grpo.gather_whole_model ? "true" : "false"}}, ""}};
  if (grpo.gather_whole_model)
    parts.push_back({{{"job.gather_whole_model", "false"}}, "tensors gathered one by one"});
  return parts;
}

// Returns what takes memory off a learner, each alone.
std::vector<GrpoPart> saving_parts(const Scenario& asked) {
  const Grpo& grpo = *asked.grpo;
  std::vector<GrpoPart> parts;
  for (const std::int64_t n : {2, 4, 8})
    if (n > asked.strategy.sequence_parallel.ulysses)
      parts.push_back({{{"job.sequence_parallel_size", std::to_string(n)}},
                       fmt::format("{} learners to a sequence", n)});
  for (std::int64_t rows = grpo.pack_rows / 2; rows > 0; rows /= 2)
    parts.push_back({{{"job.pack_rows", std::to_string(rows)}},
                     fmt::format("{} to a micro-batch", count_text(rows, "response"))});
  if (const std::int64_t least = grpo.model_length();
      grpo.pack_rows == 0 && grpo.pack_length > least)
    parts.push_back(
        {{{"job.pack_length", std::to_string(least)}}, fmt::format("packs of {} tokens", least)});
  parts.push_back({{{"strategy.cross_entropy", "fused"}}, "fused cross-entropy"});
  return parts;
}

// A plan before it is loaded: its engines are counted only then.
struct Draft {
  PlanKind kind;
  std::vector<std::string> titles;  // of all but the engines, which come second
};

Draft together(const Scenario& asked, const std::vector<const GrpoPart*>& parts) {
  Draft draft{{{}, asked}, {}};
  for (const GrpoPart* part : parts) {
    append(draft.kind.settings, part->settings);
    if (!part->title.empty()) draft.titles.push_back(part->title);
  }
  return draft;
}

struct LoadedPlan {
  std::string refused{};  // why; empty: it loads
  bool fits = false;
  std::size_t engines = 0;
  std::uint32_t gpus = 0;  // of one

  static auto fields(auto& self) {
    return std::tie(self.refused, self.fits, self.engines, self.gpus);
  }
};

LoadedPlan loaded_plan(const PlanQuestion& question, const PlanKind& kind) {
  std::vector<Setting> settings = question.settings;
  append(settings, kind.settings);
  try {
    const Scenario scenario = load_scenario(question.data, question.source, settings);
    return {"", !grpo_memory(scenario).failure,
            place(scenario.cluster, *scenario.grpo).engines.size(), scenario.grpo->tensor_parallel};
  } catch (const UserError& error) {
    return {error.what()};
  }
}

std::string grpo_plan_title(const Draft& draft, const LoadedPlan& plan, bool learners) {
  std::vector<std::string> titles = draft.titles;
  titles.insert(
      titles.begin() + (learners ? 1 : 0),
      fmt::format("{} of {}", count_text(static_cast<std::int64_t>(plan.engines), "engine"),
                  count_text(plan.gpus, "GPU")));
  return fmt::format("{}", fmt::join(titles, ", "));
}

// Returns the kinds that load, with what is known of them without a replay. `learners`: these vary.
std::vector<PlanKind> sound_kinds(const PlanQuestion& question, std::vector<Draft> drafts,
                                  bool learners) {
  Tasks<LoadedPlan> tasks;
  for (const Draft& draft : drafts)
    tasks.emplace_back([&] { return loaded_plan(question, draft.kind); });
  const std::vector<LoadedPlan> plans = in_workers(tasks, usual_workers());
  std::vector<PlanKind> sound;
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    if (!plans[i].refused.empty()) continue;
    PlanKind& kind = sound.emplace_back(std::move(drafts[i].kind));
    kind.fits = plans[i].fits;
    kind.title = grpo_plan_title(drafts[i], plans[i], learners);
  }
  if (sound.empty()) throw UserError(plans.front().refused);
  return sound;
}

}  // namespace

bool is_set(std::span<const Setting> settings, std::string_view key) {
  return holds(settings, key, &Setting::first);
}

std::vector<PlanKind> grpo_kinds(const Scenario& asked, const PlanQuestion& question) {
  const auto open = [&](std::vector<GrpoPart> parts) {
    std::erase_if(parts, [&](const GrpoPart& part) {
      return !part.settings.empty() && is_set(question.settings, part.settings.front().first);
    });
    return parts.empty() ? std::vector<GrpoPart>(1) : parts;
  };
  const std::vector<GrpoPart> learners = open(learner_parts(asked.cluster, *asked.grpo)),
                              engines = open(engine_parts(asked.cluster)),
                              gathering = open(gathering_parts(*asked.grpo)),
                              numbers = open({{{{"job.vllm_num_engines", "auto"}}}});
  const auto all_with = [&](const std::vector<GrpoPart>& savings) {
    std::vector<Draft> drafts;
    for (const GrpoPart& learner : learners)
      for (const GrpoPart& engine : engines)
        for (const GrpoPart& gather : gathering)
          for (const GrpoPart& saving : savings)
            drafts.push_back(
                together(asked, {&learner, &engine, &numbers.front(), &gather, &saving}));
    return sound_kinds(question, std::move(drafts), !learners.front().title.empty());
  };
  std::vector<PlanKind> kinds = all_with({GrpoPart{}});
  if (std::ranges::any_of(kinds, &PlanKind::fits)) return kinds;
  try {
    append(kinds, all_with(open(saving_parts(asked))));
  } catch (const UserError&) {  // this job has none of them
  }
  return kinds;
}

}  // namespace stepsim
