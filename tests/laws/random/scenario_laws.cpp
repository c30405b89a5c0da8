#include "tests/laws/random/scenario_laws.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "analysis/studies/predict/prediction.hpp"
#include "analysis/studies/predict/rank_memory.hpp"
#include "cli/grpo.hpp"
#include "cli/run_output.hpp"
#include "scenarios/keys/key.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "scenarios/read/resolved.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "tests/laws/random/drawn_scenario.hpp"
#include "tests/support/temporary_folder.hpp"
#include "workloads/step/least_step.hpp"

namespace stepsim {
namespace {

using Settings = std::vector<Setting>;
using Breach = std::optional<std::string>;  // how a law is broken

constexpr double same = 1e-9;

struct Case {
  const Catalogue& data;
  const Settings& settings;
  const Scenario& scenario;
  const Prediction& found;  // of a step
  const Records& answer;
  Dice& dice;

  std::optional<std::string> said(std::string_view key) const {
    const auto place = std::ranges::find(settings, key, &Setting::first);
    return place == settings.end() ? std::nullopt : std::optional(place->second);
  }
};

Scenario parsed(const Catalogue& data, const Settings& settings) {
  return parse_scenario(data, yaml_of(settings), "drawn.yaml");
}
Prediction predicted(const Scenario& scenario, Folding folding = Folding::automatic) {
  return predict(scenario, Kept::figures, {.folding = folding});
}

// Returns what `run` says of the scenario.
Records answer_of(const Scenario& scenario, const Prediction& found) {
  return scenario.grpo ? grpo_records(scenario, predict_grpo(scenario))
                       : run_records(scenario, found, {});
}
Breach differs(const Case& c, const Scenario& other) {
  const Prediction found = other.grpo ? Prediction{} : predicted(other);
  const std::string one = to_json(c.answer), two = to_json(answer_of(other, found));
  if (one == two) return std::nullopt;
  const auto at = static_cast<std::size_t>(std::ranges::mismatch(one, two).in1 - one.begin());
  const std::size_t from = at < 40 ? 0 : at - 40;
  return fmt::format("{} and {}", one.substr(from, 80), two.substr(from, 80));
}

// Returns the prediction with this key; nothing where it is refused.
std::optional<Prediction> with(const Case& c, const std::string& key, const std::string& value) {
  Settings settings = c.settings;
  const auto place = std::ranges::find(settings, key, &Setting::first);
  if (place == settings.end())
    settings.emplace_back(key, value);
  else
    place->second = value;
  try {
    return predicted(parsed(c.data, settings));
  } catch (const UserError&) {
    return std::nullopt;
  }
}

Breach differ(std::string_view what, double a, double b, double share = same, double least = 0) {
  if (std::abs(a - b) <= share * std::max(std::abs(a), std::abs(b)) + least) return std::nullopt;
  return fmt::format("{}: {} and {}", what, a, b);
}
Breach first_of(std::initializer_list<Breach> breaches) {
  for (const Breach& each : breaches)
    if (each) return each;
  return std::nullopt;
}

// A failure comes before or behind a checkpoint: the last bits of a step can move one.
Breach differ(const Prediction& a, const Prediction& b, double share) {
  constexpr double of_failures = 1e-6;
  const double of_job = a.goodput ? std::max(share, of_failures) : share;
  return first_of({differ("step time", a.step_time.value, b.step_time.value, share),
                   differ("memory", a.memory.needed(), b.memory.needed(), share),
                   differ("host memory", a.memory.host.peak.bytes, b.memory.host.peak.bytes, share),
                   differ("whole job", a.wall.value, b.wall.value, of_job)});
}

// Returns the seconds by which less work may take longer, since what comes at another moment shares
// links and memory with other work: no more than what ran beside other work, and little. If nothing
// did, nothing is granted.
double granted(const Prediction& p) {
  constexpr double little = 0.01;
  double beside = 0;
  for (const BreakdownRow& row : p.breakdown.rows)
    if (row.cause != Cause::launch && row.cause != Cause::module_hooks) beside += row.hidden.value;
  return std::min(beside, little * p.step_time.value);
}

// Returns a breach if `less`, a part of the work of `more`, takes longer.
Breach takes_longer(std::string_view less_is, const Prediction& less, const Prediction& more) {
  if (less.step_time.value <= more.step_time.value * (1 + same) + granted(less) + granted(more))
    return std::nullopt;
  return fmt::format("{}: {} s, else {} s", less_is, less.step_time.value, more.step_time.value);
}

// ---- of the prediction itself

Breach unsound(const Record& record, const std::string& path) {
  const std::string place = fmt::format("{}/{}", path, record.key);
  if (const auto* number = std::get_if<double>(&record.value)) {
    const bool signed_one = place.find("margin") != place.npos;
    if (!std::isfinite(*number) || (*number < 0 && !signed_one))
      return fmt::format("{} is {}", place, *number);
  }
  if (const auto* parts = std::get_if<Records>(&record.value))
    for (const Record& part : *parts)
      if (const Breach breach = unsound(part, place)) return breach;
  return std::nullopt;
}

Breach figures_are_sound(const Case& c) {
  for (const Record& record : c.answer)
    if (const Breach breach = unsound(record, "")) return breach;
  return std::nullopt;
}

Breach parts_add_up(const Case& c) {
  if (c.found.step_time.value <= 0) return "a step takes no time";
  if (c.found.utilisation > 1) return fmt::format("utilisation {}", c.found.utilisation);
  const Footprint& memory = c.found.memory;
  double classes = 0, exposed = c.found.breakdown.idle.value;
  for (const auto& [name, bytes] : memory.device.peak.classes) classes += bytes;
  for (const BreakdownRow& row : c.found.breakdown.rows) exposed += row.exposed.value;
  return first_of({differ("classes of memory and peak", classes, memory.device.peak.bytes, same, 1),
                   differ("causes and step", exposed, c.found.step_time.value)});
}

Breach bounds_lie_below(const Case& c) {
  LeastSteps least(c.scenario.cluster);
  const StepInput input = step_input(c.scenario);
  const LeastStep bound = least.of(input);
  const double time = std::max(bound.time.value, least.in_turns(input).value);
  if (time > c.found.step_time.value * (1 + same))
    return fmt::format("bound {} s, step {} s", time, c.found.step_time.value);
  if (bound.bytes > c.found.memory.needed() * (1 + same))
    return fmt::format("bound {} bytes, needed {}", bound.bytes, c.found.memory.needed());
  return std::nullopt;
}

Breach figures_are_those_of_studies(const Case& c) {
  const StepFigures figures = step_figures(c.scenario, {}, Asked::everything);
  return first_of({differ("step time", figures.step_time.value, c.found.step_time.value, 0),
                   differ("memory", figures.memory, c.found.memory.needed(), 0),
                   differ("whole job", figures.wall.value, c.found.wall.value, 0)});
}

// ---- of predictions in other ways

// Of a step with all its ranks: as many as the budget of a drawn scenario allows, about.
constexpr double most_operations = 1.8e5;

bool is_small(const Case& c) {
  return static_cast<double>(c.found.operations) * c.scenario.cluster.ranks() <= most_operations;
}

Breach folding_changes_nothing(const Case& c) {
  if (c.scenario.cluster.ranks() == 1 || !is_small(c)) return std::nullopt;
  Scenario whole = c.scenario;
  whole.job.budget = 1e8;
  return differ(c.found, predicted(whole, Folding::off), same);
}

// The prediction throws where any time differs.
Breach both_engines_find_the_same(const Case& c) {
  if (static_cast<double>(c.found.operations) > most_operations) return std::nullopt;
  return differ(c.found, predict(c.scenario, Kept::figures, {.player = Player(EngineChoice::both)}),
                same);
}

Breach a_kept_run_is_the_same(const Case& c) {
  if (static_cast<double>(c.found.operations) > most_operations) return std::nullopt;
  Scenario whole = c.scenario;  // which is kept whole, and so costs more than figures do
  whole.job.budget = 1e8;
  return differ(c.found, predict(whole, Kept::run), same);
}

Breach again_is_the_same(const Case& c) {
  return differs(c, parsed(c.data, c.settings));
}

Breach order_of_keys(const Case& c) {
  Settings shuffled = c.settings;
  c.dice.shuffle(shuffled);
  return differs(c, parsed(c.data, shuffled));
}

Breach set_is_said(const Case& c) {
  const TemporaryFolder folder;
  Settings file, set;
  for (const Setting& each : c.settings) (has_to_stand(each.first) ? file : set).push_back(each);
  c.dice.shuffle(set);
  put_bytes(folder.file("drawn.yaml"), yaml_of(file));
  return differs(c, load_scenario(c.data, folder.file("drawn.yaml"), set));
}

Breach resolved_is_the_same(const Case& c) {
  const std::string text = scenario_yaml(c.scenario);
  const Scenario resolved = parse_scenario(c.data, text, "resolved.yaml");
  if (const Breach breach = differs(c, resolved)) return breach;
  if (scenario_yaml(resolved) != text) return "resolved once more it is another one";
  return std::nullopt;
}

// Says numbers that nobody doubts as ranges of one value: the answer stays the same.
Breach range_of_one_is_its_value(const Case& c) {
  Settings settings = c.settings;
  for (auto& [key, value] : settings)
    if ((key.starts_with("job.") || key.starts_with("strategy.")) &&
        value.find_first_not_of("0123456789.e") == value.npos && !key.ends_with("version"))
      value = fmt::format("{{value: {0}, low: {0}, high: {0}, source: drawn}}", value);
  return differs(c, parsed(c.data, settings));
}

Breach draws_are_the_same(const Case& c) {
  const Draw draw{.seed = 1, .sample = c.dice.roll(8), .of = 8};
  const Scenario drawn = parse_scenario(c.data, yaml_of(c.settings), "drawn.yaml", draw);
  Prediction found;
  try {
    if (!drawn.grpo) found = predicted(drawn);
  } catch (const UserError&) {
    return std::nullopt;  // other constants choose other algorithms, which fold less and cost more
  }
  const Records answer = answer_of(drawn, found);
  const Case other{c.data, c.settings, drawn, found, answer, c.dice};
  if (const Breach breach = figures_are_sound(other)) return breach;
  return differs(other, parse_scenario(c.data, yaml_of(c.settings), "drawn.yaml", draw));
}

Breach free_causes_take_no_longer(const Case& c) {
  const auto cause =
      static_cast<Cause>(c.dice.roll(static_cast<std::uint32_t>(cause_names.size())));
  CauseSet free;
  free.add(cause);
  const Prediction ideal = predict(c.scenario, Kept::figures, {.free = free});
  return takes_longer(fmt::format("without {}", to_text(cause)), ideal, c.found);
}

// ---- of scenarios beside it

Breach faster_link_is_no_slower(const Case& c) {
  std::vector<NamedConstant> links;
  for (const NamedConstant& each : c.scenario.constants)
    if (each.dimension == Dimension::bytes_per_second && each.grade != Grade::given &&
        (each.name.starts_with("node.links.") || each.name.starts_with("network.")))
      links.push_back(each);
  if (links.empty()) return std::nullopt;
  const NamedConstant& link = links[c.dice.roll(static_cast<std::uint32_t>(links.size()))];
  const auto faster = with(c, link.name, fmt::format("{} B/s", 2 * link.value));
  return faster ? takes_longer(link.name + " twice as fast", *faster, c.found) : std::nullopt;
}

// Holds the scenario against the one with this key, which is more work.
Breach less_than_with(const Case& c, const std::string& key, const std::string& value) {
  const auto more = with(c, key, value);
  return more ? takes_longer(fmt::format("less than {}: {}", key, value), c.found, *more)
              : std::nullopt;
}

Breach slow_gpu_is_no_faster(const Case& c) {
  if (c.said("cluster.slow_gpus")) return std::nullopt;
  const std::uint32_t rank = c.dice.roll(c.scenario.cluster.ranks());
  return less_than_with(c, "cluster.slow_gpus", fmt::format("[{{rank: {}, speed: 0.5}}]", rank));
}

Breach more_batches_take_no_less(const Case& c) {
  if (c.said("job.global_batch")) return std::nullopt;
  const std::int64_t more =
      c.scenario.job.accumulation + c.scenario.strategy.pipeline_parallel.size;
  return less_than_with(c, "job.gradient_accumulation", std::to_string(more));
}

Breach larger_batches_take_no_less(const Case& c) {
  if (c.said("job.global_batch")) return std::nullopt;
  return less_than_with(c, "job.micro_batch", std::to_string(2 * c.scenario.job.micro_batch));
}

Breach longer_rows_take_no_less(const Case& c) {
  return less_than_with(c, "job.sequence", std::to_string(2 * c.scenario.job.sequence));
}

// ---- of adapters

Breach needs_more(std::string_view less_is, const Prediction& less, const Prediction& more) {
  if (less.memory.needed() <= more.memory.needed() * (1 + same)) return std::nullopt;
  return fmt::format("{}: {} bytes, else {}", less_is, less.memory.needed(), more.memory.needed());
}

// Releases that save inputs need more for many tokens, and one matrix is unpacked at a time.
// Embedding and head are kept in 32 bits beside packed matrices, which is more than few layers
// save.
Breach few_bits_need_no_more(const Case& c) {
  const Lora& lora = c.scenario.strategy.lora;
  const ParameterCount count = count_parameters(c.scenario.model);
  const std::int64_t outer = count.of(TensorClass::embedding);
  if (2 * outer > count.total() - outer) return std::nullopt;
  const bool packed_again = c.scenario.stack.adapters.casts_unpacked;
  if (lora.rank == 0 || lora.quantised.name != "nf4" || lora.saves_inputs || packed_again)
    return std::nullopt;
  const auto wide = with(c, "strategy.lora.quantised", "none");
  return wide ? needs_more("4 bits", c.found, *wide) : std::nullopt;
}

// Matrices that are orthogonalised are dealt among ranks in their order: with the vectors of DoRA
// among them, a rank may get fewer large ones.
Breach dora_takes_no_less(const Case& c) {
  const Strategy& s = c.scenario.strategy;
  if (s.lora.rank == 0 || s.lora.method.name != "lora" || s.optimizer.orthogonal)
    return std::nullopt;
  return less_than_with(c, "strategy.lora.method", "dora");
}

// Under ZeRO-3 sizes and order of modules decide which parameters are gathered ahead together: what
// is less may come at a worse moment.
bool gathers_ahead(const Case& c) {
  return c.scenario.strategy.sharding == Sharding::zero3;
}

// An event comes at its time, whatever a step is at by then. For a few tokens casts and launches
// decide, whose costs are known to a twentieth at best.
Breach fused_adapters_take_no_longer(const Case& c) {
  const Lora& lora = c.scenario.strategy.lora;
  if (lora.rank == 0 || lora.kernels == AdapterKernels::fused || gathers_ahead(c) ||
      !c.scenario.cluster.events.empty())
    return std::nullopt;
  const auto fused = with(c, "strategy.lora.kernels", "fused");
  constexpr double within = 1.05;
  if (!fused || fused->step_time.value <= within * c.found.step_time.value) return std::nullopt;
  return takes_longer("fused adapters", *fused, c.found);
}

Breach higher_rank_needs_no_less(const Case& c) {
  const std::int64_t rank = c.scenario.strategy.lora.rank;
  if (rank == 0 || gathers_ahead(c)) return std::nullopt;
  const auto higher = with(c, "strategy.lora.rank", std::to_string(2 * rank));
  return higher ? needs_more("half the rank", c.found, *higher) : std::nullopt;
}

enum class Of : std::uint8_t { jobs, steps };
struct Law {
  std::string_view name;
  Of of;
  std::uint32_t one_in;  // of so many scenarios it is looked at in one
  Breach (*breach)(const Case& c);
};
constexpr std::array laws{
    Law{"figures are sound", Of::jobs, 1, figures_are_sound},
    Law{"parts add up", Of::steps, 1, parts_add_up},
    Law{"bounds lie below", Of::steps, 1, bounds_lie_below},
    Law{"folding changes nothing", Of::steps, 1, folding_changes_nothing},
    Law{"both engines find the same", Of::steps, 16, both_engines_find_the_same},
    Law{"figures are those of studies", Of::steps, 8, figures_are_those_of_studies},
    Law{"a kept run is the same", Of::steps, 8, a_kept_run_is_the_same},
    Law{"again is the same", Of::jobs, 8, again_is_the_same},
    Law{"order of keys changes nothing", Of::jobs, 8, order_of_keys},
    Law{"what is set is as if said", Of::jobs, 8, set_is_said},
    Law{"resolved it is the same", Of::jobs, 8, resolved_is_the_same},
    Law{"a range of one value is that value", Of::jobs, 8, range_of_one_is_its_value},
    Law{"draws are the same", Of::jobs, 8, draws_are_the_same},
    Law{"free causes take no longer", Of::steps, 8, free_causes_take_no_longer},
    Law{"a faster link is no slower", Of::steps, 4, faster_link_is_no_slower},
    Law{"a slow GPU is no faster", Of::steps, 8, slow_gpu_is_no_faster},
    Law{"more micro-batches take no less", Of::steps, 8, more_batches_take_no_less},
    Law{"larger micro-batches take no less", Of::steps, 8, larger_batches_take_no_less},
    Law{"longer rows take no less", Of::steps, 8, longer_rows_take_no_less},
    Law{"frozen matrices in 4 bits need no more", Of::steps, 2, few_bits_need_no_more},
    Law{"DoRA takes no less than LoRA", Of::steps, 2, dora_takes_no_less},
    Law{"fused adapters take no longer", Of::steps, 2, fused_adapters_take_no_longer},
    Law{"adapters of a higher rank need no less", Of::steps, 2, higher_rank_needs_no_less},
};

// Notes what a run of many scenarios has to have met.
void note(const Case& c, LawVerdict& verdict) {
  const Scenario& s = c.scenario;
  const auto see = [&](std::string_view kind, std::string_view which) {
    verdict.seen.emplace_back(kind, which);
  };
  see("model", s.model.name);
  see("stack", s.stack.title);
  see("node", s.cluster.node.name);
  for (const auto& [key, value] : c.settings) see("key", key);
  if (s.grpo || s.cluster.ranks() == 1 || !is_small(c)) return;
  see("folded stack", s.stack.title);
  see("folded node", s.cluster.node.name);
  see("folded sharding", sharding_names[static_cast<std::size_t>(s.strategy.sharding)]);
}

}  // namespace

LawVerdict examine(const Catalogue& data, std::span<const Setting> said, std::uint64_t seed) {
  LawVerdict verdict;
  const Settings settings(said.begin(), said.end());
  Dice dice(seed);
  try {
    verdict.law = "a scenario is read or refused";
    const Scenario scenario = parsed(data, settings);
    const Prediction found = scenario.grpo ? Prediction{} : predicted(scenario);
    const Records answer = answer_of(scenario, found);
    const Case c{data, settings, scenario, found, answer, dice};
    note(c, verdict);
    for (const Law& law : laws) {
      if (dice.roll(law.one_in) != 0 || (scenario.grpo && law.of == Of::steps)) continue;
      verdict.law = law.name;
      verdict.seen.emplace_back("law", law.name);
      if (const Breach breach = law.breach(c)) {
        verdict.detail = *breach;
        return verdict;
      }
    }
    verdict.law.clear();
  } catch (const UserError& error) {
    if (!verdict.seen.empty()) {
      verdict.detail = fmt::format("is refused: {}", error.what());
      return verdict;
    }
    verdict.law.clear();
    verdict.refused = error.problems();
    if (verdict.refused.empty()) verdict.refused = {{.message = error.what()}};
  } catch (const std::exception& error) {
    verdict.detail = fmt::format("throws {}", error.what());
  }
  return verdict;
}

}  // namespace stepsim
