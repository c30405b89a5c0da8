#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>

#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/table/trainer_adapters.hpp"
#include "scenarios/foreign/table/trainer_words.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Describes an own MPT by its widths; what it has by itself
// llmfoundry/models/mpt/configuration_mpt.py says.
std::string described_mpt(MappedSource& source) {
  std::vector<std::string> entries{"architectures: [MPTForCausalLM]"};
  struct Width {
    std::string_view key, ours;
    std::int64_t usual, most;
  };
  for (const auto& [key, ours, usual, most] :
       {Width{"model.d_model", "d_model", 2048, 1'000'000},
        Width{"model.n_heads", "n_heads", 16, 10'000},
        Width{"model.n_layers", "n_layers", 24, 1000},
        Width{"model.max_seq_len", "max_seq_len", 2048, most_tokens},
        Width{"model.vocab_size", "vocab_size", 50368, 100'000'000}})
    entries.push_back(fmt::format("{}: {}", ours, source.whole(key, usual, 1, most)));
  entries.push_back(fmt::format("name: {} layers of {}",
                                source.whole("model.n_layers", 24, 1, 1000),
                                source.whole("model.d_model", 2048, 1, 1'000'000)));
  entries.push_back(
      fmt::format("expansion_ratio: {}", source.number("model.expansion_ratio", 4, 0.01, 100)));
  struct Flag {
    std::string_view key;
    bool usual;
  };
  for (const auto& [key, usual] :
       {Flag{"no_bias", false}, Flag{"learned_pos_emb", true}, Flag{"tie_word_embeddings", true}})
    entries.push_back(fmt::format("{}: {}", key, source.on(fmt::format("model.{}", key), usual)));
  std::vector<std::string> attention;
  for (const std::string_view key : {"alibi", "rope", "qk_ln"})
    attention.push_back(
        fmt::format("{}: {}", key, source.on(fmt::format("model.attn_config.{}", key))));
  for (const std::string_view key : {"attn_type", "kv_n_heads"})
    if (const std::string path = fmt::format("model.attn_config.{}", key); source.says(path))
      attention.push_back(fmt::format("{}: {}", key, source.text(path)));
  entries.push_back(fmt::format("attn_config: {{{}}}", fmt::join(attention, ", ")));
  constexpr std::string_view kind = "model.ffn_config.ffn_type",
                             window = "model.attn_config.sliding_window_size";
  if (const std::string said = source.text(kind, "mptmlp"); said != "mptmlp")
    source.problem(kind, fmt::format("expected mptmlp, found \"{}\": other feed-forward parts are "
                                     "not modelled",
                                     said));
  if (source.whole(window, -1, -1, most_tokens) > 0)
    source.without(window, "every token sees all before it");
  return fmt::format("{{{}}}", fmt::join(entries, ", "));
}

void put_foundry_model(MappedSource& source) {
  constexpr std::string_view key = "model.name", path = "model.pretrained_model_name_or_path";
  const std::string name = source.text(key, "mpt_causal_lm");
  if (source.question().decides("model")) return;
  if (name == "mpt_causal_lm") return source.put("model", described_mpt(source), key);
  if (name == "hf_causal_lm") return source.put_model(path);
  source.problem(key, fmt::format("expected mpt_causal_lm or hf_causal_lm, found \"{}\"", name));
}

// Reads "63900ba", "2ep", "1000000tok".
void put_duration(MappedSource& source, DataOfSource& data) {
  constexpr std::string_view key = "max_duration";
  const std::string said = source.text(key);
  double number = 0;
  const auto read = std::from_chars(said.data(), said.data() + said.size(), number);
  const std::string unit(read.ptr, said.data() + said.size());
  if (said.empty()) return;
  const bool counts = read.ec == std::errc{} && number > 0;
  if (counts && unit == "ba") {
    data.steps_said = true;
    source.put("job.optimizer_steps", fmt::format("{:.0f}", number), key, said);
  } else if (counts && unit == "ep") {
    data.epochs = number;
    source.put("job.epochs", fmt::format("{}", number), key, said);
  } else if (counts && holds(std::array<std::string, 4>{"tok", "sp", "sec", "iter"}, unit)) {
    source.without(
        key, fmt::format("{}: the time of the whole job is not known; --tokens says it", said));
  } else {
    source.problem(key, fmt::format("expected a number and ba, ep or tok, found \"{}\"", said));
  }
}

void put_foundry_batch(MappedSource& source) {
  constexpr std::string_view micro = "device_train_microbatch_size",
                             whole = "global_train_batch_size";
  const std::string said = source.text(micro, "auto");
  const std::int64_t batch = source.whole(whole, 0, 1, 1'000'000'000);
  if (said != "auto") {
    // Composer takes no more than a rank has of the whole batch.
    const std::int64_t rows = source.whole(micro, 1, 1, most_rows);
    const std::int64_t ranks = source.around().cluster ? source.around().cluster->ranks() : 1;
    const bool less = batch > 0 && batch % ranks == 0 && batch / ranks < rows;
    source.put("job.micro_batch", less ? batch / ranks : rows, micro,
               less ? fmt::format("{} rows on {} ranks are no more", batch, ranks) : "");
  } else if (!source.question().decides("job.micro_batch")) {
    source.put("job.micro_batch", "1", micro, "auto: found by trying");
    source.result().assumptions.push_back({"micro-batch", "1 row",
                                           "device_train_microbatch_size is auto: Composer tries "
                                           "which fits",
                                           "--set device_train_microbatch_size=N"});
  }
  if (batch == 0) return source.problem(whole, "is missing");
  source.put("job.global_batch", batch, whole);
}

void put_foundry_rows(MappedSource& source) {
  constexpr std::string_view key = "max_seq_len", ratio = "train_loader.dataset.packing_ratio";
  const std::int64_t sequence = source.whole(key, 0, 1, most_tokens);
  if (sequence == 0) return source.problem(key, "is missing");
  source.put("job.method", "sft", "");
  source.put("job.sequence", sequence, key);
  const bool stream = source.text("train_loader.name", "text") == "text";
  const bool packed = stream || source.says(ratio);
  source.put("job.packing", packed, stream ? "train_loader.name" : ratio);
  if (stream) source.put("job.fill", "1", "", "rows are cut out of a stream of documents");
  DataOfSource data{.packed = packed, .fill_said = stream};
  put_duration(source, data);
  assume_data(source.question(), data, source.result());
}

void put_foundry_sharding(MappedSource& source) {
  constexpr std::string_view key = "fsdp_config.sharding_strategy";
  const std::string said = source.text(key, "FULL_SHARD");
  const std::int64_t copies =
      source.whole("fsdp_config.data_parallel_replicate_degree", 1, 1, most_ranks);
  source.whole("fsdp_config.data_parallel_shard_degree", -1, -1, most_ranks);
  if (source.keys_below("fsdp_config").empty() || said == "NO_SHARD") {
    put_replicas(source, key);
    // Composer casts for products, unless all of it has one type.
    if (source.text("precision", "amp_bf16").starts_with("amp"))
      put_loaded(source, Loaded::in_32_bits, "precision");
  } else
    put_fsdp(source, {.key = key,
                      .strategy = said,
                      .version = "1",
                      .replicas = copies,
                      .replicas_key = "fsdp_config.data_parallel_replicate_degree"});
}

// Models of Hugging Face attend as transformers does, but for MPT, which says it itself.
void put_foundry_attention(MappedSource& source) {
  constexpr std::string_view flag = "model.use_flash_attention_2",
                             way = "model.attn_implementation",
                             own = "model.config_overrides.attn_config.attn_impl";
  const std::string said = source.text(own, source.text(way));
  const bool flash = source.on(flag) || said == "flash" || said == "flash_attention_2";
  source.put("strategy.attention",
             flash                                ? "flash"
             : said == "torch" || said == "eager" ? "eager"
                                                  : "sdpa",
             source.on(flag)    ? flag
             : source.says(own) ? own
                                : way);
}

void put_foundry_adapter(MappedSource& source) {
  if (source.keys_below("model.peft_config").empty()) return;
  put_adapter(source, {.rank_key = "model.peft_config.r",
                       .modules_key = "model.peft_config.target_modules"});
}

// Returns fewer GPUs than a node has, where the whole batch is too small to be shared by all.
GpusOfSource gpus_of_foundry(MappedSource& source, const SourceQuestion& question) {
  GpusOfSource launched = gpus_of(question);
  const std::string micro = source.text("device_train_microbatch_size", "auto");
  const std::int64_t rows = micro == "auto"
                                ? 1
                                : source.whole("device_train_microbatch_size", 1, 1, most_rows),
                     batch = source.whole("global_train_batch_size", 0, 1, 1'000'000'000);
  if (launched.gpus > 0 || batch == 0) return launched;
  for (std::int64_t gpus = 8; gpus > 0; gpus /= 2) {
    if (batch % (rows * gpus) != 0) continue;
    if (gpus == 8) return launched;
    return {
        .gpus = gpus,
        .nodes = 1,
        .why = fmt::format("a batch of {} rows is shared by no more, {} at a time", batch, rows)};
  }
  return launched;
}

}  // namespace

Translation translate_llm_foundry(const SourceQuestion& question, const Document& document) {
  MappedSource source(question, document, "LLM Foundry", "programs/llm_foundry/llm-foundry");
  source.follow_references();
  put_foundry_model(source);
  const std::int64_t gpus = source.whole("n_gpus", 0, 1, most_ranks);
  assume_machine(question, source.root(), source.result(),
                 gpus > 0 ? GpusOfSource{.gpus = gpus, .nodes = 0, .why = "n_gpus says so"}
                          : gpus_of_foundry(source, question));
  source.look_around();
  source.put_stack();
  put_foundry_rows(source);
  put_foundry_batch(source);
  put_foundry_sharding(source);
  put_foundry_adapter(source);
  if (source.text("model.name") == "hf_causal_lm") put_foundry_attention(source);
  if (const std::string loss = source.text("model.loss_fn"); !loss.empty())
    source.put_word("strategy.cross_entropy", "losses", loss, "model.loss_fn",
                    "a fused kernel is taken");
  source.put_mapped();
  return source.finish();
}

}  // namespace stepsim
