// Programs of papers and models that a script starts, and that lie nowhere near; names of models
// that were trained from others.
#include <fmt/format.h>

#include "scenarios/foreign/table/named_models.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/repository.hpp"

namespace stepsim {
namespace {

Translation script(const std::string& command) {
  const Repository own;
  own.with("run.sh", command + "\n");
  return own.read("run.sh");
}

std::string of(const Translation& read, std::string_view key) {
  return value_at(read, key);
}

}  // namespace

TEST_CASE("QLoRA's program cuts rows at the sum of both lengths and packs in 4 bits by itself",
          "[scenarios][sources]") {
  const std::string start = "python qlora.py --model_name_or_path huggyllama/llama-7b --bf16 ";
  const auto plain = script(start + "--dataset_format alpaca --source_max_len 100");
  CHECK(of(plain, "job.sequence") == "356");
  CHECK(of(plain, "strategy.lora.quantised") == "nf4");
  CHECK(of(plain, "strategy.lora.rank") == "64");
  CHECK(of(plain, "job.gradient_accumulation") == "16");
  CHECK(of(plain, "releases.transformers") == "4.31");
  const auto told = script(start + "--source_max_len 16 --target_max_len 512 --lora_r 8 --bits 8");
  CHECK(of(told, "job.sequence") == "528");
  CHECK(of(told, "strategy.lora.rank") == "8");
  CHECK(of(told, "strategy.lora.quantised") == "int8");
}

TEST_CASE("Alpaca-LoRA's rows of a step are shared by all GPUs and learned in micro-batches",
          "[scenarios][sources]") {
  const std::string end =
      " finetune.py --base_model huggyllama/llama-7b --batch_size 128 "
      "--micro_batch_size 4 --cutoff_len 300";
  const auto one = script("python" + end), four = script("torchrun --nproc_per_node 4" + end);
  CHECK(of(one, "job.gradient_accumulation") == "32");
  CHECK(of(four, "job.gradient_accumulation") == "8");
  CHECK(of(four, "job.micro_batch") == "4");
  CHECK(of(four, "job.sequence") == "300");
  CHECK(of(four, "model") == "\"llama-7b\"");
}

TEST_CASE("a known program has adapters where it is told so, by whichever name",
          "[scenarios][sources]") {
  const std::string llava =
      "deepspeed llava/train/train_mem.py --model_name_or_path "
      "lmsys/vicuna-7b-v1.5 --bf16 True ";
  CHECK(of(script(llava), "strategy.lora.rank").empty());
  const auto adapted = script(llava + "--lora_enable True");
  CHECK(of(adapted, "strategy.lora.rank") == "64");
  CHECK(of(adapted, "strategy.attention") == "flash");
  const std::string fast = "torchrun --nproc_per_node 2 fastchat/train/";
  const std::string model = " --model_name_or_path lmsys/vicuna-7b-v1.5 --bf16 True";
  CHECK(of(script(fast + "train_lora.py" + model), "strategy.lora.rank") == "8");
  CHECK(of(script(fast + "train.py" + model), "strategy.lora.rank").empty());
  CHECK(of(script(fast + "train.py" + model), "strategy.attention") == "eager");
  CHECK(of(script(fast + "train_mem.py" + model), "strategy.attention") == "flash");
}

TEST_CASE("Qwen's program trains embedding and head of a base model beside adapters",
          "[scenarios][sources]") {
  const auto trains = [](const std::string& model, const std::string& more) {
    return of(script("python finetune.py --use_lora --model_name_or_path Qwen/" + model + more),
              "strategy.lora.train_head");
  };
  CHECK(trains("Qwen-7B", "") == "true");
  CHECK(trains("Qwen-7B-Chat", "").empty());
  CHECK(trains("Qwen-7B", " --q_lora").empty());
}

TEST_CASE("Meta's recipes shard where they are told so and pack unless they pad",
          "[scenarios][sources]") {
  const std::string start =
      "torchrun --nproc_per_node 4 finetuning.py --model_name "
      "meta-llama/Meta-Llama-3-8B --batch_size_training 2 ";
  const auto sharded = script(start + "--enable_fsdp --use_peft --lora_config.r 4");
  CHECK(of(sharded, "strategy.zero") == "fsdp");
  CHECK(of(sharded, "strategy.checkpointing") == "full");
  CHECK(of(sharded, "job.packing") == "true");
  CHECK(of(sharded, "strategy.lora.rank") == "4");
  CHECK(of(sharded, "stack") == "llama-recipes");
  const auto padded = script(start + "--batching_strategy padding --quantization 4bit --use_peft");
  CHECK(of(padded, "job.packing") == "false");
  CHECK(of(padded, "strategy.zero") != "fsdp");
  CHECK(of(padded, "strategy.lora.quantised") == "nf4");
}

TEST_CASE("a program of a known name that is here is asked itself", "[scenarios][sources]") {
  const Repository own;
  own.with("run.sh", "python qlora.py --source_max_len 100 --dataset_format alpaca\n");
  own.with("qlora.py",
           "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-7B')\n"
           "t = Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=3))\n");
  const Translation read = own.read("run.sh");
  CHECK(value_at(read, "job.micro_batch") == "3");
  CHECK(value_at(read, "strategy.lora.rank").empty());
}

TEST_CASE("models under another name have the widths of those they were trained from",
          "[scenarios][sources]") {
  const auto named = [&](const std::string& name) {
    const auto found = find_named_model(data, name, "x.yaml");
    return found ? found->name : std::string();
  };
  CHECK(named("lmsys/vicuna-7b-v1.1") == "llama-2-7b");
  CHECK(named("TheBloke/guanaco-33B-HF") == "llama-30b");
  CHECK(named("WizardLM/WizardCoder-15B-V1.0") == "starcoder-15b");
  CHECK(named("WizardLM/WizardCoder-33B-V1.1") == "deepseek-coder-33b");
  CHECK(named("berkeley-nest/Starling-LM-7B-alpha") == "mistral-7b");
  CHECK(named("simplescaling/s1-32B") == "qwen2.5-32b");
  CHECK(named("nobody/vicuna-3b").empty());    // no size of that family
  CHECK(named("nobody/models1-32b").empty());  // a short word within another
}

}  // namespace stepsim
