#include "scenarios/read/grpo.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "scenarios/keys/key_tables.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/whole_file.hpp"
#include "workloads/grpo/decode.hpp"
#include "workloads/grpo/lengths.hpp"
#include "workloads/grpo/packing.hpp"

namespace stepsim {
namespace {

// The shorter name goes before the longer one, so that a setting can replace what the file says.
std::string_view learner_key(const Table& job) {
  const bool renamed = job.has("learners_per_node");
  if (renamed) job.texts_or("num_learners_per_node");
  return renamed ? "learners_per_node" : "num_learners_per_node";
}

void check_learners(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  const std::string_view key = learner_key(job);
  const std::uint32_t gpus = scenario.cluster.gpus_per_node();
  std::uint32_t most = 0;
  for (const std::uint32_t here : grpo.learners) most = std::max(most, here);
  if (most == 0) return job.problem(key, "needs at least one learner");
  if (most > gpus)
    return job.problem(key, fmt::format("{} learners on a node of {} GPUs", most, gpus));
}

// Learners that share a sequence work on one pack together.
void check_sharing(const Table& job, const Scenario& scenario, std::int64_t learners) {
  const Grpo& grpo = *scenario.grpo;
  const std::int64_t shared = scenario.strategy.sequence_parallel.ranks();
  constexpr std::string_view key = "sequence_parallel_size";
  if (job.integer_or(key, 1, 1, 1 << 16) > 1) {
    if (const auto why = why_undivided(scenario.model)) job.problem(key, *why);
    if (scenario.strategy.sharding != Sharding::zero3) job.problem(key, "needs deepspeed_stage: 3");
    if (learners % shared != 0)
      job.problem(key, fmt::format("{} does not divide {} learners", shared, learners));
    if (scenario.model.attention.heads % shared != 0)
      job.problem(key, fmt::format("{} does not divide the {} heads of {}", shared,
                                   scenario.model.attention.heads, scenario.model.name));
  }
  const std::int64_t parts =
      shared * scenario.strategy.tensor_parallel.size * scenario.strategy.pipeline_parallel.size;
  if (grpo.prompts * grpo.samples < learners / std::max<std::int64_t>(1, parts))
    job.problem("num_unique_prompts_rollout",
                fmt::format("{} x {} responses are fewer than {} learners: some would have none",
                            grpo.prompts, grpo.samples, learners / parts));
}

void check_engines(const Table& job, const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  const std::uint32_t tp = grpo.tensor_parallel, gpus = scenario.cluster.gpus_per_node();
  constexpr std::string_view parallel = "vllm_tensor_parallel_size";
  if (tp > gpus && tp % gpus != 0)
    return job.problem(parallel, fmt::format("{} GPUs of nodes that have {}: an engine of several "
                                             "nodes has whole ones",
                                             tp, gpus));
  for (const std::string& problem : unshared(scenario.model, tp)) job.problem(parallel, problem);
  if (scenario.model.mixer && attention_layers(scenario.model) == 0)
    job.problem("method", fmt::format("an engine of {}, none of whose layers attend, is not "
                                      "modelled",
                                      scenario.model.name));
  if (scenario.model.attention.indexer)
    job.problem("method", fmt::format("an engine of {}, whose queries choose tokens, is not "
                                      "modelled",
                                      scenario.model.name));
  if (placement.most_engines == 0)
    return job.problem(
        parallel, tp > gpus ? fmt::format("no {} nodes are left beside the learners", tp / gpus)
                            : fmt::format("no node has {} GPU{} left beside its learners", tp,
                                          tp == 1 ? "" : "s"));
  if (grpo.engines && *grpo.engines > placement.most_engines)
    job.problem("vllm_num_engines",
                fmt::format("{} engines of {} GPU{}: {} find room", *grpo.engines, tp,
                            tp == 1 ? "" : "s", placement.most_engines));
}

// An engine that is the learner itself.
void check_own_weights(const Table& job, const Scenario& scenario) {
  if (!scenario.engine || !scenario.engine->own_weights) return;
  const Grpo& grpo = *scenario.grpo;
  const std::string& title = scenario.engine->title;
  if (grpo.layout != GrpoLayout::colocated)
    job.problem("layout", fmt::format("{} generates with the learners' weights: colocated", title));
  if (grpo.tensor_parallel > 1)
    job.problem("vllm_tensor_parallel_size", fmt::format("{} has one GPU", title));
  const Strategy& strategy = scenario.strategy;
  if (strategy.tensor_parallel.size * strategy.pipeline_parallel.size *
          strategy.sequence_parallel.ranks() >
      1)
    job.problem("layout", fmt::format("{} has learners that divide no layer and no row", title));
  if (grpo.oversampling > 1 || grpo.round_prompts > 0)
    job.problem(grpo.round_prompts > 0 ? "prompts_per_round" : "oversampling",
                fmt::format("{} goes on until all rows of a call are done", title));
}

void check_calls(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  if (grpo.generate_calls == 1) return;
  const bool calls = scenario.engine && scenario.engine->own_weights && grpo.rollout_at_once == 0 &&
                     scenario.engine->scheduler.order == StepOrder::whole_batches;
  if (!calls || grpo.prompts % grpo.generate_calls != 0)
    job.problem(
        "generate_calls",
        calls ? fmt::format("{} does not divide {} prompts", grpo.generate_calls, grpo.prompts)
              : "is of learners that generate themselves, all rows of a call at a time: "
                "engine: transformers");
}

void check_lengths(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  if (grpo.pack_length < grpo.model_length())
    job.problem("pack_length",
                fmt::format("{} is shorter than a prompt and its response ({} + {})",
                            grpo.pack_length, grpo.prompt_limit, grpo.response_limit));
  const std::int64_t longest = scenario.model.longest_sequence;
  if (longest > 0 && grpo.model_length() > longest)
    job.problem("response_length",
                fmt::format("prompt and response of {} are longer than {} allows ({})",
                            grpo.model_length(), scenario.model.name, longest));
}

// Below 1 it is a share of all GPUs.
std::uint32_t gpus_said(const Table& job, std::string_view key, const Cluster& cluster) {
  const double all = cluster.ranks(), said = job.number_or(key, 0, 0, 1 << 20);
  const double count = said < 1 ? said * all : said;
  if (count != std::floor(count) || count > all) {
    job.problem(key, fmt::format("{:g} of {:.0f} GPUs: expected whole ones, or a share that makes "
                                 "whole ones",
                                 count, all));
    return 0;
  }
  return static_cast<std::uint32_t>(count);
}

}  // namespace

void take_length_file(Document& document) {
  constexpr std::string_view key = "job.response_lengths.list";
  const std::string name = document.peek(key).value_or("");
  if (name.empty()) return;  // a list, or nothing
  const std::string path = beside(document.file(), name);
  std::string numbers = read_text(path);
  const auto separates = [](unsigned char c) { return std::isspace(c) != 0 || c == ','; };
  std::ranges::replace_if(numbers, separates, ' ');
  std::string list;
  for (const std::string_view number : split(numbers, ' ')) {
    if (number.empty()) continue;
    if (number.find_first_not_of("0123456789") != std::string_view::npos)
      throw UserError({{path, 0, "",
                        fmt::format("expected lengths in tokens, one on each line, "
                                    "found \"{}\"",
                                    number.substr(0, 40))}});
    list += fmt::format("{}{}", list.empty() ? "" : ", ", number);
  }
  if (list.empty()) throw UserError({{path, 0, "", "has no lengths"}});
  document.set(key, fmt::format("[{}]", list));
}

Grpo read_grpo(const Table& job) {
  Grpo grpo;
  read_blocks(job, grpo_blocks(), grpo);
  ResponseLengths& lengths = grpo.lengths;
  if (lengths.behind_limit && lengths.kind == LengthKind::lognormal) {
    if (lengths.mean >= static_cast<double>(grpo.response_limit))
      job.table("response_lengths")
          .problem("mean", fmt::format("behind the limit it is less than response_length ({})",
                                       grpo.response_limit));
    else {
      const double said = lengths.mean;
      lengths = lengths_with_mean(said, lengths.sigma, grpo.response_limit, lengths.seed);
      lengths.behind_limit = true;
      lengths.mean_behind = said;
    }
  }
  if (grpo.pack_rows > 0 && !job.has("pack_length"))
    grpo.pack_length = std::max(grpo.model_length(), longest_rows(grpo));
  return grpo;
}

void lay_switches(Document& scenario) {
  if (!scenario.root().table_if("strategy")) return;
  Document own = parse_document(scenario.canonical(), scenario.file());
  own.settle_unknown("job");
  const Table job = own.root().table("job");
  Strategy switched;
  read_block(std::optional(job), grpo_switches(), switched);
  for (const Key<Strategy>& each : grpo_switches().keys) {
    if (!job.has(each.facts.name)) continue;
    constexpr std::string_view front = "strategy.";
    const std::string path(each.facts.decides);
    const Key<Strategy>& key = *find_key(strategy_blocks(), path.substr(front.size()));
    const std::string value = key.text(key.facts, switched);
    if (const auto other = scenario.peek(path); other && *other != value)
      scenario.root().table("job").problem(
          each.facts.name,
          fmt::format("makes {} {}, which says {}: say one of them", path, value, *other));
    Document laid = parse_document("{}", "");
    laid.set(path, value);
    scenario.underlay(laid, fmt::format("job.{}", each.facts.name));
  }
}

void place_learners(const Table& job, const Cluster& cluster, Grpo& grpo) {
  const std::uint32_t nodes = cluster.nodes;
  grpo.own = {.critic = gpus_said(job, "critic_gpus", cluster),
              .reference = gpus_said(job, "reference_gpus", cluster),
              .reward = gpus_said(job, "reward_gpus", cluster)};
  const std::uint32_t first = gpus_said(job, "learner_gpus", cluster);
  if (!grpo.critic) grpo.own.critic = 0;
  if (!grpo.reference_model) grpo.own.reference = 0;
  if (!grpo.reward_model) grpo.own.reward = 0;
  if (grpo.own.all() + std::max(1U, first) > cluster.ranks())
    return job.problem("critic_gpus",
                       fmt::format("{} GPUs for models of their own leave too few of {} to learn",
                                   grpo.own.all(), cluster.ranks()));
  const std::string_view key = learner_key(job);
  const bool colocated = grpo.layout == GrpoLayout::colocated;
  if (colocated && job.has(key))
    return job.problem(key, "layout: colocated has learners everywhere");
  if (colocated) return;
  if (first > 0 && !job.has(key)) {
    grpo.learners = first_gpus(cluster, first);
    return;
  }
  std::vector<std::int64_t> list = whole_numbers(job, key, 0);
  if (list.empty()) list = {1};
  if (list.size() > nodes)
    job.problem(key, fmt::format("{} entries for {} nodes", list.size(), nodes));
  grpo.learners = learners_by_node(list, nodes);
}

// open-instruct's default is a node of eight; with other numbers it would not start.
void fit_default_partition(const Table& job, Scenario& scenario) {
  Grpo& grpo = *scenario.grpo;
  if (job.has("deepspeed_zpg") || !job.sound()) return;
  const auto learners = static_cast<std::int64_t>(place(scenario.cluster, grpo).learners.size());
  const std::int64_t usual = grpo.hpz, sharing = sharing_states(scenario.strategy, learners);
  grpo.hpz = secondary_partition(usual, sharing);
  if (grpo.hpz != usual)
    scenario.notes.push_back(fmt::format(
        "job.deepspeed_zpg is not set: {}, as its default of {} does not divide {} learners{}",
        grpo.hpz, usual, sharing, sharing < learners ? " that share states" : ""));
}

void check_rounds(const Table& job, const Grpo& grpo) {
  if (grpo.round_prompts == 0) return;
  if (grpo.async_steps > 0)
    job.problem("prompts_per_round", "needs async_steps: 0, as rounds are waited for");
  else if (grpo.oversampling > 1 || grpo.rollout_at_once > 0)
    job.problem("prompts_per_round",
                "needs oversampling: 1 and micro_rollout_batch_size: 0, as all of a round is asked "
                "for at once and waited for");
  else if (!grpo.filter_zero_std)
    job.problem("prompts_per_round",
                "needs filter_zero_std_samples: true, as rounds go on until groups have a signal");
}

void check_grpo(const Table& job, const Scenario& scenario) {
  const Grpo& grpo = *scenario.grpo;
  if (grpo.layout == GrpoLayout::separate) check_learners(job, scenario);
  if (attention_layers(scenario.model) + mixer_layers(scenario.model) == 0)
    job.problem("method", fmt::format("grpo: no layer of {} looks at the tokens before: no engine "
                                      "has it",
                                      scenario.model.name));
  if (!job.sound()) return;
  const Placement placement = place(scenario.cluster, grpo);
  check_engines(job, scenario, placement);
  check_lengths(job, scenario);
  const auto learners = static_cast<std::int64_t>(placement.learners.size());
  check_sharing(job, scenario, learners);
  const std::int64_t sharing = sharing_states(scenario.strategy, learners);
  if (grpo.hpz > 1 && sharing % grpo.hpz != 0)
    job.problem("deepspeed_zpg",
                fmt::format("{} does not divide {} learners{} (the default is 8)", grpo.hpz,
                            sharing, sharing < learners ? " that share states" : ""));
  if (grpo.active_sampling && grpo.async_steps < 2)
    job.problem("active_sampling", "needs async_steps of 2 or more");
  if (grpo.layout == GrpoLayout::separate && grpo.park_learners)
    job.problem("park_learners", "layout: separate keeps learners at work: false");
  if (grpo.send_adapters && scenario.strategy.lora.rank == 0)
    job.problem("sync_adapters", "strategy.lora says that there are adapters");
  if (grpo.oversampling > 1 && grpo.async_steps > 0)
    job.problem("oversampling", "needs async_steps: 0, as it stops engines in turn");
  check_rounds(job, grpo);
  if (grpo.partial_rollouts && grpo.oversampling <= 1)
    job.problem("partial_rollouts", "needs oversampling above 1");
  if (grpo.own.all() > 0 && grpo.rollout_at_once == 0)
    job.problem(grpo.own.critic > 0      ? "critic_gpus"
                : grpo.own.reference > 0 ? "reference_gpus"
                                         : "reward_gpus",
                "is modelled where rows are scored as they come: micro_rollout_batch_size above 0");
  if (grpo.rollout_at_once > 0 && (grpo.async_steps > 0 || grpo.oversampling > 1))
    job.problem("micro_rollout_batch_size",
                "needs async_steps: 0 and oversampling: 1, as engines are called in turn");
  if (grpo.rollout_at_once > 0 && grpo.rollout_at_once < grpo.samples)
    job.problem("micro_rollout_batch_size",
                fmt::format("{} are fewer than the {} responses of a group", grpo.rollout_at_once,
                            grpo.samples));
  check_own_weights(job, scenario);
  check_calls(job, scenario);
  if (grpo.reward_model && !grpo.critic)
    job.problem("reward_model", "is modelled beside a critic: true");
  if (grpo.park_reference && !grpo.reference_model)
    job.problem("park_reference", "load_ref_policy: false has no reference model");
  if (grpo.park_reference && scenario.strategy.parameter_place != Offload::none)
    job.problem("park_reference", "offload: {params: ...} has the reference model there already");
  if (grpo.layout == GrpoLayout::colocated && grpo.async_steps > 0)
    job.problem("async_steps", "layout: colocated generates and learns in turn: 0");
}

std::vector<std::string> grpo_notes(const Table& job) {
  std::vector<std::string> notes;
  for (const std::string_view key : grpo_keys_without_effect()) {
    if (!job.has(key)) continue;
    job.text_or(key, "");
    notes.push_back(fmt::format("job.{} makes no difference here", key));
  }
  return notes;
}

std::vector<std::string> grpo_warnings(const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  std::vector<std::string> list;
  const auto engines = static_cast<std::int64_t>(placement.engines.size());
  const std::int64_t flying = std::max<std::int64_t>(1, grpo.async_steps) * grpo.prompts;
  if (engines > flying)
    list.push_back(fmt::format("{} engines for at most {} prompts in flight: {} have nothing to do",
                               engines, flying, engines - flying));
  else if (engines > grpo.prompts)
    list.push_back(
        fmt::format("{} engines for {} prompts of a step: only async_steps keeps them all "
                    "busy",
                    engines, grpo.prompts));
  if (placement.stranded > 0)
    list.push_back(fmt::format("{} GPU{} neither learn nor generate", placement.stranded,
                               placement.stranded == 1 ? "" : "s"));
  const bool spread = grpo.layout == GrpoLayout::separate && scenario.cluster.nodes > 1 &&
                      *std::ranges::max_element(grpo.learners) == 1;
  if (grpo.hpz > 1 && spread)
    list.push_back(
        fmt::format("deepspeed_zpg: {} with one learner a node costs memory and saves no "
                    "traffic between nodes",
                    grpo.hpz));
  return list;
}

}  // namespace stepsim
