#include "workloads/layers/rank_share.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <stdexcept>

#include "workloads/model/role_facts.hpp"

namespace stepsim {
namespace {

double share(const Strategy& strategy) {
  return static_cast<double>(strategy.tensor_parallel.size);
}

bool divides_tokens(const Strategy& strategy) {
  return strategy.tensor_parallel.size > 1 && strategy.tensor_parallel.sequence;
}

// A unit that is not known here would run whole on every rank, and nobody would see it.
RolePlace place_of(const Unit& unit) {
  const RolePlace place = facts_of(unit.role).place;
  if (place != RolePlace::unknown) return place;
  throw std::logic_error(
      fmt::format("tensor parallelism does not know what \"{}\" is in a layer", unit.name));
}

// Returns whether the unit is the one of those that read the same that keeps it for the backward
// pass.
bool keeps_what_is_read(const Unit& unit) {
  return !unit.adapter && facts_of(unit.role).input == RoleInput::kept;
}

using Roles = std::initializer_list<Role>;

bool is_one_of(const Unit& unit, Roles roles) {
  return std::find(roles.begin(), roles.end(), unit.role) != roles.end();
}

bool has(const std::vector<Unit>& units, Role role) {
  return std::ranges::any_of(units, [&](const Unit& unit) { return unit.role == role; });
}

std::vector<Unit*> matrices(std::vector<Unit>& units, Roles roles) {
  std::vector<Unit*> result;
  for (Unit& unit : units)
    if (!unit.adapter && is_one_of(unit, roles)) result.push_back(&unit);
  return result;
}

Unit* last_of(std::vector<Unit>& units, const auto& wanted) {
  const auto last = std::find_if(units.rbegin(), units.rend(), wanted);
  if (last == units.rend())
    throw std::logic_error("tensor parallelism finds no end of a block in a layer");
  return &*last;
}

void scale(std::vector<KernelRow>& rows, double factor) {
  for (KernelRow& row : rows) {
    row.flops *= factor;
    row.bytes *= factor;
  }
}

// Norms and residuals run on the rank's own tokens.
void shrink(Unit& unit, double ranks) {
  scale(unit.forward, 1 / ranks);
  scale(unit.backward, 1 / ranks);
  unit.memory.saved /= ranks;
}

// Between the first and the last product of a block everything is divided: its input comes in
// whole, its output leaves as a sum of parts. Where each product that reads the input collects it
// for itself, it keeps what it collected and sums its gradient for itself; a compiler sees that
// they collect the same, but not that they could add before they sum. Linear layers that overlap
// keep a piece, collect it again for the weights' gradient behind the product for the input's, and
// sum that one behind the product for the weights'.
struct RoleSharing {
  const Strategy& strategy;
  bool overlaps;
  double bytes;
};
void share_block(Unit& first, Unit& last, const RoleSharing& sharing, std::vector<Unit*> readers) {
  const Strategy& strategy = sharing.strategy;
  const double bytes = sharing.bytes;
  first.hand.overlapped = sharing.overlaps && first.rounds == 1;
  if (divides_tokens(strategy) && strategy.tensor_parallel.gathers_each) {
    for (Unit* reader : readers) {
      reader->hand.leave_back.push_back({Handover::scatter, bytes});
      if (strategy.compiled && reader != readers.front()) continue;
      reader->hand.arrive.push_back({Handover::collect, bytes});
      if (reader->trained) reader->memory.saved += bytes;
    }
    last.hand.leave.push_back({Handover::scatter, bytes});
    last.hand.arrive_back.push_back({Handover::collect, bytes});
  } else if (divides_tokens(strategy)) {
    first.hand.arrive.push_back({Handover::collect, bytes});
    if (sharing.overlaps) first.hand.arrive_back.push_back({Handover::collect, bytes});
    first.hand.leave_back.push_back({Handover::scatter, bytes});
    last.hand.leave.push_back({Handover::scatter, bytes});
    last.hand.arrive_back.push_back({Handover::collect, bytes});
  } else {
    if (!strategy.tensor_parallel.gathers_each) readers = {&first};
    for (Unit* reader : readers) reader->hand.leave_back.push_back({Handover::sum, bytes});
    last.hand.leave.push_back({Handover::sum, bytes});
  }
}

// Pieces of queries, keys and values become all tokens of fewer heads; heads of keys and values
// that are fewer than the ranks go to several.
void swap_for_heads(Unit& attend, const Model& model, const Strategy& strategy, double tokens) {
  const double ranks = static_cast<double>(strategy.sequence_parallel.ulysses);
  const AttentionWidths widths = widths_of(model.attention);
  const double held = static_cast<double>(model.attention.kv_heads);
  const double queries = bytes_16 * tokens * static_cast<double>(widths.queries);
  const double result = bytes_16 * tokens * static_cast<double>(widths.result);
  const double more = bytes_16 * tokens * std::max(ranks, held) / held;
  for (const double bytes : {queries, more * static_cast<double>(widths.keys),
                             more * static_cast<double>(widths.values)}) {
    attend.hand.arrive.push_back({Handover::heads, bytes});
    attend.hand.leave_back.push_back({Handover::heads, bytes});
  }
  attend.hand.leave.push_back({Handover::heads, result});
  attend.hand.arrive_back.push_back({Handover::heads, result});
}

void share_sequence(std::vector<Unit>& units, const Model& model, const Strategy& strategy,
                    const Load& load) {
  for (Unit* attend : matrices(units, {Role::attend})) {
    if (strategy.sequence_parallel.ulysses > 1)
      swap_for_heads(*attend, model, strategy, load.tokens);
    if (strategy.sequence_parallel.ring > 1) {
      const AttentionWidths widths = widths_of(model.attention);
      const double held = load.tokens * static_cast<double>(widths.keys + widths.values);
      attend->hand.rounds = strategy.sequence_parallel.ring;
      attend->hand.passed = bytes_16 * held;
      attend->hand.passed_back = 4 * held;  // summed up in fp32 on the way
    }
  }
}

// Shares attention out, or the mixer in its place. A layer that has neither has no such norm.
void share_mixing(std::vector<Unit>& units, const RoleSharing& sharing) {
  if (!has(units, Role::attention_norm)) return;
  const std::vector<Unit*> readers =
      matrices(units, {Role::query, Role::key, Role::value, Role::query_key_value,
                       Role::narrow_query, Role::latent, Role::mixer_in, Role::mixer_gates,
                       Role::mixer_weigh, Role::mixer_put, Role::mixer_forget});
  if (readers.empty()) throw std::logic_error("what mixes tokens in a layer reads nothing");
  // The part that an adapter adds is one of the sum as well.
  Unit* const last = last_of(units, [](const Unit& unit) {
    return unit.role == Role::attention_output || unit.role == Role::mixer_out;
  });
  share_block(*readers.front(), *last, sharing, readers);
}

// Routed tokens stay with their rank until they are sent to an expert (`sent`); a shared expert
// takes all.
void share_feed_forward(std::vector<Unit>& units, const RoleSharing& sharing, bool sent) {
  if (!has(units, Role::down) && !has(units, Role::router)) return;
  Unit* const last = last_of(units, [](const Unit& unit) {
    return unit.role != Role::feed_forward_residual && unit.role != Role::feed_forward_result_norm;
  });
  // If there are routers, gate and up in one matrix are the shared expert's.
  const std::vector<Unit*> readers =
      sent ? matrices(units, {Role::shared_gate, Role::shared_up, Role::gate_up})
           : matrices(units, {Role::gate, Role::up, Role::gate_up});
  const std::vector<Unit*> routers = matrices(units, {Role::router});
  if (!sent && !routers.empty())
    share_block(*routers.front(), *last, sharing, readers);
  else if (!readers.empty())
    share_block(*readers.front(), *last, sharing, readers);
}

}  // namespace

Model model_of_rank(const Model& model, const Strategy& strategy) {
  const std::int64_t ranks = strategy.tensor_parallel.size;
  if (ranks == 1) return model;
  const auto part = [&](std::int64_t width) { return std::max<std::int64_t>(1, width / ranks); };
  Model mine = model;
  mine.attention.heads = part(model.attention.heads);
  mine.attention.kv_heads = part(model.attention.kv_heads);  // one is held by several ranks
  mine.feed_forward.width = part(model.feed_forward.width);
  if (mine.mixer) {
    mine.mixer->heads = part(model.mixer->heads);
    mine.mixer->groups = part(model.mixer->groups);
  }
  const auto words = [&](std::int64_t sharers) {
    return (model.vocabulary + sharers - 1) / sharers;
  };
  mine.vocabulary = words(ranks_of_head(strategy.tensor_parallel));
  mine.looked_up = words(ranks_of_embedding(strategy.tensor_parallel));
  if (mine.experts) {
    mine.experts->width =
        std::max<std::int64_t>(1, model.experts->width / expert_tensor_of(strategy));
    if (model.experts->shared_width > 0)
      mine.experts->shared_width = part(model.experts->shared_width);
  }
  return mine;
}

// Returns how many times as many keys the queries of a sequence's last slice see as those of all on
// average. A document that is shorter than a slice lies in one or two of them.
double more_in_last_slice(const Load& load, const Strategy& strategy) {
  const SequenceParallel& parallel = strategy.sequence_parallel;
  if (parallel.slices == RingSlices::balanced || parallel.ring <= 1) return 1;
  const double slices = std::clamp(load.attended / std::max(1.0, load.in_rows), 0.0, 1.0) *
                        static_cast<double>(parallel.ring);
  return slices > 1 ? 2 - 1 / slices : 1;
}

Load load_of_rank(const Load& load, const Strategy& strategy) {
  const double ranks = static_cast<double>(strategy.sequence_parallel.ranks());
  Load mine = load;
  mine.attended *= more_in_last_slice(load, strategy);
  mine.in_rows *= more_in_last_slice(load, strategy);
  for (double* part : {&mine.tokens, &mine.attended, &mine.in_rows, &mine.in_squares, &mine.wanted})
    *part /= ranks;
  return mine;
}

Load load_of_router(const Load& load, const Strategy& strategy) {
  if (!sends_tokens(strategy) || !divides_tokens(strategy)) return load;
  Load mine = load;
  mine.tokens /= share(strategy);
  return mine;
}

double slots_between_blocks(const Job& job, const Strategy& strategy) {
  const double slots = job.slots() / static_cast<double>(strategy.sequence_parallel.ranks());
  return divides_tokens(strategy) ? slots / share(strategy) : slots;
}

void share_layer(std::vector<Unit>& units, const Model& model, const Strategy& strategy,
                 const Load& load, bool overlaps) {
  share_sequence(units, model, strategy, load);
  if (strategy.tensor_parallel.size == 1) return;
  const double bytes = bytes_16 * load.tokens * static_cast<double>(model.hidden);
  const RoleSharing sharing{strategy, overlaps, bytes};
  const bool sent =
      (sends_tokens(strategy) || repeats_experts(strategy)) && has(units, Role::router);
  share_mixing(units, sharing);
  share_feed_forward(units, sharing, sent);
  const double ranks = share(strategy);
  const bool divided = divides_tokens(strategy);
  for (Unit& unit : units) {
    const bool between = place_of(unit) == RolePlace::between;
    if (between && divided) shrink(unit, ranks);
    if (!divided || (!overlaps && !strategy.tensor_parallel.gathers_each)) continue;
    if (!keeps_what_is_read(unit) || (sent && unit.role == Role::router)) continue;
    // The input of a block is kept in pieces and collected again for the backward pass.
    unit.memory.saved -= std::min(unit.memory.saved, bytes * (1 - 1 / ranks));
    unit.memory.normed = std::min(unit.memory.normed, unit.memory.saved);
  }
}

void share_embedding(Unit& embedding, const Model& model, const Strategy& strategy,
                     const Load& load) {
  if (strategy.tensor_parallel.size == 1) return;
  const double bytes = bytes_16 * load.tokens * static_cast<double>(model.hidden);
  const bool divided = divides_tokens(strategy);
  // A rank with the whole table looks up what it needs, and wants the gradients of all tokens.
  if (strategy.tensor_parallel.divides_embedding)
    embedding.hand.leave.push_back({divided ? Handover::scatter : Handover::sum, bytes});
  if (divided) embedding.hand.arrive_back.push_back({Handover::collect, bytes});
}

// The loss over a divided vocabulary: the largest logit, the sum of exponentials and the logit of
// the label of each token are agreed on. Or all ranks gather all logits.
void share_head(std::vector<Unit>& head, const Model& model, const Strategy& strategy,
                const Load& load, bool overlaps) {
  if (strategy.tensor_parallel.size == 1) return;
  const double bytes = bytes_16 * load.tokens * static_cast<double>(model.hidden);
  const double vocabulary = static_cast<double>(model.vocabulary) * share(strategy);
  Unit& logits = head.back();
  const bool divided = divides_tokens(strategy);
  if (!strategy.tensor_parallel.divides_head) {
    if (!divided) return;
    logits.hand.arrive.push_back({Handover::collect, bytes});
    shrink(head.front(), share(strategy));
    return;
  }
  if (divided) {
    logits.hand.arrive.push_back({Handover::collect, bytes});
    if (overlaps) logits.hand.arrive_back.push_back({Handover::collect, bytes});
  }
  logits.hand.leave_back.push_back({divided ? Handover::scatter : Handover::sum, bytes});
  logits.hand.overlapped = overlaps;
  if (strategy.tensor_parallel.gathers_logits)
    logits.hand.leave.push_back({Handover::collect, bytes_16 * load.tokens * vocabulary});
  else
    for (int i = 0; i < 3; ++i) logits.hand.leave.push_back({Handover::sum, 4 * load.tokens});
  if (divided) shrink(head.front(), share(strategy));
}

}  // namespace stepsim
