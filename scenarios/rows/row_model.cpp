// Which model a row ran: a name of the catalogue, or one made from the widths in the row.
#include <fmt/format.h>

#include <array>
#include <cmath>

#include "scenarios/rows/row_parts.hpp"

namespace stepsim {
namespace {

double of(const Cell& cell) {
  return cell.value_or(0);
}

bool is_mpt(const StepRow& row) {
  return lower_case(row.model).starts_with("mpt");
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

std::string widths(const StepRow& row) {
  return fmt::format(
      "  num_hidden_layers: {:.0f}\n  hidden_size: {:.0f}\n  num_attention_heads: {:.0f}\n"
      "  num_key_value_heads: {:.0f}\n  max_position_embeddings: {:.0f}\n",
      of(row.layers), of(row.hidden), of(row.heads), row.kv_heads.value_or(of(row.heads)),
      std::max(1.0, of(row.sequence)));
}

std::string mpt_text(const StepRow& row, double vocabulary) {
  return fmt::format(
      "  architectures: [MPTForCausalLM]\n  n_layers: {:.0f}\n  d_model: {:.0f}\n  n_heads: "
      "{:.0f}\n  expansion_ratio: {:.6g}\n  vocab_size: {:.0f}\n  max_seq_len: {:.0f}\n",
      of(row.layers), of(row.hidden), of(row.heads),
      row.ffn.value_or(4 * of(row.hidden)) / of(row.hidden), vocabulary, of(row.sequence));
}

std::string gpt_text(const StepRow& row, double vocabulary) {
  return fmt::format(
      "  architectures: [GPT2LMHeadModel]\n  n_layer: {:.0f}\n  n_embd: {:.0f}\n  n_head: {:.0f}\n"
      "  n_inner: {:.0f}\n  vocab_size: {:.0f}\n  n_positions: {:.0f}\n",
      of(row.layers), of(row.hidden), of(row.heads), row.ffn.value_or(4 * of(row.hidden)),
      vocabulary, of(row.sequence));
}

// So many parameters that nobody runs: nearly all of them in one matrix.
std::string flat_text(double parameters) {
  constexpr double width = 1024;
  return fmt::format(
      "  architectures: [GPT2LMHeadModel]\n  n_layer: 1\n  n_embd: {0:.0f}\n  n_head: 1\n"
      "  n_inner: {0:.0f}\n  vocab_size: {1:.0f}\n  n_positions: 1\n",
      width, parameters / width);
}

std::string expert_text(const StepRow& row, double vocabulary) {
  return fmt::format(
      "  architectures: [Qwen3MoeForCausalLM]\n{}  head_dim: {:.0f}\n  intermediate_size: {:.0f}\n"
      "  num_experts: {:.0f}\n  num_experts_per_tok: {:.0f}\n  moe_intermediate_size: {:.0f}\n"
      "  vocab_size: {:.0f}\n",
      widths(row), of(row.hidden) / of(row.heads), of(row.expert_width), of(row.experts),
      row.per_token.value_or(1), of(row.expert_width), vocabulary);
}

std::string llama_text(const StepRow& row, double vocabulary) {
  return fmt::format(
      "  architectures: [LlamaForCausalLM]\n{}  intermediate_size: {:.0f}\n"
      "  vocab_size: {:.0f}\n",
      widths(row), of(row.ffn), vocabulary);
}

bool narrow_attention(const StepRow& row) {
  return contains(lower_case(row.model), "deepseek");
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
  return of(row.experts) > 0 || contains(lower_case(row.model), "moe");
}

void write_model(const StepRow& row, const RowCatalog& catalog, RowText& text) {
  const bool widths_known = of(row.layers) > 0 && of(row.hidden) > 0 && of(row.heads) > 0;
  // The benchmarks of LLM Foundry ran models of their own under the names of published sizes.
  const bool own = is_mpt(row) && widths_known;
  const std::string known = same_model(catalog, row.model);
  const bool wide = of(row.ffn) > 0 || is_mpt(row) || of(row.expert_width) > 0;
  const bool enough = widths_known && wide && !narrow_attention(row) &&
                      (!has_experts(row) || of(row.expert_width) > 0);
  if (!known.empty() && !own && (same_size(row, catalog.size_of(known)) || !enough)) {
    text.model = fmt::format("model: {}\n", known);
    if (!same_size(row, catalog.size_of(known)))
      text.assume(fmt::format("the widths of {} in the catalogue", known));
    return;
  }
  // Widths alone do not make one of these: which layers are dense, and how attention is narrowed.
  if (narrow_attention(row)) {
    text.lack(fmt::format("the dense layers of the model \"{}\"", row.model));
    return;
  }
  if (only_updates(row) && !widths_known && of(row.parameters) > 0) {
    text.model = fmt::format("model:\n  name: {}\n{}", quoted_text(row.model),
                             flat_text(1e9 * of(row.parameters)));
    return;
  }
  if (!widths_known || (!wide && !has_experts(row))) {
    text.lack(row.model.empty() ? "the model"
                                : fmt::format("the widths of the model \"{}\"", row.model));
    return;
  }
  if (has_experts(row) && (of(row.experts) < 1 || of(row.expert_width) < 1)) {
    text.lack(fmt::format("the experts of the model \"{}\"", row.model));
    return;
  }
  if (has_experts(row) && !row.per_token) {
    text.lack(fmt::format("through how many experts a token of \"{}\" goes", row.model));
    return;
  }
  double vocabulary = of(row.vocabulary);
  if (vocabulary < 1) {
    vocabulary = is_mpt(row) ? 50368 : 128256;
    text.assume(fmt::format("a vocabulary of {:.0f}", vocabulary));
  }
  const bool gpt = !has_experts(row) && !is_mpt(row) && !looks_gated(row);
  text.model = fmt::format("model:\n  name: {}\n{}", quoted_text(row.model),
                           is_mpt(row)        ? mpt_text(row, vocabulary)
                           : has_experts(row) ? expert_text(row, vocabulary)
                           : gpt              ? gpt_text(row, vocabulary)
                                              : llama_text(row, vocabulary));
}

}  // namespace stepsim
