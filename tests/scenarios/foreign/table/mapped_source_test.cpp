// Tables of keys of other programs, and what is read by them.
#include "scenarios/foreign/table/mapped_source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/read/resolved.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

std::vector<std::string> tables_in(const std::string& folder) {
  std::vector<std::string> files;
  const std::filesystem::path all =
      std::filesystem::path(STEPSIM_SOURCE_DATA) / "scenarios/foreign" / folder;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(all))
    if (entry.path().extension() == ".yaml" &&
        read_document(entry.path().string()).root().is_mapping("keys"))
      files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// Keys of all scenarios, of GRPO ones as well, each with its words.
const KeyFacts* facts_of(const std::string& path) {
  static const std::vector<ResolvedKey> usual = resolved_keys(Scenario{});
  static const std::vector<ResolvedKey> grpo = [] {
    Scenario scenario;
    scenario.job.method = Method::grpo;
    scenario.grpo.emplace();
    return resolved_keys(scenario);
  }();
  for (const auto* keys : {&usual, &grpo})
    for (const ResolvedKey& key : *keys)
      if (key.path() == path) return key.facts;
  return nullptr;
}

Translation translate(const std::string& name, const std::string& text,
                      const std::vector<Setting>& settings) {
  const TemporaryFolder folder;
  std::ofstream(folder.file(name)) << text;
  return translate_source(data, folder.file(name), settings).value();
}

std::string value_at(const Translation& translation, std::string_view path) {
  for (const TranslatedLine& line : translation.lines)
    if (line.path == path) return line.value;
  return "";
}

}  // namespace

TEST_CASE("keys that say a key of a scenario name one that there is", "[scenarios][sources]") {
  std::vector<std::string> files = tables_in("programs");
  for (std::string& file : tables_in("write")) files.push_back(std::move(file));
  CHECK(files.size() >= 6);
  for (const std::string& file : files)
    for (const MappedKey& key : mapped_keys(read_document(file))) {
      INFO(file << ": " << key.theirs << ": " << key.ours);
      const KeyFacts* facts = facts_of(key.ours);
      REQUIRE(facts != nullptr);
      for (const auto* words : {&key.words, &key.near})
        for (const auto& [theirs, ours] : *words)
          if (facts->kind == KeyKind::word)
            CHECK(std::find(facts->words.begin(), facts->words.end(), ours) != facts->words.end());
      for (const auto& [path, value] : key.with) CHECK(facts_of(path) != nullptr);
    }
}

TEST_CASE("every key of a table stands in one list", "[scenarios][sources]") {
  for (const std::string& file : tables_in("programs")) {
    INFO(file);
    const Document facts = read_document(file);
    const Table root = facts.root();
    std::vector<std::string> all = root.texts("read");
    for (const std::string& key : root.texts("changes_nothing")) all.push_back(key);
    for (const std::string_view list : {"keys", "not_modelled"})
      for (const std::string& key : root.table(list).keys()) all.push_back(key);
    std::sort(all.begin(), all.end());
    const auto twice = std::adjacent_find(all.begin(), all.end());
    CHECK((twice == all.end() ? "" : *twice) == "");
  }
}

TEST_CASE("pieces of a TorchTitan pipeline count embedding and head", "[scenarios][sources]") {
  const std::string text =
      "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nlocal_batch_size = 8\n"
      "[parallelism]\npipeline_parallel_degree = 4\n";
  const std::vector<Setting> machine{{"cluster", "{node: h100-8}"}};
  const Translation plain = translate("own.toml", text, machine);
  CHECK(value_at(plain, "strategy.pipeline_parallel.layers") == "[8, 9, 8, 7]");
  CHECK(value_at(plain, "job.micro_batch") == "1");
  CHECK(value_at(plain, "job.gradient_accumulation") == "8");
  for (const auto& [theirs, ours] :
       std::map<std::string, std::string>{{"Interleaved1F1B", "interleaved"},
                                          {"LoopedBFS", "interleaved"},
                                          {"InterleavedZeroBubble", "zb_h1"},
                                          {"ZBVZeroBubble", "zbv"},
                                          {"DualPipeV", "dualpipe_v"}}) {
    const Translation looped =
        translate("own.toml", text + "pipeline_parallel_schedule = \"" + theirs + "\"\n", machine);
    CHECK(value_at(looped, "strategy.pipeline_parallel.schedule") == ours);
    CHECK(value_at(looped, "strategy.pipeline_parallel.virtual_stages") == "2");
  }
}

TEST_CASE("types and copies of a TorchTitan file", "[scenarios][sources]") {
  const std::string head = "[model]\nflavor = \"8B\"\n[training]\nsteps = 5\n";
  const std::vector<Setting> machine{{"cluster", "{node: h100-8}"}};
  const Translation copies = translate(
      "own.toml",
      head + "[parallelism]\ndata_parallel_replicate_degree = 2\ndata_parallel_shard_degree = 4\n",
      machine);
  CHECK(value_at(copies, "strategy.zero") == "hsdp");
  CHECK(value_at(copies, "strategy.fsdp.replicate") == "2");
  CHECK(value_at(copies, "strategy.checkpoint_every") == "2");
  const Translation whole =
      translate("own.toml",
                head +
                    "dtype = \"bfloat16\"\n[parallelism]\ndata_parallel_replicate_degree = 8\n"
                    "data_parallel_shard_degree = 1\n[activation_checkpoint]\nmode = \"none\"\n",
                machine);
  CHECK(value_at(whole, "strategy.zero") == "0");
  CHECK(value_at(whole, "strategy.master_weights") == "false");
  CHECK(value_at(whole, "strategy.checkpointing") == "none");
}

TEST_CASE("a model is what Megatron's arguments say of its widths", "[scenarios][sources]") {
  const std::string shape =
      "num-layers: 4\nhidden-size: 1024\nnum-attention-heads: 16\nseq-length: 2048\n"
      "micro-batch-size: 1\ntokenizer-type: GPT2BPETokenizer\nbf16: true\n";
  const std::vector<Setting> machine{{"cluster", "{node: h100-8}"}};
  const std::string gpt = value_at(translate("own.yaml", shape, machine), "model");
  CHECK(gpt.find("GPT2LMHeadModel") != std::string::npos);
  CHECK(gpt.find("vocab_size: 50304") != std::string::npos);
  CHECK(gpt.find("n_inner: 4096") != std::string::npos);
  const std::string rotary = shape +
                             "position-embedding-type: rope\nswiglu: true\nnormalization: RMSNorm\n"
                             "disable-bias-linear: true\nffn-hidden-size: 2816\n";
  CHECK(value_at(translate("own.yaml", rotary + "qk-layernorm: true\n", machine), "model")
            .find("Qwen3ForCausalLM") != std::string::npos);
  CHECK(value_at(translate("own.yaml", rotary + "num-experts: 8\n", machine), "model")
            .find("MixtralForCausalLM") != std::string::npos);
  CHECK(value_at(translate("own.yaml",
                           rotary + "num-experts: 8\nmoe-grouped-gemm: true\n"
                                    "moe-expert-capacity-factor: 1.0\n",
                           machine),
                 "strategy.moe.drops_above") == "1.0");
  const std::string latent = value_at(
      translate("own.yaml",
                rotary + "num-experts: 64\nmulti-latent-attention: true\nkv-lora-rank: 512\n"
                         "moe-layer-freq: ([0]*1+[1]*3)\nmoe-ffn-hidden-size: 704\n",
                machine),
      "model");
  CHECK(latent.find("DeepseekV3ForCausalLM") != std::string::npos);
  CHECK(latent.find("first_k_dense_replace: 1") != std::string::npos);
}

TEST_CASE("stages of Megatron: schedules, and what counts as a layer", "[scenarios][sources]") {
  const std::string text =
      "num-layers: 30\nhidden-size: 1024\nnum-attention-heads: 16\nseq-length: 2048\n"
      "micro-batch-size: 1\nglobal-batch-size: 16\ntokenizer-type: GPT2BPETokenizer\nbf16: true\n"
      "pipeline-model-parallel-size: 4\n";
  const auto stages = [&](const std::string& more, const std::string& key) {
    return value_at(translate("own.yaml", text + more, {{"cluster", "{node: h100-8}"}}),
                    "strategy.pipeline_parallel." + key);
  };
  const std::string both =
      "account-for-embedding-in-pipeline-split: true\naccount-for-loss-in-pipeline-split: true\n";
  CHECK(stages(both, "layers") == "[7, 8, 8, 7]");
  CHECK(stages(both + "num-virtual-stages-per-pipeline-rank: 2\n", "layers") ==
        "[3, 4, 4, 4, 4, 4, 4, 3]");
  CHECK(stages(both + "num-layers-per-virtual-pipeline-stage: 2\n", "virtual_stages") == "4");
  const std::string ends =
      "decoder-first-pipeline-num-layers: 6\ndecoder-last-pipeline-num-layers: 4\n";
  CHECK(stages(ends, "layers") == "[6, 10, 10, 4]");
  CHECK(stages(ends + "num-virtual-stages-per-pipeline-rank: 2\n", "layers") ==
        "[3, 5, 5, 2, 3, 5, 5, 2]");
  const std::string zero_bubble = "enable-zero-bubble: true\n",
                    fold = "zero-bubble-v-schedule: true\n";
  CHECK(stages(zero_bubble + "zero-bubble-max-pending-backward: 4\n", "schedule") == "zb_h1");
  CHECK(stages(fold, "schedule") == "zbv");
  CHECK(stages(fold, "virtual_stages") == "2");
  CHECK(stages(fold + "zero-bubble-v-schedule-mem-setup: half\n", "schedule") == "v_half");
  CHECK(stages(fold + "zero-bubble-v-schedule-mem-setup: min\n", "schedule") == "v_min");
}

TEST_CASE("blocks of Megatron-Bridge hold the same arguments", "[scenarios][sources]") {
  const Translation bridge =
      translate("own.yaml",
                "model:\n  num_layers: 4\n  hidden_size: 1024\n  num_attention_heads: 16\n"
                "  num_moe_experts: 8\n  gated_linear_unit: true\n  moe_grouped_gemm: true\n"
                "  expert_model_parallel_size: 4\n  vocab_size: 32000\n"
                "train:\n  micro_batch_size: 2\n  global_batch_size: 64\n  train_iters: 10\n"
                "dataset:\n  sequence_length: 4096\nddp:\n  use_distributed_optimizer: true\n",
                {{"cluster", "{node: h100-8}"}});
  CHECK(value_at(bridge, "job.sequence") == "4096");
  CHECK(value_at(bridge, "job.global_batch") == "64");
  CHECK(value_at(bridge, "strategy.zero") == "1");
  CHECK(value_at(bridge, "strategy.moe.kernel") == "grouped");
  CHECK(value_at(bridge, "strategy.moe.expert_parallel") == "4");
  CHECK(value_at(bridge, "strategy.gradient_dtype") == "fp32");
  // What its dumps hold besides.
  const auto dumped = [](const std::string& more) {
    return translate("own.yaml",
                     "model:\n  num_layers: 16\n  hidden_size: 1024\n  num_attention_heads: 16\n"
                     "  vocab_size: 32000\n  seq_length: 4096\n  pipeline_model_parallel_size: 4\n"
                     "  scatter_embedding_sequence_parallel: true\n" +
                         more +
                         "train: {micro_batch_size: 2, global_batch_size: 64, train_iters: 10}\n",
                     {{"cluster", "{node: h100-8}"}});
  };
  const Translation pieces =
      dumped("  virtual_pipeline_model_parallel_size: 2\nddp: {grad_reduce_in_fp32: false}\n");
  CHECK(value_at(pieces, "strategy.pipeline_parallel.schedule") == "interleaved");
  CHECK(value_at(pieces, "strategy.pipeline_parallel.virtual_stages") == "2");
  CHECK(value_at(pieces, "strategy.gradient_dtype") == "bf16");
  const Translation plain =
      dumped("  virtual_pipeline_model_parallel_size: null\nddp: {grad_reduce_in_fp32: true}\n");
  CHECK(value_at(plain, "strategy.pipeline_parallel.schedule") == "1f1b");
  CHECK(value_at(plain, "strategy.gradient_dtype") == "fp32");
  CHECK(value_at(plain, "strategy.lora.rank").empty());
  const Translation adapters =
      dumped("peft: {dim: 16, alpha: 32, target_modules: [linear_qkv, linear_proj]}\nddp: {}\n");
  CHECK(value_at(adapters, "strategy.lora.rank") == "16");
  CHECK(value_at(adapters, "strategy.lora.modules") == "[qkv_proj, o_proj]");
}

TEST_CASE("engines of NeMo-RL on GPUs of their own", "[scenarios][sources]") {
  const std::string text =
      "policy:\n  model_name: Qwen/Qwen2.5-0.5B\n  generation:\n    colocated:\n"
      "      enabled: false\n      resources: {num_nodes: 1, gpus_per_node: 8}\n"
      "grpo:\n  async_grpo: {enabled: true, max_trajectory_age_steps: 2}\n"
      "cluster: {gpus_per_node: 8, num_nodes: 3}\n";
  const Translation apart = translate("own.yaml", text, {});
  CHECK(value_at(apart, "job.layout") == "separate");
  CHECK(value_at(apart, "job.num_learners_per_node") == "[8, 8, 0]");
  CHECK(value_at(apart, "job.async_steps") == "2");
  CHECK(value_at(apart, "cluster.nodes") == "3");
}

namespace {

const std::string verl_start =
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo "
    "data.train_batch_size=1024 data.max_prompt_length=512 "
    "data.max_response_length=1024 actor_rollout_ref.rollout.n=5 "
    "trainer.n_gpus_per_node=8 trainer.nnodes=1 actor_rollout_ref.model.path=";
const std::string verl_script = verl_start + "Qwen/Qwen2.5-7B-Instruct";

Translation verl(const std::string& more, const std::string& model = "Qwen/Qwen2.5-7B-Instruct") {
  return translate("own.sh", verl_start + model + " " + more + "\n", {});
}

const std::string actor = "actor_rollout_ref.actor.";

}  // namespace

TEST_CASE("a machine that is named has as many GPUs of a node as the file says",
          "[scenarios][sources]") {
  const std::string nemo =
      "policy: {model_name: Qwen/Qwen2.5-0.5B}\ngrpo: {max_num_steps: 5}\n"
      "cluster: {gpus_per_node: 4, num_nodes: 2}\n";
  const Setting machine{"cluster", "{node: h100-8}"};
  const Translation part = translate("own.yaml", nemo, {machine});
  CHECK(value_at(part, "cluster.gpus_per_node") == "4");
  CHECK(value_at(part, "cluster.nodes") == "2");
  const auto said =
      std::ranges::find(part.assumptions, "nodes and GPUs of each", &Assumption::what);
  REQUIRE(said != part.assumptions.end());
  CHECK(said->taken == "2 x 4 of h100-8");
  CHECK(said->change == "--nodes N, --set cluster.gpus_per_node=N");
  // The command line, and what does not fit.
  const Translation own = translate(
      "own.yaml", nemo, {{"cluster", "{node: h100-8, nodes: 3}"}, {"cluster.gpus_per_node", "8"}});
  CHECK(value_at(own, "cluster.gpus_per_node").empty());
  CHECK(value_at(own, "cluster.nodes").empty());
  CHECK_THROWS_WITH(translate("own.yaml", nemo, {{"cluster", "{node: h100-2}"}}),
                    Catch::Contains("the file asks for 4 GPUs of a node, and h100-2 has 2"));
  const Translation card = translate("own.yaml", nemo, {{"cluster", "{node: h100}"}});
  CHECK(value_at(card, "cluster.gpus_per_node") == "4");
  const Translation set = translate("own.yaml", nemo, {machine, {"cluster.gpus_per_node", "8"}});
  CHECK(value_at(set, "cluster.nodes") == "2");
  CHECK(
      value_at(translate("own.sh", verl_script + "\n", {machine, {"trainer.n_gpus_per_node", "2"}}),
               "cluster.gpus_per_node") == "2");
  CHECK(value_at(translate("own.sh", verl_script + "\n", {machine}), "cluster.gpus_per_node")
            .empty());
}

TEST_CASE("rows of verl's micro-batches hold their own lengths", "[scenarios][sources]") {
  const Translation own = verl(actor + "ppo_micro_batch_size_per_gpu=80");
  CHECK(value_at(own, "recipe") == "verl");
  CHECK(value_at(own, "job.pack_rows") == "80");
  CHECK(value_at(own, "job.pack_length").empty());
  const Translation padded = verl(actor +
                                  "ppo_micro_batch_size_per_gpu=80 "
                                  "actor_rollout_ref.model.use_remove_padding=False");
  CHECK(value_at(padded, "job.batching") == "rows");
  CHECK(value_at(padded, "job.pack_length") == "122880");
  // The old key counts those of all ranks.
  CHECK(value_at(verl(actor + "ppo_micro_batch_size=64"), "job.pack_rows") == "8");
  CHECK(value_at(verl(actor + "ppo_micro_batch_size=64 " + actor + "strategy=megatron " + actor +
                      "megatron.tensor_model_parallel_size=2"),
                 "job.pack_rows") == "16");
}

TEST_CASE("what verl computes again, and its adapters", "[scenarios][sources]") {
  const std::string megatron = actor + "strategy=megatron ",
                    granularity =
                        actor + "megatron.override_transformer_config.recompute_granularity=";
  CHECK(value_at(verl(""), "strategy.checkpointing") == "full");
  CHECK(value_at(verl(megatron), "strategy.checkpointing") == "none");
  CHECK(value_at(verl(megatron + granularity + "null"), "strategy.checkpointing") == "none");
  CHECK(value_at(verl(megatron + granularity + "full"), "strategy.checkpointing") == "full");
  CHECK(value_at(verl(megatron + granularity + "selective"), "strategy.recompute_modules") ==
        "[core_attn]");
  const Translation adapter = verl("actor_rollout_ref.model.lora_rank=32");
  CHECK(value_at(adapter, "strategy.lora.rank") == "32");
  CHECK(value_at(adapter, "job.sync_adapters") == "true");
  CHECK(value_at(verl(megatron + "actor_rollout_ref.model.lora.rank=256"), "strategy.lora.rank") ==
        "256");
}

TEST_CASE("states and gradients of NeMo-RL's Megatron", "[scenarios][sources]") {
  const auto file = [](const std::string& more) {
    return translate(
        "own.yaml",
        "policy:\n  model_name: Qwen/Qwen2.5-0.5B\n  megatron_cfg:\n    enabled: true\n" + more +
            "grpo: {max_num_steps: 5}\ncluster: {gpus_per_node: 8}\n",
        {});
  };
  const Translation usual = file("");
  CHECK(value_at(usual, "strategy.gradient_dtype") == "bf16");
  CHECK(value_at(usual, "strategy.zero") == "1");
  CHECK(value_at(usual, "strategy.checkpointing") == "none");
  const Translation other = file(
      "    activation_checkpointing: true\n    recompute_granularity: selective\n"
      "    distributed_data_parallel_config: {grad_reduce_in_fp32: true}\n"
      "    optimizer: {use_distributed_optimizer: false}\n");
  // Engines get the model with its adapters in it.
  const Translation adapter = file("    peft: {enabled: true, dim: 16}\n");
  CHECK(value_at(adapter, "strategy.lora.rank") == "16");
  CHECK(value_at(adapter, "job.sync_adapters").empty());
  CHECK(value_at(other, "strategy.gradient_dtype") == "fp32");
  CHECK(value_at(other, "strategy.zero") == "0");
  CHECK(value_at(other, "strategy.recompute_modules") == "[core_attn]");
}

TEST_CASE("moments and states on the host of NeMo-RL's Megatron", "[scenarios][sources]") {
  const auto file = [](const std::string& optimizer, const std::string& more = "") {
    return translate(
        "own.yaml",
        "policy:\n  model_name: Qwen/Qwen2.5-0.5B\n  megatron_cfg:\n    enabled: true\n" + more +
            "    optimizer: {" + optimizer + "}\n" +
            "grpo: {max_num_steps: 5}\ncluster: {gpus_per_node: 8}\n",
        {});
  };
  const std::string narrow = "exp_avg_dtype: torch.bfloat16";
  CHECK(value_at(file(narrow), "strategy.moment_dtype").empty());
  CHECK(value_at(file(narrow + ", use_precision_aware_optimizer: true"), "strategy.moment_dtype") ==
        "bf16");
  const std::string host = "optimizer_cpu_offload: true, optimizer_offload_fraction: ";
  CHECK(value_at(file(host + "1.0"), "strategy.offload.optimizer") == "cpu");
  CHECK(value_at(file(host + "0.0"), "strategy.offload.optimizer").empty());
  CHECK(value_at(file(host + "1.0", "    pipeline_model_parallel_size: 2\n"),
                 "strategy.offload.optimizer")
            .empty());
}

TEST_CASE("a recipe of torchtune is read", "[scenarios][sources]") {
  const auto file = [](const std::string& name, const std::string& more) {
    return translate(name,
                     "tokenizer: {max_seq_len: null}\ncheckpointer: {output_dir: a}\n"
                     "dataset: {_component_: torchtune.datasets.alpaca_dataset, packed: False}\n"
                     "optimizer: {_component_: torch.optim.AdamW, fused: True}\n"
                     "batch_size: 4\nepochs: 1\ngradient_accumulation_steps: 2\n" +
                         more,
                     {});
  };
  const std::string model = "model: {_component_: torchtune.models.llama3_1.";
  const Translation full =
      file("own.yaml", model +
                           "llama3_1_8b}\nenable_activation_checkpointing: True\n"
                           "enable_activation_offloading: True\n");
  CHECK(value_at(full, "strategy.offload.activations") == "cpu");
  CHECK(value_at(full, "model") == "\"llama-3.1-8b\"");
  CHECK(value_at(full, "stack") == "torchtune");
  CHECK(value_at(full, "strategy.zero") == "fsdp");
  CHECK(value_at(full, "strategy.fsdp.version") == "2");
  CHECK(value_at(full, "strategy.master_weights") == "false");
  CHECK(value_at(full, "strategy.checkpointing") == "full");
  CHECK(value_at(full, "strategy.cross_entropy") == "head_chunks");
  CHECK(value_at(full, "job.sequence") == "1024");
  CHECK(value_at(full, "job.micro_batch") == "4");
  CHECK(value_at(full, "job.gradient_accumulation") == "2");
  const Translation adapter =
      file("8B_qlora_single_device.yaml",
           model +
               "qlora_llama3_1_8b, lora_attn_modules: ['q_proj', 'output_proj'], lora_rank: 16, "
               "apply_lora_to_mlp: False}\n");
  CHECK(value_at(adapter, "strategy.zero") == "0");
  CHECK(value_at(adapter, "cluster.ranks").empty());
  CHECK(value_at(adapter, "strategy.lora.rank") == "16");
  CHECK(value_at(adapter, "strategy.lora.modules") == "[q_proj, o_proj]");
  CHECK(value_at(adapter, "strategy.lora.quantised") == "nf4");
  const auto kernels = [](const std::string& more) {
    return value_at(translate("own.yaml",
                              "model: {_component_: torchtune.models.llama3_1.llama3_1_8b}\n"
                              "dataset: {packed: False}\ncheckpointer: {output_dir: a}\n"
                              "tokenizer: {max_seq_len: null}\n"
                              "optimizer: {_component_: torch.optim.AdamW" +
                                  more + "}\n",
                              {}),
                    "strategy.optimizer_kernels");
  };
  CHECK(kernels("") == "foreach");
  CHECK(kernels(", foreach: True") == "foreach");
  CHECK(kernels(", foreach: False") == "single");
  CHECK_THROWS_WITH(file("own.yaml", model + "llama9_8b}\n"),
                    Catch::Contains("the model \"llama9_8b\" is not known"));
  CHECK_THROWS_WITH(file("own.yaml", model + "llama3_1_8b}\nteacher_model: {a: 1}\n"),
                    Catch::Contains("distillation is not modelled"));
  CHECK_THROWS_WITH(
      file("own.yaml", "grpo_samples: 4\nppo_epochs: 1\n"),
      Catch::Contains("own.yaml:8: grpo_samples: torchtune's own GRPO is not modelled"));
}

TEST_CASE("a recipe of NeMo AutoModel is read", "[scenarios][sources]") {
  const auto file = [](const std::string& more) {
    return translate("own.yaml",
                     "step_scheduler: {global_batch_size: 64, local_batch_size: 2, max_steps: 10}\n"
                     "recipe: TrainFinetuneRecipeForNextTokenPrediction\n"
                     "optimizer: {_target_: torch.optim.Adam}\n" +
                         more,
                     {});
  };
  const std::string dense =
      "model: {_target_: a.from_pretrained, pretrained_model_name_or_path: "
      "meta-llama/Llama-3.1-8B}\n";
  const Translation plain = file(dense +
                                 "distributed: {strategy: fsdp2, dp_size: none, tp_size: 2, "
                                 "sequence_parallel: true, activation_checkpointing: true}\n"
                                 "packed_sequence: {packed_sequence_size: 2048}\n"
                                 "peft: {dim: 8, target_modules: '*_proj'}\n");
  CHECK(value_at(plain, "stack") == "nemo-automodel");
  CHECK(value_at(plain, "strategy.zero") == "fsdp");
  CHECK(value_at(plain, "strategy.tensor_parallel.size") == "2");
  CHECK(value_at(plain, "strategy.tensor_parallel.sequence") == "true");
  CHECK(value_at(plain, "strategy.checkpointing") == "full");
  CHECK(value_at(plain, "job.sequence") == "2048");
  CHECK(value_at(plain, "job.packing") == "true");
  CHECK(value_at(plain, "job.global_batch") == "64");
  CHECK(value_at(plain, "job.micro_batch") == "2");
  CHECK(value_at(plain, "strategy.lora.rank") == "8");
  CHECK(value_at(plain, "strategy.lora.targets") == "linear");
  const Translation sparse = file(
      "model: {config: {pretrained_model_name_or_path: Qwen/Qwen3-30B-A3B}, backend: {experts: "
      "gmm, "
      "dispatcher: deepep, attn: te, fake_balanced_gate: true}}\nbenchmark: {num_nodes: 2}\n"
      "distributed: {ep_size: 8, pp_size: 2, pipeline: {pp_schedule: interleaved1f1b, "
      "pp_microbatch_size: 1, layers_per_stage: 12}}\ndataset: {_target_: a.Mock, seq_len: 4096}\n"
      "loss_fn: {_target_: a.MaskedCrossEntropy, fp32_upcast: false}\n");
  CHECK(value_at(sparse, "strategy.moe.expert_parallel") == "8");
  CHECK(value_at(sparse, "strategy.moe.kernel") == "grouped");
  CHECK(value_at(sparse, "strategy.moe.neighbours") == "true");
  CHECK(value_at(sparse, "strategy.moe.dispatcher") == "deepep");
  CHECK(value_at(sparse, "strategy.fsdp.reshard_after_forward") == "false");
  CHECK(value_at(sparse, "strategy.pipeline_parallel.size") == "2");
  CHECK(value_at(sparse, "strategy.pipeline_parallel.schedule") == "interleaved");
  CHECK(value_at(sparse, "strategy.pipeline_parallel.virtual_stages") == "2");
  CHECK(value_at(sparse, "strategy.cross_entropy") == "logits_16");
  CHECK(value_at(sparse, "job.micro_batch") == "1");
  CHECK(value_at(sparse, "job.sequence") == "4096");
  CHECK_THROWS_WITH(file(dense + "teacher_model: {a: 1}\n"),
                    Catch::Contains("distillation is not modelled"));
}

TEST_CASE("scripts of torchtune and LLM Foundry name their file", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const auto of_script = [&](const std::string& command) {
    std::ofstream(folder.file("go.sh")) << command << "\n";
    return translate_source(data, folder.file("go.sh"), {}).value();
  };
  std::ofstream(folder.file("lora.yaml"))
      << "model: {_component_: torchtune.models.llama3_1.lora_llama3_1_8b}\nbatch_size: 2\n"
         "tokenizer: {max_seq_len: 2048}\ndataset: {packed: True}\ncheckpointer: {a: 1}\n"
         "optimizer: {_component_: torch.optim.AdamW}\n";
  const Translation tuned = of_script(
      "tune run --nproc_per_node 4 lora_finetune_distributed --config lora.yaml batch_size=8 "
      "dataset.packed=False");
  CHECK(value_at(tuned, "job.micro_batch") == "8");
  CHECK(value_at(tuned, "job.packing") == "false");
  CHECK(value_at(tuned, "strategy.lora.rank") == "8");
  CHECK(value_at(tuned, "cluster.gpus_per_node") == "4");
  CHECK_THROWS_WITH(of_script("tune run lora_finetune_single_device --config llama3_1/8B_lora"),
                    Catch::Contains("`tune cp NAME FILE` copies one that comes with torchtune"));
  std::ofstream(folder.file("mpt.yaml"))
      << "max_seq_len: 128\nmodel: {name: mpt_causal_lm}\nglobal_train_batch_size: 64\n"
         "device_train_microbatch_size: 32\ntrain_loader: {name: text}\n";
  const Translation own =
      of_script("composer -n 4 train/train.py mpt.yaml max_seq_len=256 max_duration=5ba");
  CHECK(value_at(own, "job.sequence") == "256");
  CHECK(value_at(own, "job.micro_batch") == "16");
  CHECK(value_at(own, "cluster.gpus_per_node") == "4");
}

TEST_CASE("a file of gpt-neox is read, with dashes and with low lines", "[scenarios][sources]") {
  const auto file = [](const std::string& more) {
    return translate("own.yml",
                     "num-layers: 4\nhidden_size: 256\nnum-attention-heads: 4\nseq-length: 2048\n"
                     "train_micro_batch_size_per_gpu: 4\n" +
                         more,
                     {});
  };
  const Translation plain = file(
      "pipe-parallel-size: 2\nmodel_parallel_size: 2\npos-emb: rotary\nrotary-pct: 0.25\n"
      "no-weight-tying: true\nattention-config: [[[flash], 4]]\ngradient_accumulation_steps: 8\n"
      "zero_optimization: {stage: 1, overlap_comm: True, reduce_bucket_size: 5000000}\n"
      "fp16: {enabled: true}\ncheckpoint-activations: true\ntrain-iters: 100\n"
      "tokenizer-type: HFTokenizer\noptimizer: {type: Adam, params: {lr: 0.1}}\n");
  CHECK(plain.program == "gpt-neox");
  CHECK(value_at(plain, "stack") == "megatron-deepspeed");
  CHECK_THAT(value_at(plain, "model"), Catch::Contains("[GPTNeoXForCausalLM]") &&
                                           Catch::Contains("intermediate_size: 1024") &&
                                           Catch::Contains("vocab_size: 50432") &&
                                           Catch::Contains("rotary_pct: 0.25"));
  CHECK(value_at(plain, "strategy.zero") == "1");
  CHECK(value_at(plain, "strategy.pipeline_parallel.size") == "2");
  CHECK(value_at(plain, "strategy.tensor_parallel.size") == "2");
  CHECK(value_at(plain, "strategy.tensor_parallel.sequence") == "false");
  CHECK(value_at(plain, "strategy.gradient_dtype") == "bf16");
  CHECK(value_at(plain, "strategy.attention") == "flash");
  CHECK(value_at(plain, "strategy.checkpointing") == "full");
  CHECK(value_at(plain, "strategy.zero_optimization.overlap_comm") == "true");
  CHECK(value_at(plain, "job.gradient_accumulation") == "8");
  CHECK(value_at(plain, "job.optimizer_steps") == "100");
  // With a gate both matrices share two thirds of what is said, in steps.
  const Translation gated = file(
      "pos_emb: rotary\nactivation: swiglu\nnorm: rmsnorm\nintermediate_size: 2048\n"
      "mlp_multiple_of: 256\nuse_bias_in_attn_linear: false\nuse_bias_in_mlp: false\n"
      "bf16: {enabled: true}\nprecision: bfloat16\n");
  CHECK_THAT(value_at(gated, "model"), Catch::Contains("[LlamaForCausalLM]") &&
                                           Catch::Contains("intermediate_size: 768") &&
                                           Catch::Contains("mlp_bias: false"));
  CHECK(value_at(gated, "strategy.attention") == "eager");
  CHECK(value_at(gated, "strategy.zero") == "0");
  CHECK_THAT(value_at(file("fp16: {enabled: true}\n"), "model"),
             Catch::Contains("[GPT2LMHeadModel]"));
  CHECK_THROWS_WITH(file("attention_config: [[[mamba], 4]]\n"),
                    Catch::Contains("own.yml:6: attention_config: layers of \"mamba\""));
  CHECK_THROWS_WITH(file("moe_num_experts: 8\n"),
                    Catch::Contains("gpt-neox's own experts are not modelled"));
  CHECK_THROWS_WITH(file("pos_emb: rotery\n"), Catch::Contains("(did you mean \"rotary\"?)"));
  CHECK_THROWS_WITH(translate("own.yml", "num_layers: 4\nmodel_parallel_size: 1\n", {}),
                    Catch::Contains("what gpt-neox reads from several files goes into one"));
}

TEST_CASE("a variable of the environment counts with its default", "[scenarios][sources]") {
  const auto axolotl = [](const std::string& more, const std::vector<Setting>& settings = {}) {
    return translate("own.yaml", "base_model: Qwen/Qwen2.5-7B\n" + more, settings);
  };
  const auto assumed = [](const Translation& translation, std::string_view what) {
    for (const Assumption& each : translation.assumptions)
      if (each.what == what) return fmt::format("{}; {}; {}", each.taken, each.why, each.change);
    return std::string();
  };
  for (const std::string said : {"${SEQ:-8192}", "\"${SEQ-8192}\"", "${oc.env:SEQ,8192}",
                                 "${oc.env:SEQ, '8192'}", "${A:-${B:-8192}}"}) {
    INFO(said);
    const Translation read = axolotl("sequence_len: " + said + "\noutput_dir: ${OUT}\n");
    CHECK(value_at(read, "job.sequence") == "8192");
    CHECK_THAT(assumed(read, "sequence_len"), Catch::StartsWith("8192; the default of ${") &&
                                                  Catch::EndsWith("; --set sequence_len=VALUE"));
    CHECK(assumed(read, "output_dir").empty());
  }
  const Translation list = axolotl("adapter: lora\nlora_target_modules: [\"${A:-k_proj}\"]\n");
  CHECK(value_at(list, "strategy.lora.modules") == "[k_proj]");
  CHECK_THROWS_WITH(axolotl("sequence_len: 2048\nadapter: ${AD}\n"),
                    Catch::EndsWith("own.yaml:3: adapter: depends on AD, a variable of the "
                                    "environment, which is not read: --set adapter=VALUE says it"));
  CHECK_THROWS_WITH(axolotl("sequence_len: ${oc.env:SEQ}\n"),
                    Catch::Contains("own.yaml:2: sequence_len: depends on SEQ, "));
  CHECK(value_at(axolotl("sequence_len: ${SEQ}\n", {{"sequence_len", "512"}}), "job.sequence") ==
        "512");
  const std::string own = "sequence_len: 2048\nbase_model: ";
  CHECK(value_at(translate("own.yaml", own + "${DIR}/Qwen2.5-7B\n", {}), "model") ==
        "\"qwen2.5-7b\"");
  CHECK_THROWS_WITH(translate("own.yaml", own + "${BASE}\n", {}),
                    Catch::Contains("own.yaml:2: base_model: depends on BASE, "));
  CHECK_NOTHROW(translate("own.yaml", own + "${BASE}\n", {{"model", "qwen2.5-7b"}}));
}

TEST_CASE("a file of LLM Foundry is read, with what its variables say", "[scenarios][sources]") {
  const auto file = [](const std::string& model, const std::string& more) {
    return translate("own.yaml",
                     "variables: {max_seq_len: 1024, recompute: true, global_seed: 17}\n"
                     "max_seq_len: ${variables.max_seq_len}\n"
                     "model: {name: " +
                         model +
                         "}\noptimizer: {name: decoupled_adamw}\nglobal_train_batch_size: 64\n"
                         "device_train_microbatch_size: 4\nprecision: amp_bf16\n" +
                         more,
                     {});
  };
  const std::string own =
      "mpt_causal_lm, d_model: 512, n_heads: 8, n_layers: 6, max_seq_len: "
      "\"${variables.max_seq_len}\", attn_config: {attn_impl: flash, alibi: true}";
  const Translation plain =
      file(own,
           "max_duration: 100ba\ntrain_loader: {name: text}\n"
           "fsdp_config: {sharding_strategy: SHARD_GRAD_OP, mixed_precision: PURE, "
           "activation_checkpointing: \"${variables.recompute}\", "
           "activation_checkpointing_reentrant: false}\n");
  CHECK(value_at(plain, "stack") == "llm-foundry");
  CHECK_THAT(value_at(plain, "model"),
             Catch::Contains("[MPTForCausalLM]") && Catch::Contains("d_model: 512") &&
                 Catch::Contains("max_seq_len: 1024") && Catch::Contains("alibi: true"));
  CHECK(value_at(plain, "job.sequence") == "1024");
  CHECK(value_at(plain, "job.packing") == "true");
  CHECK(value_at(plain, "job.optimizer_steps") == "100");
  CHECK(value_at(plain, "job.global_batch") == "64");
  CHECK(value_at(plain, "strategy.zero") == "fsdp");
  CHECK(value_at(plain, "strategy.fsdp.reshard_after_forward") == "false");
  CHECK(value_at(plain, "strategy.fsdp.reduce_dtype") == "bf16");
  CHECK(value_at(plain, "strategy.checkpointing") == "full");
  CHECK(value_at(plain, "strategy.reentrant") == "false");
  CHECK(value_at(plain, "strategy.attention") == "flash");
  const Translation tuned = file(
      "hf_causal_lm, pretrained_model_name_or_path: meta-llama/Llama-3.1-8B, peft_config: {r: 16, "
      "target_modules: [q_proj, v_proj]}",
      "max_duration: 2ep\ntrain_loader: {name: finetuning}\n");
  CHECK(value_at(tuned, "model") == "\"llama-3.1-8b\"");
  CHECK(value_at(tuned, "strategy.lora.rank") == "16");
  CHECK(value_at(tuned, "strategy.zero") == "0");
  CHECK(value_at(tuned, "strategy.attention") == "sdpa");
  CHECK(value_at(tuned, "job.packing") == "false");
  CHECK(value_at(tuned, "job.epochs") == "2");
  CHECK_THROWS_WITH(file("hf_t5", ""),
                    Catch::Contains("expected mpt_causal_lm or hf_causal_lm, found \"hf_t5\""));
  CHECK_THROWS_WITH(file(own, "max_duration: 2 weeks\n"), Catch::Contains("max_duration"));
  CHECK_THROWS_WITH(file("mpt_causal_lm, ffn_config: {ffn_type: mb_dmoe}", ""),
                    Catch::Contains("other feed-forward parts are not modelled"));
}

// Each bracket looked for to the end of the text would take minutes.
TEST_CASE("a value full of brackets is read as fast as any other", "[scenarios][sources]") {
  std::string open, close;
  for (int i = 0; i < 200'000; ++i) {
    open += "${a:-";
    close += "}";
  }
  const std::string text = "sequence_len: 64\nmicro_batch_size: 1\nbase_model: " + open + "x";
  CHECK_THROWS_WITH(translate("own.yaml", text + close + "\n", {}),
                    Catch::Contains("base_model: "));
}

}  // namespace stepsim
