// Files of other programs, told apart and translated.
#include "scenarios/foreign/door/sources.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "scenarios/foreign/table/named_machines.hpp"
#include "scenarios/foreign/table/named_models.hpp"
#include "scenarios/foreign/text/near_files.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

const std::string small_file =
    "base_model: meta-llama/Llama-3.2-1B-Instruct\nsequence_len: 2048\nsample_packing: true\n"
    "micro_batch_size: 2\noptimizer: adamw_torch_8bit\n";

std::string model_of(const std::string& said) {
  const auto model = find_named_model(data, said, "nowhere/own.yaml");
  return model ? model->name : "";
}

}  // namespace

TEST_CASE("a file that another names is looked for above it, never at the top of all folders",
          "[scenarios]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("scripts/deep"));
  std::filesystem::create_directories(folder.file("models"));
  std::ofstream(folder.file("models/one.sh")) << "A=1\n";
  const std::string script = folder.file("scripts/deep/run.sh");
  CHECK(find_above(script, "models/one.sh") == folder.file("models/one.sh"));
  CHECK(!find_above(script, "one.sh"));  // a name alone is no place
  CHECK(!find_above("/usr/run.sh", "/etc/passwd"));
  CHECK(!find_above("/run.sh", "etc/passwd"));
}

TEST_CASE("open-instruct's supervised training is read", "[scenarios][sources]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("configs"));
  std::filesystem::create_directories(folder.file("scripts/train"));
  std::ofstream(folder.file("configs/three.conf"))
      << R"({"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": "auto"})";
  const auto of_script = [&](const std::string& text) {
    const std::string file = folder.file("scripts/train/own.sh");
    std::ofstream(file) << text;
    return translate_source(data, file, {}).value();
  };
  // A queue's program hands the command to each node; the file of DeepSpeed is named from the top.
  const std::string head =
      "python mason.py --num_nodes 4 --gpus 8 -- accelerate launch --num_processes 8 "
      "--use_deepspeed --deepspeed_config_file configs/three.conf ";
  const Translation tuned =
      of_script(head +
                "open_instruct/finetune.py --model_name_or_path meta-llama/Llama-3.1-8B "
                "--max_seq_length 4096 --per_device_train_batch_size 1 "
                "--gradient_accumulation_steps 2 --gradient_checkpointing\n");
  CHECK(value_at(tuned, "cluster.nodes") == "4");
  CHECK(value_at(tuned, "job.method") == "sft");
  CHECK(value_at(tuned, "job.sequence") == "4096");
  CHECK(value_at(tuned, "job.packing") == "false");
  CHECK(value_at(tuned, "job.epochs") == "2");
  CHECK(value_at(tuned, "strategy.deepspeed").find("three.conf") != std::string::npos);
  CHECK(value_at(tuned, "strategy.checkpointing") == "full");
  CHECK(value_at(tuned, "strategy.attention") == "flash");
  const Translation pairs = of_script(head +
                                      "open_instruct/dpo_tune_cache.py --model_name_or_path "
                                      "meta-llama/Llama-3.1-8B --num_epochs 1 --use_lora\n");
  CHECK(value_at(pairs, "job.method") == "dpo");
  CHECK(value_at(pairs, "job.reference_model") == "false");  // what it finds is stored
  CHECK(value_at(pairs, "strategy.lora.rank") == "64");
}

TEST_CASE("options of accelerate launch decide on the sharding", "[scenarios][sources]") {
  const auto of_script = [](const std::string& text) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << text;
    return translate_source(data, file, {}).value();
  };
  const std::string tail =
      "trl sft --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2\n";
  const Translation three = of_script(
      "accelerate launch --num_processes 8 --use_deepspeed --zero_stage 3 "
      "--offload_optimizer_device cpu -m trl.scripts.sft " +
      tail.substr(8));
  CHECK(value_at(three, "strategy.zero") == "3");
  CHECK(value_at(three, "strategy.offload.optimizer") == "cpu");
  const Translation own = of_script(
      "accelerate launch --num_processes 8 --use_fsdp --fsdp_sharding_strategy SHARD_GRAD_OP -m "
      "trl.scripts.sft " +
      tail.substr(8));
  CHECK(value_at(own, "strategy.zero") == "fsdp");
  CHECK(value_at(own, "strategy.fsdp.reshard_after_forward") == "false");
}

TEST_CASE("what trains nothing is refused", "[scenarios][sources]") {
  const auto refusal = [](const std::string& text, const std::string& name) -> std::string {
    const TemporaryFolder folder;
    const std::string file = folder.file(name);
    std::ofstream(file) << text;
    try {
      translate_source(data, file, {});
    } catch (const UserError& error) {
      return error.problems().front().message;
    }
    return "";
  };
  CHECK(refusal("model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_predict: true\ncutoff_len: 9\n"
                "finetuning_type: lora\n",
                "own.yaml") == "without do_train: true nothing is trained");
  CHECK(refusal("model_name_or_path: Qwen/Qwen3-8B\nstage: sft\ndo_train: true\ncutoff_len: 9\n"
                "finetuning_type: freeze\n",
                "own.yaml")
            .starts_with("freeze trains the last layers alone"));
  const std::string quantised = small_file + "adapter: qlora\n";
  CHECK(refusal(quantised + "load_in_4bit: false\n", "own.yaml") ==
        "Axolotl has no qlora without it");
  CHECK(refusal(quantised + "load_in_4bit: true\nload_in_8bit: true\n", "own.yaml") ==
        "Axolotl has no qlora with it");
  CHECK(refusal("model_name_or_path: Qwen/Qwen3-8B\ntemplate: qwen\ninfer_backend: vllm\n",
                "own.yaml") == "is a file of LLaMA-Factory for inference, which trains nothing");
  CHECK(refusal("python expand.py --model_name_or_path Qwen/Qwen3-8B --output_dir out\n", "own.sh")
            .find("no training of") != std::string::npos);
}

TEST_CASE("Axolotl's sizes of shards make the machine", "[scenarios][sources]") {
  const std::string text = small_file + "dp_shard_size: 16\n";
  CHECK(value_at(translate(text), "cluster.nodes") == "2");
  CHECK(value_at(translate(small_file + "dp_shard_size: 2\ntensor_parallel_size: 2\n"),
                 "cluster.gpus_per_node") == "4");
  try {
    translate(text, {{"cluster.node", "h100-8"}, {"cluster.nodes", "1"}});
    FAIL("8 ranks are no 16");
  } catch (const UserError& error) {
    CHECK(error.problems().front().message.find("16 ranks are asked for, and the machine has 8") !=
          std::string::npos);
  }
}

TEST_CASE("keys within a block are known like others", "[scenarios][sources]") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      translate(small_file + text);
      return "";
    } catch (const UserError& error) {
      return fmt::format("{}: {}", error.problems().front().key, error.problems().front().message);
    }
  };
  CHECK(refusal("fsdp_config: {reshard_after_forwrd: false}\n") ==
        "fsdp_config.reshard_after_forwrd: unknown key (did you mean \"reshard_after_forward\"?)");
  CHECK(refusal("fsdp_config: {ofload_params: true}\n") ==
        "fsdp_config.ofload_params: unknown key (did you mean \"offload_params\"?)");
  CHECK(refusal("fsdp_config: {fsdp_offload_params: true, fsdp_use_orig_params: true}\n").empty());
  CHECK_THAT(refusal("fsdp_version: 3\nfsdp_config: {offload_params: true}\n"),
             Contains("FSDP has versions 1 and 2, found \"3\""));
  // What a block says stands in its line.
  const Translation own =
      translate(small_file + "fsdp_version: 2\nfsdp_config:\n  reshard_after_forward: false\n");
  const auto line_of = [&](std::string_view path) {
    return std::ranges::find(own.lines, path, &TranslatedLine::path)->line;
  };
  CHECK(line_of("strategy.zero") == 7);
  CHECK(line_of("strategy.fsdp.reshard_after_forward") == 8);
}

TEST_CASE("kernels of adapters that are not modelled say which way they move a step",
          "[scenarios][sources]") {
  const std::vector<std::string> kernels{"unsloth_lora_mlp", "unsloth_lora_qkv", "unsloth_lora_o"};
  std::string text = small_file + "adapter: lora\nlora_r: 8\nlora_target_linear: true\n";
  for (const std::string& key : kernels) text += key + ": true\n";
  const Translation own = translate(text);
  for (const std::string& key : kernels) {
    CAPTURE(key);
    const auto place = std::ranges::find(own.keys, key, &SourceKey::key);
    REQUIRE(place != own.keys.end());
    CHECK(place->fate == KeyFate::unmodelled);
    CHECK_THAT(place->remark, Contains("the real step is faster and needs less"));
  }
}

TEST_CASE("an Axolotl file says how adapters are made, and from which bits",
          "[scenarios][sources]") {
  const std::string adapted = small_file + "adapter: lora\nlora_r: 8\nlora_target_linear: true\n";
  const auto said = [&](const std::string& lines, std::string_view key) {
    return value_at(translate(adapted + lines), "strategy.lora." + std::string(key));
  };
  CHECK(said("lora_mlp_kernel: true\nlora_qkv_kernel: true\nlora_o_kernel: true\n", "kernels") ==
        "fused");
  CHECK(said("peft_use_dora: true\n", "method") == "dora");
  CHECK(said("peft_use_dora: false\n", "method").empty());
  CHECK(said("lora_dropout: 0.05\n", "dropout") == "0.05");
  CHECK(said("lora_dropout: 0\n", "dropout") == "0");
  CHECK(said("load_in_8bit: true\n", "quantised") == "int8");
  const std::string embeddings = "lora_modules_to_save: [embed_tokens, lm_head]\n";
  CHECK(said(embeddings, "train_embedding") == "true");
  CHECK(said(embeddings, "train_head") == "true");
}

TEST_CASE("a block of which few keys count has no others nearly like them",
          "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string accelerate = folder.file("accelerate.yaml"), script = folder.file("own.sh");
  std::ofstream(script) << "accelerate launch --config_file accelerate.yaml sft.py "
                           "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 1 "
                           "--learning_rate 1e-5\n";
  const auto refusal = [&](const std::string& key) -> std::string {
    std::ofstream(accelerate) << "distributed_type: FSDP\nnum_processes: 4\nfsdp_config:\n  "
                                 "fsdp_version: 2\n  "
                              << key << "\n";
    try {
      translate_source(data, script, {});
      return "";
    } catch (const UserError& error) {
      return error.problems().front().message;
    }
  };
  CHECK(refusal("fsdp_ofload_params: true") ==
        "unknown key (did you mean \"fsdp_offload_params\"?)");
  CHECK(refusal("fsdp_offload_params: true").empty());
  const Translation part =
      translate_source(data, script, std::vector<Setting>{{"cluster", "{node: a100-8}"}}).value();
  CHECK(value_at(part, "cluster.gpus_per_node") == "4");
}

TEST_CASE("a Python file that calls Unsloth says so", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("own.py");
  std::ofstream(file)
      << "model, t = FastLanguageModel.from_pretrained(model_name='Qwen/Qwen3-8B')\n"
         "model = FastLanguageModel.get_peft_model(model, r=16, "
         "use_gradient_checkpointing='unsloth')\n"
         "t = SFTTrainer(model=model, args=SFTConfig(max_steps=3))\n";
  const Translation read = translate_source(data, file, {}).value();
  CHECK(value_at(read, "strategy.offload.activations") == "cpu");
  const auto key = std::ranges::find(read.keys, "unsloth", &SourceKey::key);
  REQUIRE(key != read.keys.end());
  CHECK(key->fate == KeyFate::unmodelled);
  CHECK(key->line == 1);
}

TEST_CASE("a launcher's nodes are trays of a rack", "[scenarios][sources]") {
  const auto machine = [](const std::string& nodes, const char* node) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "torchrun --nproc_per_node 4 --nnodes " << nodes
                        << " sft.py --model_name_or_path Qwen/Qwen3-8B "
                           "--per_device_train_batch_size 1 --learning_rate 1e-5\n";
    const Translation read =
        translate_source(data, file,
                         std::vector<Setting>{{"cluster", fmt::format("{{node: {}}}", node)}})
            .value();
    return value_at(read, "cluster.nodes") + " x " + value_at(read, "cluster.gpus_per_node");
  };
  CHECK(machine("16", "gb200-72") == " x 64");  // of one rack
  CHECK(machine("18", "gb200-72") == " x ");    // all of it
  CHECK(machine("32", "gb200-72") == "2 x 64");
  CHECK(machine("1", "gb200-72") == " x 4");
  CHECK(machine("16", "gb200-4") == "16 x ");
  CHECK(machine("2", "h100-8") == "2 x 4");
}

TEST_CASE("programs of people's own have names of their own", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const auto of_script = [&](const std::string& text) {
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << text;
    return translate_source(data, file, {}).value();
  };
  const std::string head =
      "torchrun --nproc_per_node 4 train_mem.py --model_name_or_path "
      "lmsys/vicuna-7b-v1.5 --per_device_train_batch_size 2 ";
  const Translation own = of_script(head + "--model_max_length 4096 --data_pth x --optm adam\n");
  CHECK(value_at(own, "job.sequence") == "4096");
  // The trainer of transformers keeps activations and whole logits unless it is told otherwise.
  CHECK(value_at(own, "strategy.checkpointing") == "none");
  CHECK(value_at(own, "strategy.cross_entropy") == "logits");
  CHECK(std::ranges::any_of(own.notes, [](const std::string& note) {
    return note.find("optm: of the program's own, and not read (did you mean \"optim\"?)") == 0;
  }));
  const Translation adapters = of_script(head + "--lora_enable True --lora_r 8 --bits 4\n");
  CHECK(value_at(adapters, "strategy.lora.rank") == "8");
  CHECK(value_at(of_script(head + "--use_lora 1\n"), "strategy.lora.rank") == "16");
  // A parser of arguments hands them to the trainer.
  std::ofstream(folder.file("tune.py"))
      << "config, args = HfArgumentParser((A, SFTConfig)).parse_args_into_dataclasses()\n"
         "model = AutoModelForCausalLM.from_pretrained(config.model_name)\n"
         "trainer = SFTTrainer(model, args=args)\n";
  const Translation parsed = of_script(
      "torchrun --nproc-per-node 8 tune.py --model_name=Qwen/Qwen2.5-7B --block_size=8192 "
      "--per_device_train_batch_size=3\n");
  CHECK(value_at(parsed, "model") == "\"qwen2.5-7b\"");
  CHECK(value_at(parsed, "job.sequence") == "8192");
  CHECK(value_at(parsed, "job.micro_batch") == "3");
}

TEST_CASE("words of people's own turn adapters on", "[scenarios][sources]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("sft"));
  const auto of_script = [&](const std::string& arguments) {
    const std::string file = folder.file("sft/own.sh");
    std::ofstream(file) << "deepspeed --num_gpus 8 main.py --per_device_train_batch_size 2 "
                           "--model_name_or_path facebook/opt-1.3b "
                        << arguments << "\n";
    return translate_source(data, file, {}).value();
  };
  const Translation peft =
      of_script("--use_peft_lora True --use_4bit_quantization True --lora_r 4 --max_seq_len 512");
  CHECK(value_at(peft, "strategy.lora.rank") == "4");
  CHECK(value_at(peft, "strategy.lora.quantised") == "nf4_single");
  CHECK(value_at(peft, "job.sequence") == "512");
  const Translation ranked = of_script("--lora_r 4");
  CHECK(value_at(ranked, "strategy.lora.rank") == "4");
  CHECK(value_at(of_script("--lora_r 4 --use_lora False"), "strategy.lora.rank").empty());
  CHECK(value_at(of_script("--lora_r 4 --bits 4"), "strategy.lora.quantised") == "nf4");
  CHECK(std::ranges::any_of(ranked.assumptions,
                            [](const Assumption& each) { return each.what == "adapters"; }));
  // DeepSpeed-Chat makes DeepSpeed's settings out of two switches.
  const Translation chat =
      of_script("--deepspeed --zero_stage 3 --offload --lora_dim 128 --only_optimize_lora");
  CHECK(value_at(chat, "strategy.zero") == "3");
  CHECK(value_at(chat, "strategy.offload.optimizer") == "cpu");
  CHECK(value_at(chat, "strategy.offload.parameters") == "cpu");
  CHECK(value_at(chat, "strategy.lora.rank") == "128");
  CHECK(value_at(chat, "job.save.every").empty());
  std::ofstream(folder.file("sft/ds.json")) << "{\"zero_optimization\": {\"stage\": 2}}";
  CHECK(value_at(of_script("--deepspeed --deepspeed_config ds.json"), "strategy.deepspeed")
            .ends_with("ds.json\""));
  CHECK(value_at(of_script("--deepspeed"), "strategy.zero") == "0");
  const std::string below = "step2_reward_model_finetuning/scripts";
  std::filesystem::create_directories(folder.file(below));
  const std::string file = folder.file(below + "/run.sh");
  std::ofstream(file) << "deepspeed main.py --per_device_train_batch_size 2 --deepspeed "
                         "--model_name_or_path facebook/opt-1.3b\n";
  CHECK(value_at(translate_source(data, file, {}).value(), "job.method") == "reward");
}

TEST_CASE("a file of arguments that does not say how GPUs share says so", "[scenarios][sources]") {
  const auto assumed = [](const Translation& translation) {
    return std::ranges::any_of(translation.assumptions,
                               [](const Assumption& each) { return each.what == "sharding"; });
  };
  const std::string some = "model_name_or_path: Qwen/Qwen2.5-0.5B\noutput_dir: a\n";
  CHECK(assumed(translate(some, {{"cluster.node", "h100-8"}})));
  CHECK_FALSE(assumed(translate(some)));  // one GPU has nobody to share with
  CHECK_FALSE(assumed(translate(some + "fsdp: full_shard\n")));
}

TEST_CASE("matrices with adapters may be called as the model's own code calls them",
          "[scenarios][sources]") {
  const auto modules = [](const std::string& model, const std::string& names) {
    return value_at(
        translate("model_name_or_path: " + model +
                  "\noutput_dir: a\nuse_peft: true\nlora_target_modules: [" + names + "]\n"),
        "strategy.lora.modules");
  };
  CHECK(modules("EleutherAI/pythia-1b", "query_key_value") == "[qkv_proj]");
  CHECK(modules("facebook/opt-1.3b", "q_proj, fc2, out_proj") == "[q_proj, down_proj, o_proj]");
  CHECK(modules("Qwen/Qwen2.5-0.5B", "q_proj, dense, query_key_value") == "[q_proj]");
}

TEST_CASE("files of programs that are not read are called by their names", "[scenarios][sources]") {
  CHECK_THROWS_WITH(translate("pipe_parallel_size: 1\nzero_optimization: {stage: 1}\n"),
                    Contains("is a part of what gpt-neox reads, without the widths of the model"));
  CHECK_THROWS_WITH(translate("trainer: {a: 1}\ndata: {b: 1}\nmodel: {c: 1}\nrollout: {d: 1}\n"),
                    Contains("settings of rollouts alone, which train nothing"));
  CHECK_THROWS_WITH(translate("cluster: {n_nodes: 2}\nallocation_mode: sglang.d8+d8\n"
                              "actor: {path: a}\nrollout: {a: 1}\n"),
                    Contains("is a file of AReaL, which is not read; reinforcement by verl"));
}

TEST_CASE("keys of a config.json that change nothing may stand in a scenario",
          "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("own.yaml");
  std::ofstream(file)
      << "name: a\nmodel: {architectures: [LlamaForCausalLM], model_type: llama, rope_theta: 5e5,\n"
         "  hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 99,\n"
         "  intermediate_size: 128, max_position_embeddings: 4096, torch_dtype: bfloat16}\n"
         "cluster: {node: h100-8}\nstack: trl\njob: {method: sft, sequence: 64}\n"
         "strategy: {zero: 3}\n";
  CHECK(load_scenario(data, file).model.layers == 2);
}

TEST_CASE("Axolotl packs stacks of experts where it is told", "[scenarios][sources]") {
  const std::string text =
      "base_model: Qwen/Qwen3-30B-A3B\nsequence_len: 2048\nadapter: qlora\nload_in_4bit: true\n"
      "lora_target_linear: true\nlora_r: 8\n";
  CHECK(value_at(translate(text), "strategy.lora.quantised") == "nf4");
  CHECK(value_at(translate(text + "quantize_moe_experts: true\n"), "strategy.lora.quantised") ==
        "nf4_all");
}

TEST_CASE("scripts of ms-swift are read", "[scenarios][sources]") {
  const auto of_script = [](const std::string& text) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << text;
    return translate_source(data, file, {}).value();
  };
  const Translation lora = of_script(
      "nproc=4\nCUDA_VISIBLE_DEVICES=0,1,2,3 NPROC_PER_NODE=$nproc \\\nswift sft --model "
      "Qwen/Qwen2.5-7B-Instruct "
      "--dataset 'a#500' 'b#500' --lora_rank 16 --per_device_train_batch_size 2 "
      "--gradient_accumulation_steps $(expr 16 / $nproc) --max_length 4096 --deepspeed zero2\n");
  CHECK(value_at(lora, "cluster.gpus_per_node") == "4");
  CHECK(value_at(lora, "stack") == "ms-swift");
  CHECK(value_at(lora, "job.method") == "sft");
  CHECK(value_at(lora, "job.sequence") == "4096");
  CHECK(value_at(lora, "job.gradient_accumulation") == "4");
  CHECK(value_at(lora, "strategy.lora.rank") == "16");
  CHECK(value_at(lora, "strategy.checkpointing") == "full");
  CHECK_THAT(value_at(lora, "strategy.deepspeed"),
             Catch::Contains("ms-swift-deepspeed/zero2.json"));
  // Ulysses over what divides the four heads of keys and values, a ring over the rest.
  const Translation parts = of_script(
      "NPROC_PER_NODE=8 swift sft --model Qwen/Qwen2.5-7B-Instruct --train_type full "
      "--sequence_parallel_size 8 --dataset a\n");
  CHECK(value_at(parts, "strategy.sequence_parallel.ulysses") == "4");
  CHECK(value_at(parts, "strategy.sequence_parallel.ring") == "2");
  // One process, whose steps have sixteen rows unless it is told otherwise.
  const Translation pairs = of_script(
      "CUDA_VISIBLE_DEVICES=0,1 swift rlhf --rlhf_type dpo --model Qwen/Qwen2.5-7B-Instruct "
      "--train_type full --attn_impl flash_attn --gradient_checkpointing false\n");
  CHECK(value_at(pairs, "cluster.gpus_per_node") == "1");
  CHECK(value_at(pairs, "job.method") == "dpo");
  CHECK(value_at(pairs, "job.gradient_accumulation") == "16");
  CHECK(value_at(pairs, "strategy.attention") == "flash");
  CHECK(value_at(pairs, "strategy.checkpointing") == "none");
  CHECK(value_at(pairs, "strategy.lora.rank").empty());
  CHECK_THROWS_WITH(of_script("swift rlhf --rlhf_type gkd --model Qwen/Qwen2.5-7B-Instruct\n"),
                    Catch::Contains("rlhf_type: gkd is not read yet; expected dpo, orpo,"));
  // The same over Megatron, whose arguments have values there, and which divides by itself.
  const Translation stages = of_script(
      "NPROC_PER_NODE=8 megatron sft --model Qwen/Qwen3-30B-A3B --dataset a --sequence_parallel "
      "true "
      "--tensor_model_parallel_size 2 --expert_model_parallel_size 4 --max_length 8192 "
      "--packing true --recompute_granularity full --global_batch_size 32\n");
  const std::string grpo =
      "NPROC_PER_NODE=4 megatron rlhf --rlhf_type grpo --model Qwen/Qwen3-8B --max_length 2048 "
      "--tensor_model_parallel_size 2 --global_batch_size 32 --micro_batch_size 2 "
      "--num_generations 8 --max_completion_length 1024 --offload_model true --offload_optimizer "
      "true --sleep_level 2 ";
  const Translation here =
      of_script(grpo + "--steps_per_generation 4 --train_iters 10 --vllm_mode colocate\n");
  CHECK(value_at(here, "job.method") == "grpo");
  CHECK(value_at(here, "job.layout") == "colocated");
  CHECK(value_at(here, "job.num_unique_prompts_rollout") == "16");
  CHECK(value_at(here, "job.num_mini_batches") == "4");
  CHECK(value_at(here, "job.pack_rows") == "2");
  CHECK(value_at(here, "job.park_learners") == "true");
  CHECK(value_at(here, "job.load_ref_policy") == "true");
  CHECK(value_at(here, "job.total_episodes") == "320");
  CHECK(value_at(here, "job.optimizer_steps").empty());
  const Translation served = of_script(grpo + "--vllm_mode server --beta 0\n");
  CHECK(value_at(served, "job.layout") == "separate");
  CHECK(value_at(served, "job.learner_gpus") == "4");
  CHECK(value_at(served, "cluster.gpus_per_node") == "5");
  CHECK(value_at(served, "job.load_ref_policy") == "false");
  CHECK_THROWS_WITH(of_script(grpo + "--vllm_mode server --num_generations 7\n"),
                    Catch::Contains("32 answers of a step are no whole number of groups of 7"));
  CHECK(value_at(stages, "stack") == "megatron");
  CHECK(value_at(stages, "recipe") == "megatron-swift");
  CHECK(value_at(stages, "strategy.zero") == "1");
  CHECK(value_at(stages, "strategy.tensor_parallel.size") == "2");
  CHECK(value_at(stages, "strategy.tensor_parallel.sequence") == "true");
  CHECK(value_at(stages, "strategy.moe.expert_parallel") == "4");
  CHECK(value_at(stages, "strategy.moe.expert_tensor_parallel") == "1");
  CHECK(value_at(stages, "strategy.moe.kernel") == "grouped");
  CHECK(value_at(stages, "strategy.checkpointing") == "full");
  CHECK(value_at(stages, "job.sequence") == "8192");
  CHECK(value_at(stages, "job.packing") == "true");
  CHECK(value_at(stages, "job.micro_batch") == "1");
  CHECK(value_at(stages, "job.global_batch") == "32");
}

TEST_CASE("a model that nobody knows is stood in for by one of its size", "[scenarios][sources]") {
  const auto stand_in = [](const std::vector<std::string>& names) {
    const auto model = model_of_size(data, names);
    return model ? model->name : "";
  };
  CHECK(stand_in({"own/Crane-8B-dpo-v1.0"}) == "llama-3.1-8b");
  CHECK(stand_in({"own/Crane", "runs/034-crane-1.5b-sft.sh"}) == "qwen2.5-1.5b");
  CHECK(stand_in({"own/Crane-7B"}) ==
        "qwen2.5-7b");  // of those about as large it takes most tokens
  CHECK(stand_in({"own/Crane-30B-A3B"}).starts_with("qwen3-30b-a3b"));
  CHECK(stand_in({"own/Crane-8x7B"}) == "mixtral-8x7b");
  CHECK(stand_in({"own/Crane-2.0"}).empty());
  CHECK(stand_in({"own/Crane-900B"}).empty());
}

TEST_CASE("a machine is told by a name", "[scenarios][sources]") {
  const auto eight = machine_in_name(data, "094-qwen3-30b.axolotl.8xMI300.yaml");
  REQUIRE(eight);
  CHECK(eight->words == "8xMI300");
  CHECK(eight->node == "mi300x-8");
  CHECK(eight->whole);
  const auto one = machine_in_name(data, "llama.1xH100.yaml");
  REQUIRE(one);
  CHECK(one->gpus == 1);
  CHECK(one->node == "h100-1");
  const auto many = machine_in_name(data, "run-16xh100.yaml");
  REQUIRE(many);
  CHECK(many->node == "h100-8");
  CHECK(many->nodes == 2);
  CHECK(machine_in_name(data, "sft.8x9999.yaml")->node.empty());
  CHECK_FALSE(machine_in_name(data, "mixtral-8x7b-sft.yaml"));
  CHECK_FALSE(machine_in_name(data, "sft.yaml"));
  CHECK(gpu_in_name(data, "grpo_32_h20_fsdp.sh", 32)->node == "h20-8");
  CHECK_FALSE(gpu_in_name(data, "run_v2_a3b.sh", 8));
}

TEST_CASE("a model is told by a name", "[scenarios][sources]") {
  CHECK(model_of("Qwen/Qwen3-30B-A3B-Instruct-2507") == "qwen3-30b-a3b-instruct-2507");
  CHECK(model_of("meta-llama/Llama-3.2-1B-Instruct") == "llama-3.2-1b");
  CHECK(model_of("/data/outputs/149-unphi4-14b-sft2.1") == "phi-4");
  CHECK(model_of("shisa-ai/161-qwen3-8b-v2.1-sft") == "qwen3-8b");
  CHECK(model_of("microsoft/Phi-4-mini-instruct") == "phi-4-mini");
  CHECK(model_of("zai-org/GLM-4.5V") == "glm-4.5v");
  CHECK(model_of("zai-org/GLM-4.4V").empty());
  CHECK(model_of("LiquidAI/LFM2-1.2B") == "lfm2-1.2b");
  CHECK(model_of("shisa-ai/133-lfm2-1.2b-v2.1-sft-5e-5") == "lfm2-1.2b");
  CHECK(model_of("tokyotech-llm/Swallow-MX-8x7b-NVE-v0.1") == "mixtral-8x7b");
  CHECK(model_of("google/gemma-7b-it") == "gemma-7b");
  CHECK(model_of("google/gemma-4-26b-a4b").empty());
}

TEST_CASE("a folder is known by the file that wrote it", "[scenarios][sources]") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("a.yaml")) << "base_model: Qwen/Qwen3-4B\noutput_dir: /out/first\n";
  std::ofstream(folder.file("b.yaml")) << "base_model: /out/first\noutput_dir: './second' # here\n";
  const auto model = find_named_model(data, "/out/second/checkpoint-12", folder.file("c.yaml"));
  REQUIRE(model);
  CHECK(model->name == "qwen3-4b");
  CHECK(model->files.size() == 2);
}

TEST_CASE("keys of an Axolotl file become keys of a scenario", "[scenarios][sources]") {
  const Translation plain = translate(small_file);
  CHECK(value_at(plain, "job.sequence") == "2048");
  CHECK(value_at(plain, "strategy.zero") == "0");
  CHECK(value_at(plain, "strategy.master_weights") == "false");
  CHECK(value_at(plain, "strategy.checkpointing") == "none");
  CHECK(value_at(plain, "strategy.optimizer") == "adamw_torch_8bit");
  CHECK(value_at(plain, "strategy.attention") == "sdpa_efficient");
  for (const auto& [theirs, ours] :
       {std::pair{"sgd", "sgd"}, std::pair{"paged_lion_8bit", "lion_8bit"},
        std::pair{"lion_pytorch", "lion"}, std::pair{"adafactor", "adafactor"},
        std::pair{"muon", "muon"}}) {
    std::string text = small_file;
    text.replace(text.find("adamw_torch_8bit"), std::string("adamw_torch_8bit").size(), theirs);
    CHECK(value_at(translate(text), "strategy.optimizer") == ours);
  }
  CHECK(value_at(plain, "stack") == "axolotl");
  const Translation lora = translate(small_file +
                                     "adapter: qlora\nlora_r: 32\nload_in_4bit: true\n"
                                     "lora_target_linear: true\nflash_attention: true\n"
                                     "cut_cross_entropy: true\ngradient_checkpointing: offload\n");
  CHECK(value_at(lora, "strategy.lora.rank") == "32");
  CHECK(value_at(lora, "strategy.lora.targets") == "linear");
  CHECK(value_at(lora, "strategy.lora.quantised") == "nf4");
  CHECK(value_at(lora, "strategy.cross_entropy") == "fused");
  CHECK(value_at(lora, "strategy.offload.activations") == "cpu");
  const Translation sharded =
      translate(small_file +
                "fsdp: [full_shard, auto_wrap]\nfsdp_config:\n  fsdp_version: 2\n"
                "  fsdp_activation_checkpointing: true\n  fsdp_reshard_after_forward: false\n");
  CHECK(value_at(sharded, "strategy.zero") == "fsdp");
  CHECK(value_at(sharded, "strategy.fsdp.version") == "2");
  CHECK(value_at(sharded, "strategy.fsdp.reshard_after_forward") == "false");
  CHECK(value_at(sharded, "strategy.checkpointing") == "full");
}

TEST_CASE("a plugin of Axolotl that is named is on", "[scenarios][sources]") {
  const std::string plugin =
      "plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n";
  const auto loss = [](const Translation& translation) {
    return value_at(translation, "strategy.cross_entropy");
  };
  CHECK(loss(translate(small_file)) == "logits");
  CHECK(loss(translate(small_file + plugin)) == "fused");
  CHECK(loss(translate(small_file + plugin + "cut_cross_entropy: false\n")) == "logits");
  const Translation mixed =
      translate(small_file + "plugins: [axolotl.integrations.densemixer.DenseMixerPlugin]\n");
  const auto plugins = std::find_if(mixed.keys.begin(), mixed.keys.end(),
                                    [](const SourceKey& each) { return each.key == "plugins"; });
  REQUIRE(plugins != mixed.keys.end());
  CHECK(plugins->fate == KeyFate::unmodelled);
}

TEST_CASE("FSDP's offload takes all to the host, where PyTorch's own optimizer updates it",
          "[scenarios][sources]") {
  const std::string sharded = "fsdp_config: {fsdp_version: 2, offload_params: ";
  for (const bool said : {true, false}) {
    const Translation translation = translate(
        small_file + sharded + (said ? "true" : "false") + "}\n", {{"optimizer", "adamw_torch"}});
    CAPTURE(said);
    CHECK(value_at(translation, "strategy.offload.parameters") == (said ? "cpu" : ""));
    CHECK(value_at(translation, "strategy.offload.optimizer") == (said ? "cpu" : ""));
    CHECK(value_at(translation, "strategy.offload.cpu_adam") == (said ? "operators" : ""));
  }
}

TEST_CASE("what is set and read by nobody is a mistake", "[scenarios][sources]") {
  const auto message = [](const std::vector<Setting>& settings) -> std::string {
    try {
      translate(small_file, settings);
    } catch (const UserError& error) {
      return error.what();
    }
    return "";
  };
  CHECK(message({{"foo", "bar"}}) == "--set: foo: no key of Axolotl, nor of a scenario");
  CHECK(message({{"method", "dpo"}}) ==
        "--set: method: no key of Axolotl, nor of a scenario (did you mean \"job.method\"?)");
  CHECK(message({{"micro_batch_size", "1"}}).empty());
}

TEST_CASE("without sharding several GPUs have PyTorch's buckets, and one has none",
          "[scenarios][sources]") {
  const auto bucket = [](const std::vector<Setting>& settings) {
    return value_at(translate(small_file, settings),
                    "strategy.zero_optimization.reduce_bucket_size");
  };
  CHECK(bucket({{"cluster.node", "h100-8"}}) == "13107200");
  CHECK(bucket({{"cluster.node", "gh200-1"}}).empty());
  CHECK(bucket({}).empty());
}

TEST_CASE("LLaMA-Factory's training by Megatron is refused", "[scenarios][sources]") {
  CHECK_THROWS_WITH(
      translate("model_name_or_path: Qwen/Qwen3-8B\nstage: sft\nfinetuning_type: full\n"
                "tensor_model_parallel_size: 2\n"),
      Catch::EndsWith(
          ":4: tensor_model_parallel_size: training by Megatron through mcore_adapter (USE_MCA=1) "
          "is not read; a script of Megatron-LM or a file of Megatron-Bridge is"));
}

TEST_CASE("pairs have a reference where their method has one", "[scenarios][sources]") {
  CHECK(value_at(translate(small_file + "rl: dpo\n"), "job.reference_model") == "true");
  CHECK(value_at(translate(small_file + "rl: dpo\nprecompute_ref_log_probs: true\n"),
                 "job.reference_model") == "false");
  CHECK(value_at(translate(small_file + "rl: orpo\n"), "job.reference_model") == "false");
}

TEST_CASE("arguments of TRL are of the trainer that alone has them", "[scenarios][sources]") {
  const std::string rows =
      "model_name_or_path: meta-llama/Llama-3.2-1B-Instruct\nlearning_rate: 1e-5\n"
      "per_device_train_batch_size: 2\n";
  const auto method = [&](const std::string& more, const std::vector<Setting>& settings = {}) {
    const Translation translation = translate(rows + more, settings);
    const auto assumed =
        std::find_if(translation.assumptions.begin(), translation.assumptions.end(),
                     [](const Assumption& each) { return each.what == "method"; });
    const std::string why = assumed == translation.assumptions.end() ? "" : ": " + assumed->why;
    return value_at(translation, "job.method") + why;
  };
  const std::string other = "; the file does not name it";
  CHECK(method("") == "sft: the file does not say, and has no key of another trainer");
  CHECK(method("beta: 0.1\n") == "dpo: by its key beta" + other);
  CHECK(method("beta: 0.1\nmax_prompt_length: 64\n") ==
        "dpo: by its key max_prompt_length" + other);
  CHECK(method("loss_type: apo_zero\n") == "dpo: by its key loss_type" + other);
  CHECK(method("beta: 0.1\ndesirable_weight: 2\n") == "kto: by its key desirable_weight" + other);
  CHECK(method("packing: true\n") == "sft: by its key packing" + other);
  CHECK(method("beta: 0.1\nnum_generations: 4\nuse_vllm: true\n") ==
        "grpo: by its key num_generations" + other);
  CHECK(method("loss_type: dr_grpo\nuse_vllm: true\n") == "grpo: by its key use_vllm" + other);
  CHECK(method("beta: 0.1\n", {{"job.method", "sft"}}) == "sft");
  CHECK(value_at(translate(rows + "beta: 0.1\n"), "job.reference_model") == "true");
  CHECK(value_at(translate(rows + "cpo_alpha: 0.1\n"), "job.reference_model") == "false");
  CHECK(method("normalize_advantages: true\n") == "grpo: by its key normalize_advantages" + other);
}

TEST_CASE("how layers are computed again is read where it is said", "[scenarios][sources]") {
  const auto reentrant = [](const std::string& more) {
    return value_at(translate(small_file + "gradient_checkpointing: true\n" + more),
                    "strategy.reentrant");
  };
  const std::string block = "gradient_checkpointing_kwargs:\n  use_reentrant: ";
  CHECK(reentrant("").empty());
  CHECK(reentrant(block + "true\n") == "true");
  CHECK(reentrant(block + "false\n") == "false");
  // As a command line has it; another key has another word.
  const std::string text = "gradient_checkpointing_kwargs: '{\"use_reentrant\": ";
  CHECK(reentrant(text + "true, \"preserve_rng_state\": false}'\n") == "true");
  CHECK(reentrant(text + "false, \"preserve_rng_state\": true}'\n") == "false");
  CHECK_THROWS_WITH(reentrant(block + "maybe\n"),
                    Catch::Contains("use_reentrant: expected true or false, found \"maybe\""));
  // Nothing is computed again.
  CHECK(value_at(translate(small_file + block + "true\n"), "strategy.reentrant").empty());
}

TEST_CASE("what is set is not assumed", "[scenarios][sources]") {
  const Translation set = translate(small_file, {{"cluster", "{node: mi300x-8}"},
                                                 {"model", "llama-3.2-3b"},
                                                 {"job.fill", "1"},
                                                 {"job.tokens", "1e9"}});
  CHECK(set.assumptions.empty());
  CHECK(value_at(set, "stack") == "axolotl-rocm");
  CHECK(value_at(set, "model").empty());
}

TEST_CASE("every key of the lists stands in one of them", "[scenarios][sources]") {
  const Document facts =
      read_document(data.file("scenarios/foreign/programs/axolotl/axolotl.yaml"));
  const Table root = facts.root();
  std::vector<std::string> all = root.texts("used");
  for (const std::string& key : root.texts("changes_nothing")) all.push_back(key);
  for (const std::string& key : root.table("not_modelled").keys()) all.push_back(key);
  std::sort(all.begin(), all.end());
  CHECK(std::adjacent_find(all.begin(), all.end()) == all.end());
}

}  // namespace stepsim
