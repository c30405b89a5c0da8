#include "workloads/layers/rank_share.hpp"

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

constexpr double half = 2;  // bytes of a 16-bit number

double share(const Strategy& strategy) {
  return static_cast<double>(strategy.tensor_parallel.size);
}

bool divides_tokens(const Strategy& strategy) {
  return strategy.tensor_parallel.size > 1 && strategy.tensor_parallel.sequence;
}

Unit* find(std::vector<Unit>& units, std::string_view name) {
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& unit) { return unit.name == name; });
  return found == units.end() ? nullptr : &*found;
}

std::vector<Unit*> found(std::vector<Unit>& units, std::initializer_list<std::string_view> names) {
  std::vector<Unit*> result;
  for (const std::string_view name : names)
    if (Unit* unit = find(units, name); unit != nullptr) result.push_back(unit);
  return result;
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
  unit.saved_bytes /= ranks;
}

// Between the first and the last product of a block everything is divided: its input comes in
// whole, its output leaves as a sum of parts. Where each product that reads the input collects it
// for itself, it keeps what it collected and sums its gradient for itself; a compiler sees that
// they collect the same, but not that they could add before they sum. Linear layers that overlap
// keep a piece, collect it again for the weights' gradient behind the product for the input's, and
// sum that one behind the product for the weights'.
struct Sharing {
  const Strategy& strategy;
  bool overlaps;
  double bytes;
};
void share_block(Unit& first, Unit& last, const Sharing& sharing, std::vector<Unit*> readers) {
  const Strategy& strategy = sharing.strategy;
  const double bytes = sharing.bytes;
  first.hand.overlapped = sharing.overlaps && first.rounds == 1;
  if (divides_tokens(strategy) && strategy.tensor_parallel.gathers_each) {
    for (Unit* reader : readers) {
      reader->hand.leave_back.push_back({Handover::scatter, bytes});
      if (strategy.compiled && reader != readers.front()) continue;
      reader->hand.arrive.push_back({Handover::collect, bytes});
      if (reader->trained) reader->saved_bytes += bytes;
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
  const double queries = half * tokens * static_cast<double>(widths.queries);
  const double result = half * tokens * static_cast<double>(widths.result);
  const double more = half * tokens * std::max(ranks, held) / held;
  for (const double bytes : {queries, more * static_cast<double>(widths.keys),
                             more * static_cast<double>(widths.values)}) {
    attend.hand.arrive.push_back({Handover::heads, bytes});
    attend.hand.leave_back.push_back({Handover::heads, bytes});
  }
  attend.hand.leave.push_back({Handover::heads, result});
  attend.hand.arrive_back.push_back({Handover::heads, result});
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

Load load_of_rank(const Load& load, const Strategy& strategy) {
  const double ranks = static_cast<double>(strategy.sequence_parallel.ranks());
  Load mine = load;
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
  const double bytes = half * load.tokens * static_cast<double>(model.hidden);
  if (Unit* attend = find(units, "self_attn.attend"); attend != nullptr) {
    if (strategy.sequence_parallel.ulysses > 1)
      swap_for_heads(*attend, model, strategy, load.tokens);
    if (strategy.sequence_parallel.ring > 1) {
      const AttentionWidths widths = widths_of(model.attention);
      const double held = load.tokens * static_cast<double>(widths.keys + widths.values);
      attend->hand.rounds = strategy.sequence_parallel.ring;
      attend->hand.passed = half * held;
      attend->hand.passed_back = 4 * held;  // summed up in fp32 on the way
    }
  }
  if (strategy.tensor_parallel.size == 1) return;
  Unit* const norm = find(units, "input_layernorm");
  // What an adapter adds is a part of the sum as well.
  Unit* out = find(units, "self_attn.o_proj.lora");
  if (out == nullptr) out = find(units, "self_attn.o_proj");
  Unit* const second = find(units, "post_attention_layernorm");
  if (norm == nullptr || out == nullptr || second == nullptr) return;
  Unit& last = units.back().name == "ffn_residual" ? units.end()[-2] : units.back();
  const Sharing sharing{strategy, overlaps, bytes};
  share_block(
      norm[1], *out, sharing,
      found(units, {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                    "self_attn.qkv_proj", "self_attn.q_a_proj", "self_attn.kv_a_proj_with_mqa"}));
  // Routed tokens stay with their rank until they are sent to an expert; a shared expert takes all.
  const bool sent = (sends_tokens(strategy) || repeats_experts(strategy)) && second[1].in_moe;
  Unit* const shared = find(units, "mlp.shared_expert.gate_proj");
  if (!sent)
    share_block(second[1], last, sharing,
                found(units, {"mlp.gate_proj", "mlp.up_proj", "mlp.gate_up_proj"}));
  else if (shared != nullptr)
    share_block(*shared, last, sharing,
                found(units, {"mlp.shared_expert.gate_proj", "mlp.shared_expert.up_proj"}));
  if (!divides_tokens(strategy)) return;
  const double ranks = share(strategy);
  for (const std::string_view name :
       {"input_layernorm", "post_attention_layernorm", "attention_residual", "ffn_residual"})
    if (Unit* unit = find(units, name); unit != nullptr) shrink(*unit, ranks);
  if (!overlaps && !strategy.tensor_parallel.gathers_each) return;
  // The input of a block is kept in pieces and collected again for the backward pass.
  for (const std::string_view name :
       {"self_attn.v_proj", "self_attn.qkv_proj", "self_attn.kv_a_proj_with_mqa", "mlp.up_proj",
        "mlp.gate_up_proj", "mlp.gate", "mlp.shared_expert.up_proj"})
    if (Unit* unit = find(units, name); unit != nullptr && !(sent && name == "mlp.gate")) {
      unit->saved_bytes -= std::min(unit->saved_bytes, bytes * (1 - 1 / ranks));
      unit->normed_bytes = std::min(unit->normed_bytes, unit->saved_bytes);
    }
}

void share_embedding(Unit& embedding, const Model& model, const Strategy& strategy,
                     const Load& load) {
  if (strategy.tensor_parallel.size == 1) return;
  const double bytes = half * load.tokens * static_cast<double>(model.hidden);
  const bool divided = divides_tokens(strategy);
  // With the whole table a rank looks up what it needs, and wants the gradients of all tokens.
  if (strategy.tensor_parallel.divides_embedding)
    embedding.hand.leave.push_back({divided ? Handover::scatter : Handover::sum, bytes});
  if (divided) embedding.hand.arrive_back.push_back({Handover::collect, bytes});
}

// The loss over a divided vocabulary: the largest logit, the sum of exponentials and the logit of
// the label of each token are agreed on. Or all ranks gather all logits.
void share_head(std::vector<Unit>& head, const Model& model, const Strategy& strategy,
                const Load& load, bool overlaps) {
  if (strategy.tensor_parallel.size == 1) return;
  const double bytes = half * load.tokens * static_cast<double>(model.hidden);
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
    logits.hand.leave.push_back({Handover::collect, half * load.tokens * vocabulary});
  else
    for (int i = 0; i < 3; ++i) logits.hand.leave.push_back({Handover::sum, 4 * load.tokens});
  if (divided) shrink(head.front(), share(strategy));
}

}  // namespace stepsim
