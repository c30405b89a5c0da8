#include "scenarios/import/axolotl.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <optional>

#include "scenarios/import/assumed.hpp"
#include "scenarios/import/relaxed_json.hpp"
#include "sim/base/whole_file.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

std::string small(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Translates block by block: what one finds out, the next may need.
class AxolotlReader {
 public:
  AxolotlReader(const SourceQuestion& question, const Document& source)
      : question_(question),
        source_(source),
        root_(source.root()),
        facts_(read_document(data_file(question.data, "scenarios/import/axolotl.yaml"))),
        words_(read_document(data_file(question.data, "scenarios/import/trainers.yaml"))) {
    result_.file = question.file;
    result_.program = "Axolotl";
  }

  Translation read();

 private:
  // ---- words of the source ----
  // As YAML's readers in Python have it: yes, On and True mean the same.
  std::string word(const Table& table, std::string_view key) const {
    if (!table.has(key) || table.is_mapping(key)) return "";
    return small(table.text_or(key, ""));
  }
  bool on(const Table& table, std::string_view key) const {
    const std::string said = word(table, key);
    return said == "true" || said == "yes" || said == "on";
  }
  bool on(std::string_view key) const { return on(root_, key); }
  // False, none, 0 and empty values ask for nothing.
  bool asks(std::string_view key) const {
    if (!root_.has(key)) return false;
    if (root_.is_mapping(key)) return !root_.table(key).keys().empty();
    const std::string said = root_.one_line(key);
    return !(said == "false" || said == "False" || said == "0" || said == "0.0" || said == "[]" ||
             said == "\"\"" || said == "no" || said == "none");
  }
  int line_of(const Table& table, std::string_view key) const {
    const auto origin = table.origin(key);
    return origin ? origin->line : 0;
  }

  // ---- words of the scenario ----
  void put(std::string_view path, std::string value, std::string_view key,
           std::string remark = "") {
    result_.lines.push_back({std::string(path), std::move(value), std::string(key),
                             line_of(root_, key), std::move(remark)});
  }
  void put_whole(std::string_view path, std::string_view key, std::int64_t fallback,
                 std::int64_t most) {
    put(path, std::to_string(root_.integer_or(key, fallback, 1, most)), key);
  }
  // The key was read, and the result is without it, or with something near to it.
  void without(std::string_view key, std::string why) {
    unmodelled_.emplace_back(key, std::move(why));
  }

  std::vector<std::string> facts(std::string_view key) const { return facts_.root().texts_or(key); }

  void read_job();
  void read_method();
  void read_optimizer();
  void read_memory();
  void read_attention();
  void read_loss();
  void read_adapter();
  void read_experts();
  void read_sharding();
  void read_deepspeed_file(const std::string& said);
  void read_fsdp();
  void read_parallel();
  void read_types();
  void read_saves();
  void choose_stack();
  void sort_keys();

  const SourceQuestion& question_;
  const Document& source_;
  Table root_;
  Document facts_, words_;
  Translation result_;
  SourceSurroundings around_;
  std::vector<std::pair<std::string, std::string>> unmodelled_;
  bool packed_ = false, pairs_ = false, adapter_ = false;
  bool fsdp_ = false, stage_3_ = false;
  bool optimizer_on_host_ = false, replaces_optimizer_ = true;
};

void AxolotlReader::read_job() {
  packed_ = on("sample_packing");
  if (root_.has("sequence_len"))
    put_whole("job.sequence", "sequence_len", 1, 1 << 24);
  else
    put("job.sequence", "512", "sequence_len");
  put("job.packing", packed_ ? "true" : "false", "sample_packing");
  if (root_.has("micro_batch_size"))
    put_whole("job.micro_batch", "micro_batch_size", 1, 1 << 16);
  else
    put("job.micro_batch", "1", "micro_batch_size");
  put_whole("job.gradient_accumulation", "gradient_accumulation_steps", 1, 1 << 16);
  DataOfSource data{.packed = packed_, .pairs = pairs_};
  data.epochs = root_.number_or("num_epochs", 1, 0.001, 1e6);
  const double steps = root_.number_or("max_steps", 0, -1, 1e12);
  const double tokens = root_.number_or("total_num_tokens", 0, 0, 1e18);
  data.steps_said = steps > 0 || tokens > 0;
  if (steps > 0)
    put("job.optimizer_steps", fmt::format("{:.0f}", steps), "max_steps");
  else if (tokens > 0)
    put("job.tokens", fmt::format("{:.0f}", tokens * data.epochs), "total_num_tokens",
        data.epochs == 1 ? "" : fmt::format("{:.4g} times", data.epochs));
  if (steps <= 0) put("job.epochs", fmt::format("{}", data.epochs), "num_epochs");
  if (const double share = root_.number_or("sample_packing_eff_est", 0, 0, 1);
      share > 0 && packed_) {
    put("job.fill", fmt::format("{}", share), "sample_packing_eff_est");
    data.fill_said = true;
  }
  root_.has("pad_to_sequence_len");
  if (!packed_ && !on("pad_to_sequence_len"))
    without("pad_to_sequence_len", "rows are counted as long as sequence_len allows");
  assume_data(question_, data, result_);
}

// What its loss costs is that of pairs, with or without a second model beside the first.
void AxolotlReader::read_method() {
  const std::string rl = word(root_, "rl");
  root_.has("precompute_ref_log_probs");
  root_.has("dpo_use_liger_kernel");
  if (rl.empty()) return put("job.method", "sft", "rl");
  constexpr std::array with_reference{"dpo", "ipo"}, without_reference{"orpo", "simpo"};
  const bool reference =
      std::find(with_reference.begin(), with_reference.end(), rl) != with_reference.end();
  pairs_ = reference || std::find(without_reference.begin(), without_reference.end(), rl) !=
                            without_reference.end();
  if (!pairs_) {
    const std::vector<std::string> known{"dpo", "ipo", "orpo", "simpo"},
        others{"kto", "grpo", "gdpo", "ebft"};
    root_.problem("rl", holds(others, rl)
                            ? fmt::format("{} of an Axolotl file is not read yet; expected {}", rl,
                                          one_of(known))
                            : fmt::format("expected {}, found \"{}\"{}", one_of(known), rl,
                                          did_you_mean(rl, known)));
    return;
  }
  put("job.method", "dpo", "rl", rl == "dpo" ? "" : fmt::format("{} runs pairs as dpo does", rl));
  const bool stored = reference && on("precompute_ref_log_probs");
  put("job.reference_model", reference && !stored ? "true" : "false",
      stored ? "precompute_ref_log_probs" : "rl");
  if (stored)
    without("precompute_ref_log_probs",
            "the pass that stores the reference's results comes before the first step");
}

void AxolotlReader::read_optimizer() {
  const std::string name = word(root_, "optimizer");
  if (name.empty()) return put("strategy.optimizer", "adamw", "optimizer");
  const Table known = words_.root().table("optimizers");
  std::string kind;
  std::vector<std::string> names = words_.root().texts("other_optimizers");
  const bool other = holds(names, name);
  for (const std::string& each : known.keys()) {
    const std::vector<std::string> spellings = known.texts(each);
    if (holds(spellings, name)) kind = each;
    names.insert(names.end(), spellings.begin(), spellings.end());
  }
  if (kind.empty() && !other) {
    root_.problem("optimizer", fmt::format("Axolotl has no optimizer \"{}\"{}", name,
                                           did_you_mean(name, names)));
    return;
  }
  if (kind.empty()) without("optimizer", fmt::format("{}: AdamW is taken", name));
  if (kind.empty()) kind = "adamw";
  if (optimizer_on_host_ && !replaces_optimizer_ && name.find("fused") == std::string::npos)
    put("strategy.offload.cpu_adam", "operators", "optimizer",
        "PyTorch's own on the host, as the DeepSpeed file asks");
  if (optimizer_on_host_ && replaces_optimizer_ && kind != "adamw") {
    put("strategy.optimizer", "adamw", "optimizer", "offload replaces it");
    result_.notes.push_back(fmt::format(
        "optimizer: {} is replaced: with its states on the host the optimizer is DeepSpeed's own "
        "AdamW, with states in 32 bits",
        name));
    return;
  }
  put("strategy.optimizer", kind, "optimizer", kind == name || other ? "" : name);
  if (name == "adamw_torch" && !optimizer_on_host_)
    put("strategy.optimizer_kernels", "foreach", "optimizer", "PyTorch's own choice");
  if (name.starts_with("paged_"))
    without("optimizer", fmt::format("{}: pages that move to the host when memory ends", name));
}

void AxolotlReader::read_memory() {
  const std::string said = word(root_, "gradient_checkpointing");
  const std::string offloading = word(root_, "activation_offloading");
  const bool offload = said == "offload" || said == "offload_disk" || said == "unsloth" ||
                       (!offloading.empty() && offloading != "false" && offloading != "no");
  const bool inside = fsdp_ && root_.is_mapping("fsdp_config") &&
                      (on(root_.table("fsdp_config"), "activation_checkpointing") ||
                       on(root_.table("fsdp_config"), "fsdp_activation_checkpointing"));
  const bool full = on("gradient_checkpointing") || said == "offload" || said == "offload_disk" ||
                    said == "unsloth";
  put("strategy.checkpointing", full || inside ? "full" : "none",
      full || !inside ? "gradient_checkpointing" : "fsdp_config");
  if (offload)
    put("strategy.offload.activations", "cpu",
        offloading.empty() ? "gradient_checkpointing" : "activation_offloading");
  if (said == "offload_disk" || offloading == "disk")
    without("activation_offloading", "what waits on drives is counted as on the host");
  root_.has("torch_compile");
  if (on("torch_compile") || word(root_, "torch_compile") == "auto")
    put("strategy.compile", on("torch_compile") ? "true" : "false", "torch_compile");
  root_.has("unfrozen_parameters");
  if (!asks("unfrozen_parameters")) return;
  const std::vector<std::string> trained = root_.texts_or("unfrozen_parameters");
  const bool text_tower = std::any_of(trained.begin(), trained.end(), [](const std::string& name) {
    return name.find("language_model") != std::string::npos && name.ends_with('+');
  });
  if (text_tower)
    result_.notes.emplace_back(
        "unfrozen_parameters: the text tower is trained as a whole; the frozen towers are not "
        "counted");
  else
    without("unfrozen_parameters", "all parameters have gradients and states");
}

void AxolotlReader::read_attention() {
  struct Choice {
    std::string_view key, implementation, kernel;
  };
  // Where several are on, the first of these counts.
  constexpr std::array choices{Choice{"xformers_attention", "xformers", "flash"},
                               Choice{"flex_attention", "flex_attention", "flex"},
                               Choice{"flash_attention", "flash_attention_2", "flash"},
                               Choice{"sdp_attention", "sdpa", "sdpa"},
                               Choice{"eager_attention", "eager", "eager"}};
  const std::string named = word(root_, "attn_implementation");
  if (named == "flash_attention_3")
    return put("strategy.attention", "flash3", "attn_implementation");
  if (named.starts_with("kernels-community/"))
    return put("strategy.attention", named.find('3') != std::string::npos ? "flash3" : "flash",
               "attn_implementation");
  if (named == "sage" || named == "fp8") {
    without("attn_implementation", "attention in 8 bits, taken as flash attention");
    return put("strategy.attention", "flash", "attn_implementation");
  }
  for (const Choice& choice : choices) {
    const bool flag = on(choice.key);  // all are read, so that all count as known
    if (!flag && named != choice.implementation) continue;
    const bool masked = choice.kernel == "sdpa" && packed_;
    return put("strategy.attention", masked ? "sdpa_efficient" : std::string(choice.kernel),
               flag ? choice.key : "attn_implementation", masked ? "packed rows need a mask" : "");
  }
  if (!named.empty()) {
    std::vector<std::string> known{"flash_attention_3", "sage", "fp8"};
    for (const Choice& choice : choices) known.emplace_back(choice.implementation);
    root_.problem("attn_implementation", fmt::format("Axolotl has no \"{}\"{}; expected {}", named,
                                                     did_you_mean(named, known), one_of(known)));
    return;
  }
  put("strategy.attention", packed_ ? "sdpa_efficient" : "sdpa", "flash_attention",
      "PyTorch's own is the models' usual one");
}

void AxolotlReader::read_loss() {
  const bool liger = on("liger_fused_linear_cross_entropy"), kernel = on("liger_cross_entropy"),
             cut = on("cut_cross_entropy"), chunks = on("chunked_cross_entropy");
  // The trainers of pairs take the logits themselves, and none of these is called.
  if (pairs_) {
    const bool fused = on("dpo_use_liger_kernel");
    put("strategy.cross_entropy", fused ? "fused" : "logits_16",
        fused ? "dpo_use_liger_kernel" : "rl", fused ? "" : "of pairs, over all logits");
    if ((liger || kernel || cut || chunks) && !fused)
      result_.notes.emplace_back(
          "kernels of the loss are for sft: the trainer of pairs takes logits and their "
          "log-probabilities itself");
    return;
  }
  if (cut) {
    put("strategy.cross_entropy", "fused", "cut_cross_entropy",
        "logits are never whole, as in Liger's");
  } else if (liger) {
    put("strategy.cross_entropy", "fused", "liger_fused_linear_cross_entropy");
  } else if (kernel) {
    put("strategy.cross_entropy", "in_place", "liger_cross_entropy");
  } else if (chunks) {
    put("strategy.cross_entropy", "chunks", "chunked_cross_entropy");
  } else {
    put("strategy.cross_entropy", "logits", "liger_fused_linear_cross_entropy");
  }
}

void AxolotlReader::read_adapter() {
  const std::string adapter = word(root_, "adapter");
  const bool quantised = on("load_in_4bit");
  for (const std::string_view key : {"lora_r", "lora_target_modules", "lora_target_linear"})
    root_.has(key);
  if (adapter.empty()) return;
  const std::vector<std::string> known{"lora", "qlora"};
  if (!holds(known, adapter)) {
    root_.problem("adapter", fmt::format("expected {}, found \"{}\"{}", one_of(known), adapter,
                                         did_you_mean(adapter, known)));
    return;
  }
  adapter_ = true;
  put("strategy.lora.rank", std::to_string(root_.integer_or("lora_r", 8, 1, 1 << 16)), "lora_r");
  const bool experts = around_.model && around_.model->experts && !around_.model->experts->fused;
  std::string key = "lora_target_modules", targets = "attention", remark;
  if (on("lora_target_linear")) {
    key = "lora_target_linear";
    targets = experts ? "all" : "linear";
  } else {
    const std::string said = root_.has(key) ? root_.one_line(key) : "";
    constexpr std::array attention{"q_proj", "k_proj", "v_proj", "o_proj", "qkv_proj"};
    constexpr std::array feed_forward{"gate_proj", "up_proj", "down_proj", "gate_up_proj", "w1",
                                      "w2",        "w3",      "mlp",       "all-linear"};
    const auto names = [&](std::string_view word) { return said.find(word) != std::string::npos; };
    const auto part = std::count_if(attention.begin(), attention.end(), names);
    if (std::any_of(feed_forward.begin(), feed_forward.end(), names))
      targets = experts ? "all" : "linear";
    const bool whole = part >= 4 || names("qkv_proj") || names("all-linear") || names("attn");
    if (said.empty()) remark = "queries and values alone are the usual ones";
    if (!whole)
      without(key, fmt::format("adapters are counted for {}", targets == "attention"
                                                                  ? "all of attention"
                                                                  : "all of attention as well"));
  }
  put("strategy.lora.targets", targets, key, remark);
  if (adapter == "qlora" || quantised)
    put("strategy.lora.quantised", "nf4", quantised ? "load_in_4bit" : "adapter");
}

void AxolotlReader::read_experts() {
  const std::string implementation = word(root_, "mlp_impl"),
                    chosen = word(root_, "experts_implementation");
  // All three are asked for, so that none of them counts as a key that nobody knows.
  const bool kernels = on("use_grouped_moe_kernels"), scatter = on("use_scattermoe"),
             sonic = on("use_sonicmoe");
  const bool grouped = kernels || scatter || sonic;
  const std::int64_t parallel = root_.integer_or("expert_parallel_size", 1, 1, 1 << 16);
  if (around_.model && !around_.model->experts) return;
  if (implementation == "megablocks")
    put("strategy.moe.kernel", "megablocks", "mlp_impl");
  else if (grouped)
    put("strategy.moe.kernel", "grouped",
        on("use_scattermoe") ? "use_scattermoe"
        : on("use_sonicmoe") ? "use_sonicmoe"
                             : "use_grouped_moe_kernels");
  else if (chosen == "grouped_mm" || chosen == "batched_mm" || chosen == "scattermoe" ||
           chosen == "sonicmoe")
    put("strategy.moe.kernel", chosen == "batched_mm" ? "padded" : "grouped",
        "experts_implementation");
  else if (around_.model)
    put("strategy.moe.kernel",
        holds(words_.root().texts("runs_all_experts"), around_.model->architecture) ? "all_experts"
                                                                                    : "loop",
        "mlp_impl", "as the model's own code runs experts");
  // Both run kernels over all experts, out of modules that the model's code keeps apart.
  const bool patched = implementation == "megablocks" || kernels;
  if (patched && around_.model && !around_.model->experts->fused)
    put("strategy.moe.layout", "separate",
        implementation == "megablocks" ? "mlp_impl" : "use_grouped_moe_kernels",
        "experts stay as the model's own code stores them");
  if (parallel > 1)
    put("strategy.moe.expert_parallel", std::to_string(parallel), "expert_parallel_size");
  if (!around_.model || !stage_3_) return;
  // Kernels over all experts at once need them gathered at once, too.
  const bool marked = holds(facts("gathers_experts_at_once"), around_.model->architecture);
  const bool at_once = marked || grouped || implementation == "megablocks";
  put("strategy.zero_optimization.leaf_modules", at_once ? "true" : "false", "deepspeed",
      marked    ? "Axolotl marks the block of experts of this model"
      : at_once ? "a kernel over all experts"
                : "Axolotl does not mark the block of experts of this model");
}

// Where Axolotl would look, and where people leave the file.
void AxolotlReader::read_deepspeed_file(const std::string& said) {
  const fs::path folder = fs::path(question_.file).parent_path();
  const fs::path name = fs::path(said).filename();
  std::vector<fs::path> places{folder / said};
  if (fs::path(said).is_relative() && !folder.empty()) places.emplace_back(said);
  places.push_back(folder / name);
  places.push_back(folder / "deepspeed_configs" / name);
  places.emplace_back(data_file(
      question_.data, fmt::format("scenarios/import/axolotl-deepspeed/{}", name.string())));
  std::error_code failed;
  const auto place = std::find_if(places.begin(), places.end(), [&](const fs::path& each) {
    return fs::is_regular_file(each, failed);
  });
  if (place == places.end()) {
    std::vector<std::string> looked;
    for (const fs::path& each : places)
      if (!holds(looked, each.string())) looked.push_back(each.string());
    looked.pop_back();  // those that Axolotl comes with are here, and named below
    std::vector<std::string> shipped;
    for (const auto& entry : fs::directory_iterator(places.back().parent_path(), failed))
      shipped.push_back(entry.path().filename().string());
    std::sort(shipped.begin(), shipped.end());
    root_.problem("deepspeed",
                  fmt::format("no file {}, and {} is none of those that Axolotl comes with: {}",
                              fmt::join(looked, " or "), name.string(), fmt::join(shipped, ", ")));
    return;
  }
  const std::string file = place->string();
  put("strategy.deepspeed", yaml_quoted(file), "deepspeed",
      place + 1 == places.end() ? fmt::format("{} as Axolotl comes with it", name.string()) : "");
  const Document json = parse_document(without_comments(read_file(file), file), file);
  const Table root = json.root();
  if (!root.is_mapping("zero_optimization")) return;
  const Table keys = root.table("zero_optimization");
  replaces_optimizer_ =
      !root.has("zero_force_ds_cpu_optimizer") || on(root, "zero_force_ds_cpu_optimizer");
  stage_3_ = keys.has("stage") && keys.text_or("stage", "") == "3";
  const std::string device = keys.is_mapping("offload_optimizer")
                                 ? word(keys.table("offload_optimizer"), "device")
                             : on(keys, "cpu_offload") ? "cpu"
                                                       : "";
  optimizer_on_host_ = device == "cpu" || device == "nvme";
  if (device == "cpu")
    put("strategy.offload.threads", "1", "deepspeed",
        "`accelerate launch` leaves each process one thread");
}

void AxolotlReader::read_fsdp() {
  fsdp_ = true;
  std::string kinds = root_.has("fsdp") ? small(root_.one_line("fsdp")) : "";
  std::string version = word(root_, "fsdp_version");
  bool hybrid = kinds.find("hybrid") != std::string::npos, keeps = false, offload = false;
  if (root_.is_mapping("fsdp_config")) {
    const Table config = root_.table("fsdp_config");
    const auto said = [&](const std::string& key) {
      std::string value = word(config, key);
      return value.empty() ? word(config, "fsdp_" + key) : value;
    };
    if (version.empty()) version = said("version");
    if (version.empty()) version = word(config, "fsdp_version");
    kinds += said("sharding_strategy");
    hybrid = hybrid || kinds.find("hybrid") != std::string::npos;
    keeps = said("reshard_after_forward") == "false";
    offload = said("offload_params") == "true";
    for (const std::string& key : config.keys()) config.has(key);
  }
  keeps = keeps || kinds.find("grad_op") != std::string::npos;
  offload = offload || kinds.find("offload") != std::string::npos;
  const std::int64_t replicas = root_.integer_or("dp_replicate_size", 1, 1, 1 << 16);
  const std::string from = root_.has("fsdp_config") ? "fsdp_config"
                           : root_.has("fsdp")      ? "fsdp"
                                                    : "dp_shard_size";
  put("strategy.zero", hybrid || replicas > 1 ? "hsdp" : "fsdp", from);
  put("strategy.fsdp.version", version == "2" || from == "dp_shard_size" ? "2" : "1",
      root_.has("fsdp_version") ? "fsdp_version" : from);
  if (keeps) put("strategy.fsdp.reshard_after_forward", "false", from);
  if (replicas > 1) put("strategy.fsdp.replicate", std::to_string(replicas), "dp_replicate_size");
  if (offload) without(from, "parameters and states of FSDP on the host: all stays on the GPU");
}

void AxolotlReader::read_sharding() {
  const std::string deepspeed = root_.has("deepspeed") && !root_.is_mapping("deepspeed")
                                    ? root_.text_or("deepspeed", "")
                                    : "";
  const std::int64_t shard = root_.integer_or("dp_shard_size", 1, 1, 1 << 16);
  const bool fsdp = asks("fsdp") || asks("fsdp_config") || shard > 1;
  if (!deepspeed.empty() && (asks("fsdp") || asks("fsdp_config"))) {
    root_.problem("deepspeed", "stands beside fsdp: Axolotl takes one of them");
  } else if (!deepspeed.empty()) {
    read_deepspeed_file(deepspeed);
  } else if (fsdp) {
    read_fsdp();
  } else {
    put("strategy.zero", "0", "deepspeed", "each GPU has everything");
    put("strategy.master_weights", "false", "deepspeed",
        "parameters are trained as they are loaded");
  }
}

void AxolotlReader::read_parallel() {
  if (const std::int64_t tensor = root_.integer_or("tensor_parallel_size", 1, 1, 1 << 16);
      tensor > 1) {
    put("strategy.tensor_parallel.size", std::to_string(tensor), "tensor_parallel_size");
    put("strategy.tensor_parallel.sequence", "false", "tensor_parallel_size",
        "transformers divides matrices, not tokens");
  }
  const std::string_view key =
      root_.has("context_parallel_size") ? "context_parallel_size" : "sequence_parallel_degree";
  root_.has("sequence_parallel_degree");
  if (const std::int64_t ring = root_.integer_or(key, 1, 1, 1 << 16); ring > 1)
    put("strategy.sequence_parallel.ring", std::to_string(ring), key);
}

void AxolotlReader::read_types() {
  for (const std::string_view key : {"bf16", "bfloat16", "float16"}) root_.has(key);
  if (on("fp16") || on("float16"))
    without("fp16", "taken as bf16, which has the same size and speed");
}

void AxolotlReader::read_saves() {
  for (const std::string_view key :
       {"save_steps", "saves_per_epoch", "save_strategy", "save_only_model"})
    root_.has(key);
  const std::string strategy = word(root_, "save_strategy");
  if (strategy == "no" || strategy == "false") return;
  const bool drives = !around_.cluster || around_.cluster->node.count(PartKind::nvme) > 0;
  if (const double steps = root_.number_or("save_steps", 0, 0, 1e12); steps >= 1 && drives) {
    put("job.save.every", fmt::format("{:.0f}", steps), "save_steps");
    if (on("save_only_model")) put("job.save.states", "false", "save_only_model");
    return;
  }
  const double per_epoch = root_.number_or("saves_per_epoch", 0, 0, 1e6);
  if (per_epoch > 0)
    without("saves_per_epoch",
            "how many steps an epoch has hangs on the data: --set job.save.every=N counts them");
}

// Kernels of Liger are those of a stack: all of them, or none.
void AxolotlReader::choose_stack() {
  const bool activation = on("liger_glu_activation") || on("liger_swiglu");
  std::vector<std::string_view> kernels;
  for (const std::string_view key :
       {"liger_rope", "liger_rms_norm", "liger_glu_activation", "liger_swiglu"})
    if (on(key)) kernels.push_back(key);
  const bool liger = on("liger_rope") && on("liger_rms_norm") && activation;
  const Table stacks = facts_.root().table(liger ? "stacks_with_liger" : "stacks");
  const std::string vendor = around_.cluster ? around_.cluster->gpu.vendor : "nvidia";
  const std::vector<std::string> known = stacks.keys();
  const std::string stack =
      first_stack(question_.data, stacks.texts(holds(known, vendor) ? vendor : known.front()));
  put("stack", stack, liger ? "liger_rms_norm" : "plugins",
      liger ? fmt::format("Axolotl with Liger's kernels on {} GPUs", vendor)
            : fmt::format("Axolotl on {} GPUs", vendor));
  if (liger) return;
  for (const std::string_view key : kernels)
    without(key,
            "Liger's kernels of norms, rotations and activations count together or not at all");
}

void AxolotlReader::sort_keys() {
  const std::vector<std::string> used = facts("used"), nothing = facts("changes_nothing");
  const Table without_model = facts_.root().table("not_modelled");
  std::vector<std::string> known = used;
  known.insert(known.end(), nothing.begin(), nothing.end());
  const std::vector<std::string> sentences = without_model.keys();
  known.insert(known.end(), sentences.begin(), sentences.end());
  for (const std::string& key : root_.keys()) {
    SourceKey sorted{key, line_of(root_, key), KeyFate::used, ""};
    const auto told = std::find_if(unmodelled_.begin(), unmodelled_.end(),
                                   [&](const auto& each) { return each.first == key; });
    if (!holds(known, key)) {
      sorted.fate = KeyFate::unknown;
      if (const std::string near = did_you_mean(key, known); !near.empty())
        root_.problem(key, "unknown key" + near);
      sorted.remark = "no key of Axolotl, which does not look at it";
    } else if (told != unmodelled_.end()) {
      sorted.fate = KeyFate::unmodelled;
      sorted.remark = told->second;
    } else if (holds(sentences, key) && asks(key)) {
      sorted.fate = KeyFate::unmodelled;
      sorted.remark = without_model.text(key);
    } else if (!root_.has(key) || !holds(used, key)) {
      sorted.fate = KeyFate::without_effect;
      if (!root_.has(key)) sorted.remark = "empty";
    } else {
      std::vector<std::string> paths;
      for (const TranslatedLine& line : result_.lines)
        if (line.key == key) paths.push_back(line.path);
      sorted.remark = fmt::format("{}", fmt::join(paths, ", "));
    }
    result_.keys.push_back(std::move(sorted));
  }
}

Translation AxolotlReader::read() {
  result_.lines.push_back(
      {"name", yaml_quoted(fs::path(question_.file).stem().string()), "", 0, ""});
  assume_model(question_, root_, "base_model", result_);
  assume_machine(question_, root_, result_);
  around_ = surroundings_of(question_, document_of(result_));
  choose_stack();
  read_method();
  read_job();
  read_saves();
  read_sharding();
  read_optimizer();
  read_memory();
  read_types();
  read_attention();
  read_loss();
  read_adapter();
  read_experts();
  read_parallel();
  sort_keys();
  source_.finish(Leftovers::allowed);
  return std::move(result_);
}

}  // namespace

Translation translate_axolotl(const SourceQuestion& question, const Document& source) {
  return AxolotlReader(question, source).read();
}

}  // namespace stepsim
