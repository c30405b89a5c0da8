// In which type trainers keep what they train where nothing is sharded, and how many threads an
// update on the host has.
#include <fstream>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

using namespace stepsim;

namespace {

const Catalogue& data = source_data();

const std::string trl =
    "model_name_or_path: Qwen/Qwen2.5-7B\nmax_length: 1024\nper_device_train_batch_size: 1\n";

struct Said {
  std::string text, expected;
};

std::string value_of(std::string_view path, const std::string& name, const std::string& text) {
  const TemporaryFolder folder;
  std::ofstream(folder.file(name)) << text << "\n";
  std::ofstream(folder.file("host.json"))
      << R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})";
  const Translation read =
      translate_source(data, folder.file(name), std::vector<Setting>{{"cluster", "{node: h100-2}"}})
          .value();
  for (const auto& line : read.lines)
    if (line.path == path) return line.value;
  return "";
}

}  // namespace

TEST_CASE("TRL loads a frozen model in 32 bits unless it is told otherwise",
          "[scenarios][sources]") {
  for (const char* adapters : {"use_peft: true\n", "use_peft: true\nload_in_4bit: true\n"}) {
    CHECK(value_of("strategy.lora.frozen", "own.yaml", trl + adapters) == "fp32");
    CHECK(value_of("strategy.lora.frozen", "own.yaml", trl + adapters + "dtype: bfloat16") == "");
  }
}

TEST_CASE("what is trained on one GPU is kept as the trainer loads it", "[scenarios][sources]") {
  const std::string factory =
      "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ntemplate: qwen\ncutoff_len: 1024\n";
  const std::string axolotl =
      "base_model: Qwen/Qwen2.5-7B\nsequence_len: 1024\nmicro_batch_size: 1\n";
  for (const auto& [text, expected] :
       {Said{factory + "finetuning_type: full", "true"},
        Said{factory + "finetuning_type: full\npure_bf16: true", "false"},
        Said{factory + "finetuning_type: lora\nquantization_bit: 4", "true"}, Said{trl, "true"},
        Said{trl + "dtype: bfloat16", "false"}, Said{trl + "torch_dtype: auto", "false"},
        Said{trl + "use_peft: true\ndtype: bfloat16", "true"},
        Said{trl + "use_peft: true\nload_in_4bit: true", "false"}, Said{axolotl, "false"},
        Said{axolotl + "adapter: lora\nlora_r: 8", "true"},
        Said{axolotl + "adapter: lora\nlora_r: 8\npeft_autocast_adapter_dtype: false", "false"}}) {
    INFO(text);
    CHECK(value_of("strategy.master_weights", "own.yaml", text) == expected);
  }
}

TEST_CASE("threads of an update on the host are those that a launcher gives",
          "[scenarios][sources]") {
  const auto threads = [](const std::string& text) {
    return value_of("strategy.offload.threads", "own.sh", text);
  };
  const std::string launch = "accelerate launch --num_processes 2 --use_deepspeed ",
                    file = "--deepspeed_config_file host.json ",
                    program = "-m trl.scripts.sft --model_name_or_path Qwen/Qwen2.5-7B";
  CHECK(threads(launch + file + program).empty());  // one, as the stack has it
  CHECK(threads("export OMP_NUM_THREADS=12\n" + launch + file + program) == "12");
  CHECK(threads("OMP_NUM_THREADS=12 " + launch + file + "--num_cpu_threads_per_process 8 " +
                program) == "8");
  CHECK(threads("export OMP_NUM_THREADS=12\n" + launch + "--zero_stage 3 " + program).empty());
}

// What a stack does under a condition it does, too, where DeepSpeed's own file meets that.
TEST_CASE("a stack's conditions are met by DeepSpeed's file as by a key", "[scenarios]") {
  const TemporaryFolder folder;
  std::ofstream(folder.file("host.json"))
      << R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}})";
  std::ofstream(folder.file("gpu.json")) << R"({"zero_optimization": {"stage": 3}})";
  const auto threads = [&](const std::string& strategy, std::vector<Setting> settings = {}) {
    std::ofstream(folder.file("own.yaml"))
        << "name: n\nmodel: qwen2.5-7b\nstack: trl\ncluster: {node: h100-2}\n"
           "job: {sequence: 1024}\nstrategy: "
        << strategy << "\n";
    return load_scenario(data, folder.file("own.yaml"), settings).strategy.offload.threads;
  };
  const auto one = threads("{zero: 3, offload: {optimizer: cpu}}");
  CHECK(one == threads("{deepspeed: host.json}"));
  CHECK(one != threads("{deepspeed: gpu.json}"));
  CHECK(threads("{deepspeed: gpu.json}", {{"strategy.offload.optimizer", "cpu"}}) == one);
}
