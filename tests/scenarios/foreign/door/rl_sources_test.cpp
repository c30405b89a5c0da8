// Files of programs that train by reinforcement, translated.
#include <fmt/format.h>

#include <fstream>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/repository.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

}  // namespace

TEST_CASE("scripts of slime are read, with the files that they take in", "[scenarios][sources]") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("shape.sh"))
      << "SHAPE=(--num-layers 36 --hidden-size 2560 --ffn-hidden-size 9728 --num-attention-heads "
         "32 "
         "--group-query-attention --num-query-groups 8 --kv-channels 128 --qk-layernorm --swiglu\n"
         "  --normalization RMSNorm --position-embedding-type rope --disable-bias-linear\n"
         "  --vocab-size 151936)\n";
  const auto of_script = [&](const std::string& text) {
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "HERE=\"$(cd -- \"$(dirname -- \"${BASH_SOURCE[0]}\")\" &>/dev/null && "
                           "pwd)\"\nsource \"${HERE}/shape.sh\"\n"
                        << text;
    return translate_source(data, file, {}).value();
  };
  const std::string same =
      "ray job submit -- python3 train.py --actor-num-nodes 2 --actor-num-gpus-per-node 8 "
      "--colocate "
      "${SHAPE[@]} ${NONE[@]} --rollout-batch-size 32 --n-samples-per-prompt 8 --global-batch-size "
      "64 "
      "--rollout-max-response-len 8192 --rollout-max-prompt-len 2048 --tensor-model-parallel-size "
      "2 "
      "--sequence-parallel --context-parallel-size 2 --use-dynamic-batch-size --max-tokens-per-gpu "
      "9216 --use-kl-loss --recompute-granularity full --recompute-method uniform "
      "--recompute-num-layers 1 --rollout-num-gpus-per-engine 4 --sglang-mem-fraction-static 0.7";
  const Translation together = of_script(same + " --hf-checkpoint $MODELS/Qwen3-4B/\n");
  CHECK(value_at(together, "model") == "\"qwen3-4b\"");
  CHECK(value_at(together, "cluster.nodes") == "2");
  CHECK(value_at(together, "engine") == "sglang");
  CHECK(value_at(together, "job.layout") == "colocated");
  CHECK(value_at(together, "job.num_unique_prompts_rollout") == "32");
  CHECK(value_at(together, "job.num_samples_per_prompt_rollout") == "8");
  CHECK(value_at(together, "job.num_mini_batches") == "4");
  CHECK(value_at(together, "job.pack_length") == "18432");
  CHECK(value_at(together, "job.vllm_tensor_parallel_size") == "4");
  CHECK(value_at(together, "job.vllm_gpu_memory_utilization") == "0.7");
  CHECK(value_at(together, "job.swap_reference") == "true");
  CHECK(value_at(together, "strategy.tensor_parallel.size") == "2");
  CHECK(value_at(together, "strategy.sequence_parallel.ring") == "2");
  CHECK(value_at(together, "strategy.checkpointing") == "full");
  // A model that nobody knows by name is the one that Megatron's arguments describe.
  const Translation own = of_script(same + " --hf-checkpoint /models/nobody-knows\n");
  CHECK(value_at(own, "model").find("hidden_size: 2560") != std::string::npos);
  // Groups of their own, and answers that are begun before the learners are done.
  const Translation apart = of_script(
      "python train_async.py --actor-num-nodes 1 --actor-num-gpus-per-node 4 --rollout-num-gpus 4 "
      "--rollout-num-gpus-per-engine 2 --hf-checkpoint Qwen/Qwen3-4B --rollout-batch-size 32 "
      "--n-samples-per-prompt 8 --num-steps-per-rollout 1 --rollout-max-response-len 4096 "
      "--num-rollout 100\n");
  CHECK(value_at(apart, "job.layout") == "separate");
  CHECK(value_at(apart, "job.learner_gpus") == "4");
  CHECK(value_at(apart, "job.vllm_num_engines") == "2");
  CHECK(value_at(apart, "job.async_steps") == "1");
  CHECK(value_at(apart, "job.total_episodes") == "25600");
  CHECK(value_at(apart, "job.always_score") == "false");
}

TEST_CASE("micro-batches of OpenRLHF's reinforcement", "[scenarios][sources]") {
  const auto read = [](const std::string& more) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "python3 -m openrlhf.cli.train_ppo_ray --pretrain Qwen/Qwen2.5-7B "
                           "--colocate_all_models --actor_num_nodes 2 --actor_num_gpus_per_node 4 "
                           "--advantage_estimator group_norm --micro_train_batch_size 8 "
                           "--prompt_max_len 1024 --generate_max_len 3072 "
                        << more << "\n";
    return translate_source(data, file, std::vector<Setting>{{"cluster", "{node: h100-8}"}})
        .value();
  };
  const Translation packed = read("--packing_samples");
  CHECK(value_at(packed, "job.batching") == "shares");
  CHECK(value_at(packed, "job.pack_rows") == "8");
  CHECK(value_at(packed, "job.pack_length").empty());
  CHECK(value_at(packed, "cluster.nodes") == "2");
  CHECK(value_at(packed, "cluster.gpus_per_node") == "4");
  const Translation padded = read("");
  CHECK(value_at(padded, "job.batching") == "rows");
  CHECK(value_at(padded, "job.pack_length") == "32768");
  const Translation counted =
      read("--use_dynamic_batch --train_max_tokens_per_gpu 8192 --ring_attn_size 2");
  CHECK(value_at(counted, "job.pack_rows").empty());
  CHECK(value_at(counted, "job.pack_length") == "16384");
  CHECK(value_at(counted, "job.vllm_sleep_level") == "0");
  CHECK(value_at(read("--vllm_enable_sleep"), "job.vllm_sleep_level") == "1");
}

TEST_CASE("verl's generation trains nothing, and a fork's samples are counted",
          "[scenarios][sources]") {
  const TemporaryFolder folder;
  const auto of_script = [&](const std::string& program) {
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "python3 -m verl.trainer." << program
                        << " actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B data.n_samples=4 "
                           "data.train_batch_size=256 trainer.n_gpus_per_node=8\n";
    return translate_source(data, file, {}).value();
  };
  CHECK(value_at(of_script("main_ppo"), "job.num_samples_per_prompt_rollout") == "4");
  CHECK(value_at(of_script("main_ppo"), "job.vllm_sleep_level").empty());
  const Translation awake = of_script("main_ppo actor_rollout_ref.rollout.free_cache_engine=False");
  CHECK(value_at(awake, "job.vllm_sleep_level") == "0");
  CHECK_THROWS_WITH(of_script("main_generation"), Contains("is no training of"));
}

TEST_CASE("a script may write its DeepSpeed file itself", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("own.sh");
  const auto read = [&](const std::string& json) {
    std::ofstream(file) << "cat > ds.json <<EOF\n"
                        << json
                        << "\nEOF\nllamafactory-cli train --stage sft --finetuning_type full "
                           "--model_name_or_path Qwen/Qwen2.5-7B --deepspeed ds.json\n";
    return translate_source(data, file, {}).value();
  };
  const Translation whole = read(
      "{\"zero_optimization\": {\n  \"stage\": \"3\",  // all\n"
      "  \"offload_optimizer\": {\"device\": \"cpu\"}}}");
  CHECK(value_at(whole, "strategy.zero") == "3");
  CHECK(value_at(whole, "strategy.offload.optimizer") == "cpu");
  CHECK_THROWS_WITH(read("{\n\"zero_optimization\": [\n}"), Contains("own.sh:"));
}

TEST_CASE("engines of verl's releases run with CUDA graphs, or without", "[scenarios][sources]") {
  const TemporaryFolder folder;
  const std::string file = folder.file("own.sh");
  const auto eager = [&](const std::string& release, const std::string& more) {
    std::ofstream(file) << "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 "
                           "actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B "
                        << more << "\n";
    const std::vector<Setting> settings{{"releases.verl", release}};
    return value_at(translate_source(data, file, settings).value(), "job.vllm_enforce_eager");
  };
  CHECK(eager("0.5", "") == "true");
  CHECK(eager("0.6", "") == "false");
  CHECK(eager("0.5", "actor_rollout_ref.rollout.enforce_eager=False") == "false");
  std::ofstream(file) << "export VLLM_ATTENTION_BACKEND=XFORMERS\npython3 -m "
                         "verl.trainer.main_ppo trainer.n_gpus_per_node=8 "
                         "actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B\n";
  const Translation old = translate_source(data, file, {}).value();
  CHECK(value_at(old, "engine") == "vllm-v0");
  CHECK(value_at(old, "job.vllm_enforce_eager") == "true");
}

TEST_CASE("types and divided experts of verl's learners", "[scenarios][sources]") {
  const auto read = [](const std::string& more) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "python3 -m verl.trainer.main_ppo trainer.n_gpus_per_node=8 " << more
                        << "\n";
    return translate_source(data, file, {}).value();
  };
  const std::string dense = "actor_rollout_ref.model.path=Qwen/Qwen3-8B ",
                    type = "actor_rollout_ref.actor.fsdp_config.model_dtype=";
  CHECK(value_at(read(dense + type + "bfloat16"), "strategy.master_weights") == "false");
  CHECK(value_at(read(dense + type + "fp32"), "strategy.master_weights").empty());
  CHECK_THROWS_WITH(read(dense + type + "bf61"), Contains("expected fp32 or bf16, found \"bf61\""));
  const std::string actor = " actor_rollout_ref.actor.megatron.",
                    experts =
                        "actor_rollout_ref.model.path=Qwen/Qwen3-30B-A3B "
                        "actor_rollout_ref.actor.strategy=megatron" +
                        actor + "tensor_model_parallel_size=2" + actor +
                        "expert_model_parallel_size=4";
  constexpr std::string_view path = "strategy.moe.expert_tensor_parallel";
  CHECK(value_at(read(experts), path) == "2");
  CHECK(value_at(read(experts + actor + "expert_tensor_parallel_size=null"), path) == "2");
  CHECK(value_at(read(experts + actor + "expert_tensor_parallel_size=1"), path) == "1");
}

TEST_CASE("verl's rounds of prompts", "[scenarios][sources]") {
  const auto read = [](const std::string& program, const std::string& more,
                       const std::vector<Setting>& settings = {}) {
    const TemporaryFolder folder;
    const std::string file = folder.file("own.sh");
    std::ofstream(file) << "python3 -m " << program
                        << " actor_rollout_ref.model.path=Qwen/Qwen2.5-0.5B "
                           "trainer.n_gpus_per_node=8 data.train_batch_size=256 "
                           "data.gen_batch_size=768 "
                        << more << "\n";
    return translate_source(data, file, settings).value();
  };
  const std::string dapo = "recipe.dapo.main_dapo", filter = "algorithm.filter_groups.enable=True";
  const Translation rounds = read(dapo, filter);
  CHECK(value_at(rounds, "job.prompts_per_round") == "768");
  CHECK(value_at(rounds, "job.num_unique_prompts_rollout") == "256");
  CHECK_THAT(value_at(rounds, "job.zero_std_fraction"), Contains("low: 0, high: 0.7"));
  CHECK(std::ranges::count(rounds.assumptions, "groups without a signal", &Assumption::what) == 1);
  CHECK(value_at(read(dapo, filter, {{"job.zero_std_fraction", "0.1"}}), "job.zero_std_fraction")
            .empty());
  // Without a filter all that is generated is trained on.
  for (const Translation& all : {read(dapo, ""), read("verl.trainer.main_ppo", filter)}) {
    CHECK(value_at(all, "job.prompts_per_round").empty());
    CHECK(value_at(all, "job.num_unique_prompts_rollout") == "768");
  }
}

TEST_CASE("a NeMo-RL file may go on from nothing", "[scenarios][sources]") {
  const std::string own =
      "grpo: {num_prompts_per_step: 32}\npolicy: {model_name: Qwen/Qwen2.5-32B}\n";
  const auto prompts = [](const Translation& translation) {
    return value_at(translation, "job.num_unique_prompts_rollout");
  };
  CHECK(prompts(translate("defaults: []\n" + own)) == "32");
  const TemporaryFolder folder;
  std::ofstream(folder.file("base.yaml")) << "defaults: []\n" << own;
  const std::string file = folder.file("own.yaml");
  for (const char* base : {"base.yaml", "[base.yaml]"}) {
    std::ofstream(file) << "defaults: " << base << "\ngrpo: {num_prompts_per_step: 16}\n";
    CHECK(prompts(translate_source(data, file, {}).value()) == "16");
  }
}

TEST_CASE("NeMo-RL's rounds of prompts, and its experts", "[scenarios][sources]") {
  const auto read = [](const std::string& grpo, const std::string& megatron = "{}") {
    return translate(
        "cluster: {gpus_per_node: 8, num_nodes: 1}\npolicy:\n  model_name: Qwen/Qwen3-30B-A3B\n"
        "  megatron_cfg: " +
        megatron + "\ngrpo: {num_prompts_per_step: 32, " + grpo + "}\n");
  };
  const Translation rounds = read("use_dynamic_sampling: true, batch_multiplier: 1.5");
  CHECK(value_at(rounds, "job.prompts_per_round") == "48");
  CHECK(value_at(rounds, "job.num_unique_prompts_rollout") == "32");
  CHECK(value_at(read("use_dynamic_sampling: true"), "job.prompts_per_round") == "32");
  CHECK(value_at(read("use_dynamic_sampling: false"), "job.prompts_per_round").empty());
  CHECK_THROWS_WITH(read("batch_multiplier: 2"),
                    Contains("NeMo-RL refuses 2 without grpo.use_dynamic_sampling: true"));
  const auto experts = [&](const std::string& more) {
    return value_at(read("max_num_steps: 5",
                         "{enabled: true, tensor_model_parallel_size: 2, "
                         "expert_model_parallel_size: 4" +
                             more + "}"),
                    "strategy.moe.expert_tensor_parallel");
  };
  CHECK(experts("") == "1");
  CHECK(experts(", expert_tensor_parallel_size: 2") == "2");
  CHECK(experts(", expert_tensor_parallel_size: null") == "2");
}

TEST_CASE("verl's defaults are those of the release beside the script", "[scenarios][sources]") {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.file("verl/trainer/config"));
  std::filesystem::create_directories(folder.file("examples/ppo"));
  const auto of_script = [&] {
    const std::string file = folder.file("examples/ppo/own.sh");
    std::ofstream(file) << "python3 -m verl.trainer.main_ppo actor_rollout_ref.model.path="
                           "Qwen/Qwen2.5-7B data.train_batch_size=256 "
                           "actor_rollout_ref.actor.fsdp_config.grad_offload=False\n";
    return translate_source(data, file, {}).value();
  };
  CHECK(value_at(of_script(), "strategy.checkpointing") == "full");
  CHECK(value_at(of_script(), "job.load_ref_policy") == "false");
  std::ofstream(folder.file("verl/trainer/config/ppo_trainer.yaml"))
      << "data: {max_response_length: 333}\nactor_rollout_ref:\n  model: "
         "{enable_gradient_checkpointing: false}\n  actor: {ppo_epochs: 2}\n";
  const Translation old = of_script();
  CHECK(value_at(old, "strategy.checkpointing") == "none");
  CHECK(value_at(old, "job.response_length") == "333");
  CHECK(value_at(old, "job.num_epochs") == "2");
  CHECK(value_at(old, "job.load_ref_policy") == "true");  // such a release always has it
}

TEST_CASE("TRL generates by itself where nobody asks for an engine", "[scenarios][sources]") {
  const Repository own;
  const auto read = [&](const std::string& arguments, const std::string& release = "1.0",
                        const std::string& trainer = "GRPO") {
    own.with("a.py", "from trl import GRPOTrainer, GRPOConfig, RLOOTrainer, RLOOConfig\nt = " +
                         trainer + "Trainer(model='Qwen/Qwen2.5-1.5B', args=" + trainer +
                         "Config(per_device_train_batch_size=8, gradient_accumulation_steps=4, " +
                         arguments + "))\n");
    return own.read("a.py", {{"releases.trl", release}, {"cluster", "{node: h100-8}"}});
  };
  const Translation plain = read("num_generations=8");
  CHECK(value_at(plain, "engine") == "transformers");
  CHECK(value_at(plain, "job.layout") == "colocated");
  CHECK(value_at(plain, "job.num_unique_prompts_rollout") == "4");
  CHECK(value_at(plain, "job.batching") == "padded");
  CHECK(value_at(plain, "job.generate_calls").empty());
  CHECK(value_at(plain, "job.gather_whole_model") == "true");
  CHECK(value_at(plain, "job.load_ref_policy") == "false");
  CHECK(value_at(plain, "job.always_score").empty());
  CHECK(value_at(read("ds3_gather_for_generation=False"), "job.gather_whole_model") == "false");
  CHECK(value_at(read("use_transformers_paged=True"), "engine") == "transformers-paged");
  CHECK(value_at(read("use_vllm=True, vllm_mode='colocate'"), "engine").empty());
  CHECK(value_at(read("use_vllm=True, vllm_mode='colocate'"), "job.always_score") == "true");
  CHECK(value_at(read("num_iterations=2"), "job.always_score") == "true");
  // Four micro-batches of a step, and how many of them a call answers.
  CHECK(value_at(read("steps_per_generation=2"), "job.generate_calls") == "2");
  CHECK(value_at(read("steps_per_generation=2"), "job.num_unique_prompts_rollout") == "4");
  CHECK(value_at(read("steps_per_generation=8"), "job.num_mini_batches") == "2");
  CHECK(value_at(read("generation_batch_size=16"), "job.generate_calls") == "2");
  const Translation older = read("num_generations=8", "0.16.1");
  CHECK(value_at(older, "job.generate_calls") == "4");
  CHECK(value_at(older, "job.batching") == "rows");
  CHECK(value_at(older, "job.load_ref_policy") == "true");
  // Rows were prompts.
  const Translation first = read("num_generations=4", "0.14.0");
  CHECK(value_at(first, "job.num_unique_prompts_rollout") == "32");
  const Translation rloo = read("beta=0.05", "1.0", "RLOO");
  CHECK(value_at(rloo, "job.num_samples_per_prompt_rollout") == "2");
  CHECK(value_at(rloo, "job.always_score") == "true");
  CHECK(value_at(rloo, "job.load_ref_policy") == "true");
  own.with("warm.py",
           "from trl import GRPOTrainer, GRPOConfig, SFTTrainer, SFTConfig\n"
           "judge = SentenceTransformer('all-MiniLM-L6-v2')\n"
           "m, t = FastLanguageModel.from_pretrained('Qwen/Qwen2.5-3B', fast_inference=False)\n"
           "t = SFTTrainer(model=m, args=SFTConfig(per_device_train_batch_size=2))\nt.train()\n"
           "a = GRPOConfig(per_device_train_batch_size=4, num_generations=4)\n"
           "t = GRPOTrainer(model=m, args=a)\nt.train()\n");
  const Translation warm = own.read("warm.py");
  CHECK(value_at(warm, "model") == "\"qwen2.5-3b\"");
  CHECK(value_at(warm, "engine") == "unsloth");
  CHECK(value_at(warm, "job.num_samples_per_prompt_rollout") == "4");
  CHECK_THROWS_WITH(read("rloo_k=4", "0.21.0", "RLOO"), Contains("RLOO of TRL before 0.22"));
}

}  // namespace stepsim
