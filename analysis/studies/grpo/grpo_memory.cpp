#include "analysis/studies/grpo/grpo_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "analysis/memory_timeline.hpp"
#include "workloads/grpo/sync.hpp"
#include "workloads/sharding/scheme_facts.hpp"
#include "workloads/sharding/states.hpp"
#include "workloads/step/step.hpp"

namespace stepsim {
namespace {

double parameters_of(const Scenario& scenario) {
  return static_cast<double>(count_parameters(scenario.model).total());
}

double largest_tensor(const Model& model) {
  double largest = 0;
  const auto look = [&](const std::vector<Module>& modules) {
    for (const Module& module : modules)
      for (const Tensor& tensor : module.tensors)
        largest = std::max(largest, bytes_16 * static_cast<double>(tensor.elements));
  };
  look(outer_modules(model));
  for (std::int64_t layer = 0; layer < model.layers; ++layer) look(layer_modules(model, layer));
  return largest;
}

// Other protocols never have more of it in one place than a bucket or a tensor.
bool gathers_whole(const Grpo& grpo) {
  const bool calls = grpo.protocol == SyncProtocol::v1 || grpo.protocol == SyncProtocol::v2 ||
                     grpo.protocol == SyncProtocol::v3;
  return grpo.gather_whole_model && calls;
}

// Returns the bytes of a sync that are whole on every learner at one time.
double gathered_bytes(const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  const double largest = largest_tensor(scenario.model);
  const double bucket = bucket_bytes({.cluster = scenario.cluster,
                                      .model = scenario.model,
                                      .stack = *scenario.engine,
                                      .grpo = grpo,
                                      .placement = placement});
  if (grpo.protocol == SyncProtocol::buckets) return largest + bucket;
  // A learner has its own bucket, and two of which engines load.
  if (grpo.protocol == SyncProtocol::host_buckets) return 3 * bucket;
  if (grpo.protocol == SyncProtocol::files) return largest;
  return gathers_whole(grpo) ? bytes_16 * parameters_of(scenario) : largest;
}

MomentBytes learner_bytes(const Scenario& scenario, const Placement& placement,
                          const LearnerStates& states, const MemoryPeak& peak) {
  const Grpo& grpo = *scenario.grpo;
  const double learners = static_cast<double>(placement.learners.size());
  const bool sharded = facts_of(scenario.strategy).gathers_parameters;
  double gathered = 0;
  if (scenario.engine->own_weights)
    gathered = 0;  // see add_generation
  else if ((sharded && learners > 1) || grpo.protocol == SyncProtocol::host_buckets)
    gathered = gathered_bytes(scenario, placement);
  const double slack = 1 + scenario.stack.allocator_slack.value.value;
  // A parked reference model has come and gone before the step's peak.
  const double own = states.here(grpo), kept = own - states.freed(grpo);
  return {own, (own + peak.bytes) * slack, (kept + gathered) * slack};
}

// Returns the most learners on one node.
double most_learners(const Scenario& scenario) {
  const auto& by_node = scenario.grpo->learners;
  return by_node.empty() ? scenario.cluster.gpus_per_node() : *std::ranges::max_element(by_node);
}

// Optimizer states that were moved to the host, in pinned buffers.
double host_bytes(const Scenario& scenario, const Placement& placement) {
  const Strategy& s = scenario.strategy;
  const double learners = static_cast<double>(placement.learners.size());
  double each = 0;
  if (s.optimizer_place != Offload::none)  // gradient, parameter and moments, all in fp32
    each += 4 * (2 + s.optimizer.moments) * parameters_of(scenario) / learners;
  if (s.parameter_place != Offload::none) each += bytes_16 * parameters_of(scenario) / learners;
  // That are trained; a critic on GPUs of its own has a node of its own, or as much of one.
  const bool both = scenario.grpo->critic && !stands_alone(scenario, GrpoModel::critic);
  const double models = both ? 2 : 1;
  return models * each * most_learners(scenario);
}

// Returns what weights leave in host memory of a node on their way to the engines.
double sent_host_bytes(const Scenario& scenario, const Placement& placement) {
  const Grpo& grpo = *scenario.grpo;
  const double model = bytes_16 * parameters_of(scenario);
  if (grpo.protocol == SyncProtocol::files) return model;
  if (grpo.protocol == SyncProtocol::host_buckets)
    return model * most_learners(scenario) / static_cast<double>(placement.learners.size());
  return grpo.backend == SyncBackend::gloo ? largest_tensor(scenario.model) : 0;
}

std::optional<std::string> failure_of(const Scenario& scenario, const GrpoMemory& m) {
  const Grpo& grpo = *scenario.grpo;
  const auto text = [](double bytes) { return to_text(Bytes{bytes}); };
  if (m.cache_tokens <= 0)
    return fmt::format(
        "an engine cannot start: {} of its {} a GPU are not enough for weights and overhead",
        text(m.engine.start), text(m.engine_capacity));
  if (m.cache_tokens < m.full_sequence)
    return fmt::format(
        "an engine cannot start: its cache holds {:.0f} tokens, a response may need {}{}",
        m.cache_tokens, grpo.model_length(),
        m.full_sequence > static_cast<double>(grpo.model_length())
            ? fmt::format(", which with states take the place of {:.0f}", m.full_sequence)
            : "");
  if (!m.holds_one())
    return "an engine cannot start: it has no memory for the states of a response";
  const auto over = [&](std::string_view what, double bytes, double capacity) {
    return fmt::format("{} needs {} of {} usable", what, text(bytes), text(capacity));
  };
  if (m.learner.start > m.learner_capacity)
    return over("a learner's states alone: it", m.learner.start, m.learner_capacity);
  if (m.learner.training > m.learner_capacity)
    return over("a learner at the peak of training", m.learner.training, m.learner_capacity);
  if (m.learner.sync > m.learner_capacity)
    return over(gathers_whole(grpo) ? "a learner that gathers the whole model for a sync"
                                    : "a learner at the peak of a sync",
                m.learner.sync, m.learner_capacity);
  if (m.host.most() > m.host_capacity)
    return over("host memory of a node with learners", m.host.most(), m.host_capacity);
  return std::nullopt;
}

// Says what fails on one GPU that a learner and an engine have together.
std::optional<std::string> failure_beside_awake(const GrpoMemory& m) {
  const auto over = [&](std::string_view when, double learner, double engine) {
    return fmt::format(
        "engines stay awake while GPUs learn: {} of an engine and {} of a learner {} are more than "
        "{} usable; vllm_sleep_level 1 or 2 lets them sleep",
        to_text(Bytes{engine}), to_text(Bytes{learner}), when, to_text(Bytes{m.learner_capacity}));
  };
  if (m.engine.training + m.learner.training > m.learner_capacity)
    return over("at the peak of training", m.learner.training, m.engine.training);
  if (m.engine.sync + m.learner.sync > m.learner_capacity)
    return over("at the peak of a sync", m.learner.sync, m.engine.sync);
  return std::nullopt;
}

struct LearnerNeeds {
  LearnerStates states;
  MemoryPeak peak;
};
LearnerNeeds needs_of(const Scenario& scenario, GrpoModel model) {
  const Scenario learner = learners_of(scenario, model);
  return learner.data.kept<KeptAnswers<LearnerNeeds>>().of(learner, {}, {}, [&] {
    const StepProgram program =
        build_step(step_input(learner), Folding::automatic, Written::memory);
    return LearnerNeeds{states_between_steps(program.resident),
                        peak_memory_in_order(program.graph, 0)};
  });
}

// Adds what stands on GPUs of its own there: as much as the fullest of these.
void add_alone(const Scenario& scenario, MomentBytes& bytes) {
  const double slack = 1 + scenario.stack.allocator_slack.number();
  const auto at_least = [&](double start, double training) {
    bytes.start = std::max(bytes.start, start);
    bytes.training = std::max(bytes.training, training);
  };
  if (scenario.grpo->critic && stands_alone(scenario, GrpoModel::critic)) {
    const LearnerNeeds critic = needs_of(scenario, GrpoModel::critic);
    at_least(critic.states.all, (critic.states.all + critic.peak.bytes) * slack);
  }
  for (const GrpoModel frozen : {GrpoModel::reference, GrpoModel::reward})
    if (stands_alone(scenario, frozen)) at_least(needs_of(scenario, frozen).states.parameters, 0);
}

// Adds what learners that generate themselves have for that beside their states: weights that are
// gathered first, the cache of all rows, copies of a layer of it, logits. Nothing else is there
// then.
void add_generation(const Scenario& scenario, const DecodeModel& decode,
                    const LearnerStates& states, GrpoMemory& m) {
  const Grpo& grpo = *scenario.grpo;
  const double slack = 1 + scenario.stack.allocator_slack.number(),
               length = static_cast<double>(grpo.model_length()), rows = rows_of_call(scenario),
               gathered = gathers_for_generation(scenario) ? bytes_16 * parameters_of(scenario) : 0;
  const double kept = states.here(grpo) + gathered + scenario.engine->memory.overhead.number();
  m.engine_capacity = m.learner_capacity;
  m.engine = {kept + slack * decode.generating_bytes(rows, length), 0, 0};
  m.cache_tokens = std::max(
      0.0, length * (m.learner_capacity - kept) / slack / decode.generating_bytes(1, length));
  m.full_sequence = length;
  m.cached_sequences = std::floor(m.cache_tokens / length);
  if (m.failure) return;
  if (m.engine.start > m.learner_capacity)
    m.failure = fmt::format(
        "a learner that generates {:.0f} rows of {:.0f} tokens needs {} of {} "
        "usable",
        rows, length, to_text(Bytes{m.engine.start}), to_text(Bytes{m.learner_capacity}));
}

GrpoMemory with_peak(const Scenario& scenario, const Placement& placement,
                     const LearnerStates& states, const MemoryPeak& peak) {
  const Grpo& grpo = *scenario.grpo;
  const DecodeModel decode = decode_of(scenario);
  GrpoMemory m;
  m.learner = learner_bytes(scenario, placement, states, peak);
  add_alone(scenario, m.learner);
  m.learner_capacity = scenario.cluster.gpu.memory.usable.value.value;
  m.engine_capacity = scenario.cluster.gpu.memory.capacity.value.value;
  const double engine = grpo.memory_utilization * m.engine_capacity;
  m.engine = {engine, engine, engine + largest_tensor(scenario.model)};
  const bool awake = grpo.stays_awake();
  if (awake || scenario.engine->own_weights) {
    m.engine = {engine, engine, engine};
  } else if (grpo.layout == GrpoLayout::colocated) {
    // The engine sleeps while its GPU learns, and keeps nothing there.
    m.engine = {engine, 0, decode.weight_bytes()};
    m.learner.sync += decode.weight_bytes();
  }
  const double host = host_bytes(scenario, placement);
  m.host = {0, host, host + sent_host_bytes(scenario, placement)};
  for (double* bytes : {&m.host.start, &m.host.training, &m.host.sync})
    *bytes += states.waiting(grpo) * most_learners(scenario);
  m.host.sync += states.parked(grpo) * most_learners(scenario);
  m.host_capacity = scenario.cluster.node.host.dram_capacity.value.value;
  m.cache_tokens = decode.capacity();
  m.full_sequence = decode.taken_by(static_cast<double>(grpo.model_length()));
  m.cached_sequences =
      std::min(std::floor(m.cache_tokens / m.full_sequence), decode.most_sequences());
  if (std::isnan(m.learner.most() + m.host.most()))
    throw std::logic_error("the memory that is needed is no number");
  const bool own = scenario.engine->own_weights;
  if (own) add_generation(scenario, decode, states, m);
  if (!m.failure) m.failure = failure_of(scenario, m);
  if (own) return m;
  // While a GPU generates, it still holds what its learner has not moved to the host.
  const double kept = grpo.park_learners ? 0 : states.here(grpo);
  if (!m.failure && grpo.layout == GrpoLayout::colocated && engine + kept > m.learner_capacity)
    m.failure = fmt::format(
        "an engine cannot start beside its learner: {} for memory_utilization {} and {} of states "
        "are more than {} usable{}",
        to_text(Bytes{engine}), grpo.memory_utilization, to_text(Bytes{kept}),
        to_text(Bytes{m.learner_capacity}),
        grpo.park_learners ? "" : "; park_learners moves the states to the host");
  if (!m.failure && awake) m.failure = failure_beside_awake(m);
  return m;
}

}  // namespace

bool GrpoMemory::holds_one() const {
  return cached_sequences >= 1;
}

double MomentBytes::most() const {
  return std::max({start, training, sync});
}

GrpoMemory grpo_memory(const Scenario& scenario) {
  LearnerNeeds needs = needs_of(scenario, GrpoModel::policy);
  if (scenario.grpo->critic && !stands_alone(scenario, GrpoModel::critic)) {
    const LearnerNeeds critic = needs_of(scenario, GrpoModel::critic);
    needs.states += critic.states;
    if (critic.peak.bytes > needs.peak.bytes) needs.peak = critic.peak;
  }
  return with_peak(scenario, place(scenario.cluster, *scenario.grpo), needs.states, needs.peak);
}

}  // namespace stepsim
