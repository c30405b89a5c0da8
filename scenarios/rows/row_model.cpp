// This writes which model a row ran: a name of the catalogue, or one made from the widths in the
// row.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "scenarios/rows/row_parts.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

double of(const Cell& cell) {
  return cell.value_or(0);
}

bool is_mpt(const StepRow& row) {
  return in_small_letters(row.model).starts_with("mpt");
}

// The old kind of GPT has an up and a down matrix, four times as wide; newer ones a gate as well. A
// row does not say which: the one that comes nearer to its number of parameters.
bool looks_gated(const StepRow& row) {
  const double h = of(row.hidden), l = of(row.layers), heads = of(row.heads);
  const double kv = row.kv_heads.value_or(heads);
  const double attention = 2 * h * h * (1 + kv / std::max(1.0, heads));
  const double embeddings = h * row.vocabulary.value_or(50257);
  const auto size = [&](double matrices) {
    return l * (attention + matrices * h * of(row.ffn)) + embeddings;
  };
  const double wanted = 1e9 * of(row.parameters);
  if (wanted <= 0) return of(row.ffn) != 4 * h;
  return std::abs(size(3) - wanted) < std::abs(size(2) - wanted);
}

void write_widths(const StepRow& row, RowScenario& made) {
  made.set("model.num_hidden_layers", of(row.layers));
  made.set("model.hidden_size", of(row.hidden));
  made.set("model.num_attention_heads", of(row.heads));
  made.set("model.num_key_value_heads", row.kv_heads.value_or(of(row.heads)));
  made.set("model.max_position_embeddings", std::max(1.0, of(row.sequence)));
}

void write_mpt(const StepRow& row, double vocabulary, RowScenario& made) {
  const double ratio = row.ffn.value_or(4 * of(row.hidden)) / of(row.hidden);
  made.set("model.architectures", "[MPTForCausalLM]");
  made.set("model.n_layers", of(row.layers));
  made.set("model.d_model", of(row.hidden));
  made.set("model.n_heads", of(row.heads));
  made.set("model.expansion_ratio", fmt::format("{:.6g}", ratio));
  made.set("model.vocab_size", vocabulary);
  made.set("model.max_seq_len", of(row.sequence));
}

void write_gpt(const StepRow& row, double vocabulary, RowScenario& made) {
  made.set("model.architectures", "[GPT2LMHeadModel]");
  made.set("model.n_layer", of(row.layers));
  made.set("model.n_embd", of(row.hidden));
  made.set("model.n_head", of(row.heads));
  made.set("model.n_inner", row.ffn.value_or(4 * of(row.hidden)));
  made.set("model.vocab_size", vocabulary);
  made.set("model.n_positions", of(row.sequence));
}

// A stand-in of that many parameters, nearly all of them in one matrix, where only the optimizer
// runs.
void write_flat(double parameters, RowScenario& made) {
  constexpr double width = 1024;
  made.set("model.architectures", "[GPT2LMHeadModel]");
  for (const std::string_view one : {"n_layer", "n_head", "n_positions"})
    made.set(fmt::format("model.{}", one), 1.0);
  for (const std::string_view wide : {"n_embd", "n_inner"})
    made.set(fmt::format("model.{}", wide), width);
  made.set("model.vocab_size", parameters / width);
}

void write_sparse(const StepRow& row, double vocabulary, RowScenario& made) {
  made.set("model.architectures", "[Qwen3MoeForCausalLM]");
  write_widths(row, made);
  made.set("model.head_dim", of(row.hidden) / of(row.heads));
  made.set("model.intermediate_size", of(row.expert_width));
  made.set("model.num_experts", of(row.experts));
  made.set("model.num_experts_per_tok", row.per_token.value_or(1));
  made.set("model.moe_intermediate_size", of(row.expert_width));
  made.set("model.vocab_size", vocabulary);
}

void write_llama(const StepRow& row, double vocabulary, RowScenario& made) {
  made.set("model.architectures", "[LlamaForCausalLM]");
  write_widths(row, made);
  made.set("model.intermediate_size", of(row.ffn));
  made.set("model.vocab_size", vocabulary);
}

bool narrow_attention(const StepRow& row) {
  return contains(in_small_letters(row.model), "deepseek");
}

// Models that were cut down, or another under the same name, have widths of their own in the row.
bool same_size(const StepRow& row, const RowCatalog::ModelSize& known) {
  const auto differs = [](const Cell& cell, double value) {
    return cell && value > 0 && *cell > 0 && *cell != value;
  };
  return !differs(row.layers, known.layers) && !differs(row.hidden, known.hidden) &&
         !differs(row.experts, known.experts);
}

}  // namespace

bool has_experts(const StepRow& row) {
  return of(row.experts) > 0 || contains(in_small_letters(row.model), "moe");
}

void write_model(const StepRow& row, const RowCatalog& catalog, RowScenario& made) {
  const bool widths_known = of(row.layers) > 0 && of(row.hidden) > 0 && of(row.heads) > 0;
  // Benchmarks of MPT ran models of their own under the names of published sizes.
  const bool own = is_mpt(row) && widths_known;
  const std::string known = same_model(catalog, row.model);
  const bool wide = of(row.ffn) > 0 || is_mpt(row) || of(row.expert_width) > 0;
  const bool enough = widths_known && wide && !narrow_attention(row) &&
                      (!has_experts(row) || of(row.expert_width) > 0);
  if (!known.empty() && !own && (same_size(row, known_of(catalog.models, known)) || !enough)) {
    made.set("model", known);
    if (!same_size(row, known_of(catalog.models, known)))
      made.assume(fmt::format("the widths of {} in the catalogue", known));
    return;
  }
  // Widths alone do not make one of these: which layers are dense, and how attention is narrowed.
  if (narrow_attention(row)) {
    made.lack(fmt::format("the dense layers of the model \"{}\"", row.model));
    return;
  }
  if (only_updates(row) && !widths_known && of(row.parameters) > 0) {
    made.set("model.name", quoted_text(row.model));
    write_flat(1e9 * of(row.parameters), made);
    return;
  }
  if (!widths_known || (!wide && !has_experts(row))) {
    made.lack(row.model.empty() ? "the model"
                                : fmt::format("the widths of the model \"{}\"", row.model));
    return;
  }
  if (has_experts(row) && (of(row.experts) < 1 || of(row.expert_width) < 1)) {
    made.lack(fmt::format("the experts of the model \"{}\"", row.model));
    return;
  }
  if (has_experts(row) && !row.per_token) {
    made.lack(fmt::format("through how many experts a token of \"{}\" goes", row.model));
    return;
  }
  double vocabulary = of(row.vocabulary);
  if (vocabulary < 1) {
    vocabulary = is_mpt(row) ? 50368 : 128256;
    made.assume(fmt::format("a vocabulary of {:.0f}", vocabulary));
  }
  made.set("model.name", quoted_text(row.model));
  if (is_mpt(row))
    write_mpt(row, vocabulary, made);
  else if (has_experts(row))
    write_sparse(row, vocabulary, made);
  else if (looks_gated(row))
    write_llama(row, vocabulary, made);
  else
    write_gpt(row, vocabulary, made);
}

}  // namespace stepsim
