// LitGPT and nanotron: files of their own and the commands that start them.
#include <string>

#include "tests/support/catch.hpp"
#include "tests/support/repository.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

Translation read_file(const std::string& name, const std::string& text) {
  const Repository own;
  own.with(name, text);
  return own.read(name);
}

const std::string nanotron =
    "model:\n  model_config: {is_llama_config: true, hidden_size: 3072, intermediate_size: 8192, "
    "num_attention_heads: 32, num_hidden_layers: 28, vocab_size: 131072, tie_word_embeddings: "
    "true}\noptimizer: {accumulate_grad_in_fp32: true, zero_stage: 1}\n"
    "tokens: {sequence_length: 4096, micro_batch_size: 2, batch_accumulation_per_replica: 8, "
    "train_steps: 10}\n";

}  // namespace

TEST_CASE("LitGPT's rows of a step are shared by its devices and learned in micro-batches",
          "[scenarios][sources]") {
  const auto read = [](const std::string& devices) {
    return read_file("own.yaml",
                     "checkpoint_dir: checkpoints/meta-llama/Llama-2-7b-hf\n"
                     "precision: bf16-true\ndevices: " +
                         devices +
                         "\ntrain: {global_batch_size: 64, micro_batch_size: 2, max_seq_length: "
                         "512}\n");
  };
  const Translation one = read("1"), four = read("4");
  CHECK(value_at(one, "job.gradient_accumulation") == "32");
  CHECK(value_at(four, "job.gradient_accumulation") == "8");
  CHECK(value_at(one, "strategy.zero") == "0");
  CHECK(value_at(four, "strategy.zero") == "fsdp");
  CHECK(value_at(one, "strategy.checkpointing") == "none");
  CHECK(value_at(four, "strategy.checkpointing") == "full");
  CHECK(value_at(four, "strategy.master_weights") == "false");
  CHECK(value_at(four, "stack") == "litgpt");
  CHECK(value_at(four, "model") == "\"llama-2-7b\"");
}

TEST_CASE("LitGPT's command says the model first, and adapts queries and values by itself",
          "[scenarios][sources]") {
  const auto read = [](const std::string& words) {
    return read_file("run.sh", "litgpt finetune" + words + "\n");
  };
  const Translation plain = read("_lora meta-llama/Llama-3.2-1B --precision bf16-true");
  CHECK(value_at(plain, "model") == "\"llama-3.2-1b\"");
  CHECK(value_at(plain, "strategy.lora.rank") == "8");
  CHECK(value_at(plain, "strategy.lora.modules") == "[q_proj, v_proj]");
  const Translation told = read(
      " lora --checkpoint_dir x/Llama-2-7b-hf --quantize bnb.nf4-dq --lora_mlp true --lora_r 4");
  CHECK(value_at(told, "strategy.lora.rank") == "4");
  CHECK(value_at(told, "strategy.lora.quantised") == "nf4");
  CHECK_THAT(value_at(told, "strategy.lora.modules"), Contains("down_proj"));
  CHECK_THROWS_WITH(read("_adapter x/Llama-2-7b-hf"), Contains("LLaMA-Adapter is not modelled"));
}

TEST_CASE("an option of a command stands over one key of its file, and the others stay",
          "[scenarios][sources]") {
  const Repository own;
  own.with("own.yaml",
           "checkpoint_dir: x/Llama-2-7b-hf\ntrain: {global_batch_size: 64, micro_batch_size: 2, "
           "max_seq_length: 512}\n");
  own.with("run.sh", "litgpt finetune_full --config own.yaml --train.micro_batch_size 4\n");
  const Translation read = own.read("run.sh");
  CHECK(value_at(read, "job.micro_batch") == "4");
  CHECK(value_at(read, "job.sequence") == "512");
  CHECK(value_at(read, "job.gradient_accumulation") == "16");
}

TEST_CASE("nanotron deals layers out by their cost, of which the head has some",
          "[scenarios][sources]") {
  const auto layers = [](int stages) {
    return value_at(read_file("own.yaml", nanotron + "parallelism: {dp: 2, tp: 1, pp: " +
                                              std::to_string(stages) + ", pp_engine: 1f1b}\n"),
                    "strategy.pipeline_parallel.layers");
  };
  CHECK(layers(1).empty());
  CHECK(layers(2) == "[16, 12]");
  CHECK(layers(4) == "[8, 8, 8, 4]");
}

TEST_CASE("nanotron's degrees say how many GPUs there are", "[scenarios][sources]") {
  const Translation read =
      read_file("own.yaml", nanotron +
                                "parallelism: {dp: 4, tp: 2, pp: 2, tp_mode: "
                                "REDUCE_SCATTER, tp_linear_async_communication: true}\n");
  CHECK(value_at(read, "cluster.nodes") == "2");
  CHECK(value_at(read, "strategy.tensor_parallel.sequence") == "true");
  CHECK(value_at(read, "strategy.pipeline_parallel.schedule") == "gpipe");
  CHECK(value_at(read, "strategy.master_weights") == "true");
  CHECK(value_at(read, "strategy.zero") == "1");
  CHECK_THAT(value_at(read, "model"), Contains("num_key_value_heads: 32"));
}

TEST_CASE("a card alone comes as often as the file's degrees or groups ask for it",
          "[scenarios][sources]") {
  const Repository own;
  own.with("own.yaml", nanotron + "parallelism: {dp: 3, tp: 4, pp: 1}\n");
  const auto on = [&](const std::string& machine) {
    return own.read("own.yaml", {{"cluster", "{node: " + machine + "}"}});
  };
  CHECK(value_at(on("a100"), "cluster.nodes") == "2");
  CHECK(value_at(on("a100"), "cluster.gpus_per_node") == "6");
  CHECK(value_at(on("h100-8"), "cluster.nodes").empty());  // says itself how many it has
}

}  // namespace stepsim
