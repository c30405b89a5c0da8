// Trainings with a head of labels, as files of other programs ask for them.
#include <fstream>

#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {
namespace {

Translation headed_file(const char* name, const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder.file(name);
  std::ofstream(file) << text;
  return translate_source(data, file, {}).value();
}

}  // namespace

TEST_CASE("reward models of each program have a head of one number", "[scenarios][heads]") {
  const Translation axolotl = translate(
      "base_model: meta-llama/Llama-3.2-1B\nreward_model: true\nsequence_len: 2048\n"
      "micro_batch_size: 2\n");
  CHECK(value_at(axolotl, "job.method") == "reward");
  CHECK(value_at(axolotl, "strategy.cross_entropy").empty());
  CHECK(value_at(axolotl, "job.packing") == "false");
  const Translation steps = translate(
      "base_model: meta-llama/Llama-3.2-1B\nprocess_reward_model: true\nnum_labels: 2\n"
      "sequence_len: 2048\nmicro_batch_size: 2\n");
  CHECK(value_at(steps, "job.method") == "classify_tokens");
  CHECK(value_at(steps, "job.labels") == "2");
  const Translation factory = translate(
      "model_name_or_path: meta-llama/Llama-3.2-1B\nstage: rm\ncutoff_len: 1024\n"
      "finetuning_type: lora\n");
  CHECK(value_at(factory, "job.method") == "reward");
  CHECK(value_at(factory, "job.word_head") == "true");
  CHECK(value_at(factory, "job.label_bias") == "true");
  const Translation open = headed_file(
      "own.sh", "deepspeed --module openrlhf.cli.train_rm --pretrain meta-llama/Llama-3.2-1B\n");
  CHECK(value_at(open, "job.method") == "reward");
  CHECK(value_at(open, "job.reference_model").empty());
  const Translation swift =
      headed_file("own.sh", "swift rlhf --rlhf_type rm --model meta-llama/Llama-3.2-1B\n");
  CHECK(value_at(swift, "job.method") == "reward");
  const Translation classes = headed_file(
      "own.sh", "swift sft --task_type seq_cls --num_labels 5 --model meta-llama/Llama-3.2-1B\n");
  CHECK(value_at(classes, "job.method") == "classify");
  CHECK(value_at(classes, "job.labels") == "5");
}

TEST_CASE("the class of a model in Python says what its head is for", "[scenarios][heads]") {
  const auto script = [](const std::string& head, const std::string& trainer) {
    return headed_file("own.py",
                       "model = " + head + ".from_pretrained('meta-llama/Llama-3.2-1B', " +
                           "num_labels=4, torch_dtype=torch.bfloat16)\ntrainer = " + trainer +
                           "\ntrainer.train()\n");
  };
  const std::string plain = "Trainer(model=model, args=TrainingArguments(bf16=True))";
  const Translation texts = script("AutoModelForSequenceClassification", plain);
  CHECK(value_at(texts, "job.method") == "classify");
  CHECK(value_at(texts, "job.labels") == "4");
  const Translation tokens = script("LlamaForTokenClassification", plain);
  CHECK(value_at(tokens, "job.method") == "classify_tokens");
  const Translation reward = script("AutoModelForSequenceClassification",
                                    "RewardTrainer(model=model, args=RewardConfig(bf16=True))");
  CHECK(value_at(reward, "job.method") == "reward");
  CHECK(value_at(script("AutoModelForTokenClassification",
                        "PRMTrainer(model=model, args=PRMConfig(bf16=True))"),
                 "job.method") == "classify_tokens");
  // What judges answers is not what is trained.
  const Translation policy = headed_file(
      "own.py",
      "judge = AutoModelForSequenceClassification.from_pretrained('own/judge')\n"
      "model = AutoModelForCausalLM.from_pretrained('meta-llama/Llama-3.2-1B')\n"
      "trainer = SFTTrainer(model=model, args=SFTConfig(bf16=True))\ntrainer.train()\n");
  CHECK(value_at(policy, "job.method") == "sft");
  CHECK(value_at(policy, "model").find("llama-3.2-1b") != std::string::npos);
}

}  // namespace stepsim
