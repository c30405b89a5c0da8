// Models that see, encoders and diffusion, as files of other programs have them.
#include <fstream>

#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

Translation seen_file(const char* name, const std::string& text) {
  const TemporaryFolder folder;
  const std::string file = folder.file(name);
  std::ofstream(file) << text;
  return translate_source(data, file, {}).value();
}

Problem refusal_of_sight(const char* name, const std::string& text) {
  try {
    seen_file(name, text);
  } catch (const UserError& error) {
    return error.problems().front();
  }
  return {};
}

}  // namespace

TEST_CASE("images of a row are taken, and said", "[scenarios][towers]") {
  const std::string factory = "stage: sft\ncutoff_len: 2048\nfinetuning_type: full\n";
  const Translation qwen = translate("model_name_or_path: Qwen/Qwen2.5-VL-7B-Instruct\n" + factory +
                                     "image_max_pixels: 262144\nfreeze_vision_tower: false\n");
  CHECK(value_at(qwen, "job.images") == "1");
  CHECK_THAT(value_at(qwen, "job.pixels"), Contains("{value: 262144, low: 50176, high: 262144"));
  CHECK(value_at(qwen, "strategy.vision.train_tower") == "true");
  CHECK(value_at(qwen, "strategy.vision.train_projector").empty());
  const auto said = std::ranges::find(qwen.assumptions, "images of a row", &Assumption::what);
  REQUIRE(said != qwen.assumptions.end());
  CHECK(said->taken == "1 of 262144 pixels, 324 tokens");
  // Gemma 3 is trained on text as well: its name alone says nothing.
  const Translation gemma = translate("model_name_or_path: google/gemma-3-4b-it\n" + factory);
  CHECK(value_at(gemma, "job.images").empty());
  const Translation seeing =
      seen_file("own.py",
                "model = AutoModelForImageTextToText.from_pretrained('google/gemma-3-4b-it', "
                "torch_dtype=torch.bfloat16)\n"
                "trainer = SFTTrainer(model=model, args=SFTConfig(bf16=True))\ntrainer.train()\n");
  CHECK(value_at(seeing, "job.images") == "1");
  CHECK(value_at(seeing, "strategy.vision.train_tower") == "true");
  const Translation swift =
      seen_file("own.sh", "swift sft --model OpenGVLab/InternVL3-8B --freeze_aligner false\n");
  CHECK(value_at(swift, "job.images") == "1");
  CHECK(value_at(swift, "strategy.vision.train_tower").empty());
  CHECK(value_at(swift, "strategy.vision.train_projector") == "true");
}

TEST_CASE("a tower that is not modelled stays loud", "[scenarios][towers]") {
  const Translation pixtral = translate(
      "model_name_or_path: llava-hf/llava-v1.6-mistral-7b-hf\nstage: sft\ncutoff_len: 2048\n"
      "finetuning_type: full\nimage_max_pixels: 262144\n");
  CHECK(value_at(pixtral, "job.images").empty());
  const auto key = std::ranges::find(pixtral.keys, "image_max_pixels", &SourceKey::key);
  REQUIRE(key != pixtral.keys.end());
  CHECK(key->fate == KeyFate::unmodelled);
  CHECK_THAT(key->remark, Contains("the real step is slower, 1.3 to 2 times"));
}

TEST_CASE("encoders are trained as their programs do", "[scenarios][encoders]") {
  const Translation masked = seen_file(
      "own.py",
      "model = AutoModelForMaskedLM.from_pretrained('FacebookAI/roberta-base')\n"
      "trainer = Trainer(model=model, args=TrainingArguments(per_device_train_batch_size=32, "
      "fp16=True))\ntrainer.train()\n");
  CHECK(value_at(masked, "job.method") == "mlm");
  CHECK(value_at(masked, "job.sequence") == "512");
  CHECK(value_at(masked, "job.micro_batch") == "32");
  const Translation compared = seen_file(
      "own.py",
      "model = SentenceTransformer('BAAI/bge-base-en-v1.5')\n"
      "loss = losses.CachedMultipleNegativesRankingLoss(model, mini_batch_size=16)\n"
      "args = SentenceTransformerTrainingArguments(per_device_train_batch_size=128, bf16=True)\n"
      "trainer = SentenceTransformerTrainer(model=model, args=args, loss=loss)\n"
      "trainer.train()\n");
  CHECK(value_at(compared, "job.method") == "embed");
  CHECK(value_at(compared, "model").find("bge-base-en") != std::string::npos);
  CHECK(value_at(compared, "job.cached_loss") == "true");
  CHECK(value_at(compared, "job.micro_batch") == "16");
  CHECK(value_at(compared, "job.gradient_accumulation") == "8");
  CHECK(value_at(compared, "job.texts") == "2");
  const Translation crossed =
      seen_file("own.py",
                "model = CrossEncoder('microsoft/deberta-v3-base')\n"
                "args = CrossEncoderTrainingArguments(per_device_train_batch_size=64, bf16=True)\n"
                "trainer = CrossEncoderTrainer(model=model, args=args, train_dataset=rows)\n"
                "trainer.train()\n");
  CHECK(value_at(crossed, "job.method") == "classify");
  CHECK(value_at(crossed, "job.labels") == "1");
  CHECK_THAT(refusal_of_sight(
                 "own.py",
                 "model = SentenceTransformer('BAAI/bge-base-en-v1.5')\n"
                 "loss = CachedMultipleNegativesRankingLoss(model, mini_batch_size=24)\n"
                 "args = SentenceTransformerTrainingArguments(per_device_train_batch_size=64)\n"
                 "trainer = SentenceTransformerTrainer(model=model, args=args, loss=loss)\n"
                 "trainer.train()\n")
                 .message,
             Contains("24 does not divide the 64 rows of per_device_train_batch_size"));
}

TEST_CASE("diffusion is refused by name", "[scenarios][sources]") {
  const auto names = [](const char* file, const std::string& text, int line, const char* title) {
    const Problem problem = refusal_of_sight(file, text);
    CAPTURE(text, problem.message);
    CHECK(problem.line == line);
    CHECK_THAT(problem.message,
               Contains(std::string("tells of ") + title +
                        ": diffusion models are not modelled: a step of theirs has latents of "
                        "images or video"));
  };
  names("own.toml",
        "pretrained_model_name_or_path = \"black-forest-labs/FLUX.1-dev\"\nlearning_rate = 1e-4\n",
        1, "FLUX");
  names("own.sh", "accelerate launch sdxl_train_network.py --network_module=networks.lora\n", 1,
        "SDXL");
  names("own.py",
        "pipe = DiffusionPipeline.from_pretrained('THUDM/CogVideoX-5b')\n"
        "optimizer = AdamW(pipe.parameters())\nloss.backward()\n",
        1, "CogVideoX");
  names("own.sh",
        "accelerate launch train_dreambooth_lora_flux.py "
        "--pretrained_model_name_or_path=black-forest-labs/FLUX.1-dev\n",
        1, "FLUX");
}

}  // namespace stepsim
