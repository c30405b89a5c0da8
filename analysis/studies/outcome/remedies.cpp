#include "analysis/studies/outcome/remedies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "analysis/studies/grpo/grpo_memory.hpp"
#include "analysis/studies/outcome/file_words.hpp"
#include "analysis/studies/outcome/known_changes.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/program/rank_part.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/strategy/mesh.hpp"

namespace stepsim {
namespace {

constexpr double most_groups = 1000;   // told apart where every tensor is a sub-group
constexpr std::size_t most_pairs = 6;  // that fit are named

// These settings go together, and others stand in their place: the first that fits is enough.
using Alternatives = std::vector<std::vector<Setting>>;

std::optional<Scenario> changed_by(const RemedyQuestion& question,
                                   const std::vector<Setting>& change) {
  std::vector<Setting> settings = question.settings;
  append(settings, change);
  try {
    return load_scenario(question.data, question.source, settings);
  } catch (const UserError&) {  // this job, model or stack does not have it
    return std::nullopt;
  }
}

std::int64_t data_ranks(const Scenario& scenario) {
  return static_cast<std::int64_t>(mesh_of(scenario.strategy, scenario.cluster).data());
}

// Returns the rows of a step.
std::int64_t rows_of_step(const Scenario& scenario) {
  return scenario.job.micro_batch * scenario.job.accumulation * data_ranks(scenario);
}

// The number of micro-batches under which the changed scenario works on as many rows as before.
std::optional<Setting> same_rows(const Scenario& before, const Scenario& changed) {
  const std::int64_t each = changed.job.micro_batch * data_ranks(changed),
                     rows = rows_of_step(before);
  if (changed.job.global_batch > 0 || rows_of_step(changed) == rows || rows % each != 0)
    return std::nullopt;
  return Setting{"job.gradient_accumulation", std::to_string(rows / each)};
}

void measure(Remedy& remedy, const Scenario& changed) {
  if (changed.grpo) {
    const GrpoMemory memory = grpo_memory(changed);
    remedy.fit = memory.failure ? Fit::oom : Fit::fits;
    remedy.needed = memory.learner.most();
    return;
  }
  if (!setup_fits(changed)) return;
  const Footprint needs = footprint(changed);
  remedy.fit = needs.fit();
  remedy.needed = needs.needed();
}

// Judges memory alone: nothing is replayed. What cannot be loaded or carried out does not fit.
Remedy tried_remedy(const RemedyQuestion& question, const std::vector<Setting>& change) {
  const FileWords words(question.data, question.source, question.settings, question.scenario);
  Remedy remedy{.settings = words.of(change)};
  if (remedy.settings.empty()) return remedy;  // the program cannot have it
  std::optional<Scenario> changed = changed_by(question, remedy.settings);
  if (!changed) return remedy;
  if (!changed->grpo)
    if (const auto kept = same_rows(question.scenario, *changed)) {
      std::vector<Setting> both = remedy.settings;
      append(both, words.of({*kept}));
      if (auto even = changed_by(question, both)) {
        changed = std::move(even);
        remedy.settings = std::move(both);
      }
    }
  if (!changed->grpo)
    remedy.rows = static_cast<double>(rows_of_step(*changed)) /
                  static_cast<double>(rows_of_step(question.scenario));
  try {
    measure(remedy, *changed);
  } catch (const UserError&) {
  }
  return remedy;
}

std::vector<Remedy> first_fits(const RemedyQuestion& question,
                               const std::vector<Alternatives>& kinds) {
  const auto first = [&](const Alternatives& kind) {
    Remedy remedy;
    for (const std::vector<Setting>& change : kind)
      if (remedy = tried_remedy(question, change); remedy.fit != Fit::oom) break;
    return remedy;
  };
  Tasks<Remedy> tasks;
  for (const Alternatives& kind : kinds) tasks.emplace_back([&] { return first(kind); });
  return in_workers(tasks, question.workers, question.progress);
}

// Returns smaller micro-batches, the largest first.
Alternatives smaller_micro_batches(const Job& job) {
  Alternatives all;
  const std::int64_t rows = job.micro_batch * job.accumulation;
  for (std::int64_t n = job.micro_batch - 1; n > 0; --n)
    if (rows % n == 0) all.push_back({{"job.micro_batch", std::to_string(n)}});
  return all;
}

Alternatives smaller_evaluations(const Job& job) {
  Alternatives all;
  for (std::int64_t n = job.evaluation.micro_batch / 2; n > 0; n /= 2)
    all.push_back({{"job.evaluation.micro_batch", std::to_string(n)}});
  return all;
}

// Returns numbers of GPUs that share a layer, up to those of a node.
Alternatives tensor_sizes(const Scenario& scenario) {
  const std::int64_t gpus = scenario.cluster.gpus_per_node();
  Alternatives all;
  if (!holds(scenario.stack.choices.splits, Split::tensor)) return all;
  for (std::int64_t n = scenario.strategy.tensor_parallel.size + 1; n <= gpus; ++n)
    if (gpus % n == 0 && scenario.model.attention.heads % n == 0)
      all.push_back({{"strategy.tensor_parallel.size", std::to_string(n)}});
  return all;
}

Alternatives numbers_of_stages(const Scenario& scenario) {
  const std::int64_t ranks = scenario.cluster.ranks(), layers = scenario.model.layers;
  Alternatives all;
  if (!holds(scenario.stack.choices.splits, Split::stages)) return all;
  for (std::int64_t n = scenario.strategy.pipeline_parallel.size + 1; n <= std::min(ranks, layers);
       ++n)
    if (ranks % n == 0 && layers % n == 0)
      all.push_back({{"strategy.pipeline_parallel.size", std::to_string(n)}});
  return all;
}

// Returns numbers of GPUs that share a sequence, up to those of a node.
Alternatives sequence_parts(const Scenario& scenario) {
  const SequenceParallel& parallel = scenario.strategy.sequence_parallel;
  const std::vector<Split>& splits = scenario.stack.choices.splits;
  const std::int64_t gpus = scenario.cluster.gpus_per_node();
  const bool ring = holds(splits, Split::ring) || parallel.ring > 1;
  Alternatives all;
  if (!ring && !holds(splits, Split::ulysses) && parallel.ulysses <= 1) return all;
  for (std::int64_t n = (ring ? parallel.ring : parallel.ulysses) + 1; n <= gpus; ++n)
    if (gpus % n == 0)
      all.push_back(
          {{ring ? "strategy.sequence_parallel.ring" : "strategy.sequence_parallel.ulysses",
            std::to_string(n)}});
  return all;
}

// DeepSpeed keeps whole sub-groups on the device: the fewest that have to leave it.
Alternatives partial_offload(const Scenario& scenario) {
  const Strategy& s = scenario.strategy;
  const SchemeFacts facts = facts_of(s);
  if (s.optimizer_place != Offload::none || s.pipeline_parallel.size > 1 || !facts.has_sub_groups ||
      !facts.offloads_optimizer || !s.optimizer.places.both)
    return {};
  const double shard = rank_part(step_input(scenario)).shares.updated;
  const double groups = s.zero.sub_group > 0 ? std::ceil(shard / s.zero.sub_group) : most_groups;
  Scenario changed = scenario;
  changed.strategy.optimizer_place = Offload::cpu;
  const auto fits = [&](double leave) {
    changed.strategy.offload.ratio = std::floor(1e4 * leave / groups) / 1e4;
    return setup_fits(changed) && footprint(changed).fit() != Fit::oom;
  };
  double bad = 0, good = groups;
  while (good - bad > 1) {
    const double middle = std::floor((good + bad) / 2);
    (fits(middle) ? good : bad) = middle;
  }
  if (good == groups) return {};
  const double ratio = std::floor(1e4 * good / groups) / 1e4;
  return {{{"strategy.offload.optimizer", "cpu"},
           {"strategy.offload.ratio", fmt::format("{:.4g}", ratio)}}};
}

void add_each(std::vector<Alternatives>& kinds, const std::vector<Setting>& settings) {
  for (const Setting& each : settings) kinds.push_back({{each}});
}

// Returns what takes memory off a GPU in a GRPO job, in the order in which people try it.
std::vector<Alternatives> grpo_savers(const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  Alternatives rows, lengths, sharers, engines;
  for (std::int64_t n = grpo.pack_rows / 2; n > 0; n /= 2)
    rows.push_back({{"job.pack_rows", std::to_string(n)}});
  const std::int64_t shortest = grpo.model_length();
  for (std::int64_t length = grpo.pack_length; grpo.pack_rows == 0 && length > shortest;) {
    length = std::max(length / 2, shortest);
    lengths.push_back({{"job.pack_length", std::to_string(length)}});
  }
  for (const std::int64_t gpus : {2, 4, 8}) {
    if (gpus > scenario.strategy.sequence_parallel.ulysses)
      sharers.push_back({{"job.sequence_parallel_size", std::to_string(gpus)}});
    if (gpus > grpo.tensor_parallel)
      engines.push_back({{"job.vllm_tensor_parallel_size", std::to_string(gpus)}});
  }
  Alternatives sleep;
  if (grpo.stays_awake())
    sleep.push_back({{"job.vllm_sleep_level", std::to_string(scenario.engine->sleep.level)}});
  return {rows, lengths, sharers, sleep, {{{"job.gather_whole_model", "false"}}}, engines};
}

// Returns what is usually tried first for a training step.
std::vector<Alternatives> step_savers(const Scenario& scenario) {
  return {smaller_evaluations(scenario.job),
          smaller_micro_batches(scenario.job),
          tensor_sizes(scenario),
          numbers_of_stages(scenario),
          sequence_parts(scenario),
          partial_offload(scenario)};
}

std::vector<Alternatives> shared_savers(const Scenario& scenario) {
  std::vector<Alternatives> kinds{{{{"strategy.checkpointing", "full"}}}};
  add_each(kinds, {{"strategy.cross_entropy", "fused"}, {"strategy.cross_entropy", "chunks"}});
  for (const Sharding stage : further_stages(scenario.strategy))
    if (const std::string name{to_text(stage)};
        scenario.cluster.ranks() > 1 && has_sharding(scenario.stack, name))
      add_each(kinds, {{"strategy.zero", name}});
  const Setting optimizer{"strategy.offload.optimizer", "cpu"},
      parameters{"strategy.offload.parameters", "cpu"};
  add_each(kinds, {optimizer, parameters, {"strategy.offload.activations", "cpu"}});
  kinds.push_back({{optimizer, parameters}});
  if (scenario.smaller_optimizer)
    add_each(kinds, {{"strategy.optimizer", scenario.smaller_optimizer->name}});
  return kinds;
}

// Leaves out what the scenario says already, and what comes twice then.
std::vector<Alternatives> without_said(std::vector<Alternatives> kinds, const Scenario& scenario) {
  const std::vector<ResolvedKey> keys = resolved_keys(scenario);
  std::vector<Alternatives> left;
  for (Alternatives& kind : kinds) {
    for (std::vector<Setting>& change : kind)
      std::erase_if(change, [&](const Setting& each) { return says_so(keys, each); });
    std::erase_if(kind, [](const std::vector<Setting>& change) { return change.empty(); });
    if (!kind.empty() && !holds(left, kind)) left.push_back(std::move(kind));
  }
  return left;
}

std::vector<Alternatives> savers(const Scenario& scenario) {
  std::vector<Alternatives> kinds = scenario.grpo ? grpo_savers(scenario) : step_savers(scenario);
  append(kinds, shared_savers(scenario));
  return without_said(std::move(kinds), scenario);
}

bool share_a_key(const std::vector<Setting>& one, const std::vector<Setting>& other) {
  return std::ranges::any_of(
      one, [&](const Setting& each) { return holds(other, each.first, &Setting::first); });
}

// Some of its settings alone are a remedy, too.
bool is_more_than_needed(const Remedy& remedy, const std::vector<Remedy>& all) {
  return std::ranges::any_of(all, [&](const Remedy& other) {
    return other.settings.size() < remedy.settings.size() &&
           std::ranges::all_of(other.settings,
                               [&](const Setting& each) { return holds(remedy.settings, each); });
  });
}

}  // namespace

std::vector<Remedy> remedies(const RemedyQuestion& question) {
  std::vector<Remedy> found = first_fits(question, savers(question.scenario));
  std::erase_if(found, [](const Remedy& remedy) { return remedy.fit == Fit::oom; });
  return found;
}

std::vector<Remedy> paired_remedies(const RemedyQuestion& question) {
  const std::vector<Alternatives> kinds = savers(question.scenario);
  const std::vector<Remedy> alone = first_fits(question, kinds);
  std::vector<Alternatives> pairs;
  for (std::size_t i = 0; i < kinds.size(); ++i)
    for (std::size_t j = i + 1; j < kinds.size(); ++j) {
      if (alone[i].fit != Fit::oom || alone[j].fit != Fit::oom) continue;
      Alternatives& pair = pairs.emplace_back();
      for (const std::vector<Setting>& one : kinds[i])
        for (const std::vector<Setting>& other : kinds[j])
          if (!share_a_key(one, other)) append(pair.emplace_back(one), other);
    }
  std::vector<Remedy> found = first_fits(question, pairs);
  std::erase_if(found, [](const Remedy& remedy) { return remedy.fit == Fit::oom; });
  std::vector<Remedy> needed;
  for (const Remedy& remedy : found)
    if (!is_more_than_needed(remedy, found) && needed.size() < most_pairs) needed.push_back(remedy);
  return needed;
}

std::vector<Remedy> more_nodes(const RemedyQuestion& question) {
  for (std::uint32_t nodes = 2 * question.scenario.cluster.nodes; nodes <= most_nodes_tried;
       nodes *= 2)
    if (Remedy more = tried_remedy(question, {{"cluster.nodes", std::to_string(nodes)}});
        more.fit != Fit::oom)
      return {more};
  return {};
}

}  // namespace stepsim
