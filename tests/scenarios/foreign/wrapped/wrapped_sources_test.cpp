// Files that wrap a training: notebooks, jobs of clusters, records of runs. What is read of them,
// and on which machine.
#include <fmt/format.h>

#include <fstream>
#include <string>

#include "scenarios/foreign/door/sources.hpp"
#include "scenarios/foreign/table/named_machines.hpp"
#include "scenarios/foreign/text/code_cells.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/letters.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/translated.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

Translation read_as(const std::string& name, const std::string& text,
                    const std::vector<Setting>& settings = {}) {
  const TemporaryFolder folder;
  std::ofstream(folder.file(name)) << text;
  return translate_source(data, folder.file(name), settings).value();
}

std::string refusal_of(const std::string& name, const std::string& text,
                       const std::vector<Setting>& settings = {}) {
  try {
    read_as(name, text, settings);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

std::string why_machine(const Translation& translation) {
  for (const Assumption& each : translation.assumptions)
    if (each.what == "machine") return each.taken + "; " + each.why;
  return "";
}

// A notebook of these code cells.
std::string notebook(const std::vector<std::string>& cells, const std::string& metadata = "{}",
                     const std::string& output = "") {
  std::string text = R"({"cells": [{"cell_type": "markdown", "source": ["# Tuning"]})";
  for (const std::string& cell : cells) {
    std::string lines;
    for (const std::string_view line : lines_in(cell))
      lines += fmt::format("{}\"{}\\n\"", lines.empty() ? "" : ", ", json_escaped(line));
    text += fmt::format(
        R"(, {{"cell_type": "code", "execution_count": null, "source": [{}], "outputs": [{{"text": ["{}"]}}]}})",
        lines, output);
  }
  return text + fmt::format(R"(], "metadata": {}, "nbformat": 4}})", metadata);
}

const std::string loads =
    "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-0.5B', torch_dtype=torch.bfloat16)";
const std::string trains =
    "trainer = SFTTrainer(model=model, args=SFTConfig(\n"
    "    max_length=512, per_device_train_batch_size=2))\ntrainer.train()";
const std::string words =
    "train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --bf16 True";

}  // namespace

TEST_CASE("code cells of a notebook are one program", "[scenarios][sources][wrapped]") {
  const Translation read =
      read_as("own.ipynb", notebook({"!pip install trl==0.19.1\nimport torch", loads, trains}));
  CHECK(value_at(read, "model") == "\"qwen2.5-0.5b\"");
  CHECK(value_at(read, "job.sequence") == "512");
  CHECK(value_at(read, "job.micro_batch") == "2");
  CHECK(value_at(read, "cluster.gpus_per_node") == "1");
  const std::string text = translated_scenario(read);
  CHECK(text.find("max_length of code cell 3, line 2") != std::string::npos);
  // A cell may be one text, and hold commands of several lines, helps and values of commands.
  const Translation other =
      read_as("own.ipynb",
              notebook({"gpu = !nvidia-smi\nmodel?\nif True:\n  !ls \\\n    -l", loads, trains}));
  CHECK(value_at(other, "job.sequence") == "512");
}

TEST_CASE("a notebook says its GPU", "[scenarios][sources][wrapped]") {
  const auto machine = [](const std::string& metadata, const std::string& output = "") {
    return why_machine(read_as("own.ipynb", notebook({loads, trains}, metadata, output)));
  };
  CHECK(machine(R"({"colab": {"gpuType": "H100"}, "accelerator": "GPU"})")
            .ends_with("the notebook's gpuType is H100, and a notebook is one process"));
  CHECK(machine(R"({"colab": {"gpuType": "V28"}})").find("does not have") != std::string::npos);
  CHECK(machine("{}", "|   0  NVIDIA H200          Off | 00000000:00:04.0 Off |")
            .find("the output of code cell 1 shows NVIDIA H200") != std::string::npos);
  CHECK(machine("{}").find("a notebook is one process") != std::string::npos);
}

TEST_CASE("commands of a notebook start a training", "[scenarios][sources][wrapped]") {
  const Translation line =
      read_as("own.ipynb", notebook({"import os", "!torchrun --nproc_per_node 4 " + words}));
  CHECK(value_at(line, "cluster.gpus_per_node") == "4");
  const Translation bash = read_as(
      "own.ipynb", notebook({"%%bash\nexport N=2\naccelerate launch --num_processes $N " + words}));
  CHECK(value_at(bash, "cluster.gpus_per_node") == "2");
  const Translation written =
      read_as("own.ipynb",
              notebook({"%%writefile own.yml\nbase_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\n"
                        "micro_batch_size: 3\nbf16: true",
                        "!axolotl train own.yml"}));
  CHECK(value_at(written, "job.micro_batch") == "3");
}

TEST_CASE("several models in one notebook are told apart", "[scenarios][sources][wrapped]") {
  const std::string second =
      "model = AutoModelForCausalLM.from_pretrained('Qwen/Qwen2.5-1.5B', torch_dtype='bfloat16')";
  const std::string text = notebook({"x = 1", loads, trains, second, trains});
  CHECK(refusal_of("own.ipynb", text)
            .find("trains 2 models, one after the other, in code cell 3, code cell 5: --launch N "
                  "says which, from 1 to 2") != std::string::npos);
  const auto model = [&](const char* number) {
    return value_at(read_as("own.ipynb", text, {{"source.launch", number}}), "model");
  };
  CHECK(model("1") == "\"qwen2.5-0.5b\"");
  CHECK(model("2") == "\"qwen2.5-1.5b\"");
  // What stands behind the trainer has another name, and sets nothing.
  CHECK(
      value_at(read_as("own.ipynb", notebook({"name = 'Qwen/Qwen2.5-0.5B'",
                                              "model = AutoModelForCausalLM.from_pretrained(name)",
                                              trains, "name = 'out'"})),
               "model") == "\"qwen2.5-0.5b\"");
  // The result is loaded again to try it.
  CHECK(value_at(read_as("own.ipynb", notebook({loads, trains, second})), "model") ==
        "\"qwen2.5-0.5b\"");
}

TEST_CASE("what is wrong in a notebook is said in its cell", "[scenarios][sources][wrapped]") {
  CHECK(refusal_of("own.ipynb", notebook({loads, "trainer = SFTTrainer(\n"}))
            .find("own.ipynb, code cell 2:1: a bracket that begins here") != std::string::npos);
  CHECK(refusal_of("own.ipynb", notebook({loads,
                                          "\ntrainer = SFTTrainer(model, args=SFTConfig(\n"
                                          "per_device_train_batch_size=size))"}))
            .find("own.ipynb, code cell 2:3: per_device_train_batch_size") != std::string::npos);
  CHECK(refusal_of("own.ipynb", notebook({"import torch"})).find("it was read, not run") !=
        std::string::npos);
  CHECK(refusal_of("own.ipynb", "{\"worksheets\": []}").find("has no cells") != std::string::npos);
  CHECK(refusal_of("own.ipynb", std::string(200000, '[')).find("nested too deeply") !=
        std::string::npos);
  CHECK(refusal_of("own.ipynb", std::string(17u << 20, ' ')).find("larger than 16 MiB") !=
        std::string::npos);
  const std::vector<CodeCell> cells{{1, 1}, {2, 4}};
  CHECK(with_cells(cells, "of line 3, lines 2 and 5, line x") ==
        "of code cell 1, line 3, code cell 1, line 2 and code cell 2, line 2, line x");
}

TEST_CASE("a task of SkyPilot", "[scenarios][sources][wrapped]") {
  const Translation read = read_as(
      "sky.yaml",
      "resources:\n  accelerators: A100-80GB:8\nnum_nodes: 2\nenvs:\n  SIZE: 7\nsetup: |\n"
      "  pip install trl\nrun: |\n  cd work\n"
      "  torchrun --nnodes=$SKYPILOT_NUM_NODES --nproc_per_node=$SKYPILOT_NUM_GPUS_PER_NODE \\\n"
      "    train.py --model_name_or_path Qwen/Qwen2.5-${SIZE}B --per_device_train_batch_size 2 "
      "--bf16 True\n");
  CHECK(why_machine(read).starts_with("2 x a100-8; accelerators says A100-80GB:8"));
  CHECK(value_at(read, "model") == "\"qwen2.5-7b\"");
  CHECK(translated_scenario(read).find("per_device_train_batch_size, line 11") !=
        std::string::npos);
  CHECK(refusal_of("sky.yaml", "resources: {cpus: 4}\nrun: python serve.py\n")
            .find("sky.yaml:2: the script starts serve.py of line 2") != std::string::npos);
}

TEST_CASE("jobs of Kubernetes", "[scenarios][sources][wrapped]") {
  const Translation job = read_as(
      "job.yaml",
      "apiVersion: v1\nkind: PersistentVolumeClaim\n---\napiVersion: kubeflow.org/v1\n"
      "kind: PyTorchJob\nspec:\n  pytorchReplicaSpecs:\n"
      "    Master: {replicas: 1}\n    Worker:\n      replicas: 3\n      template:\n        spec:\n"
      "          nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}\n"
      "          containers:\n          - env:\n            - {name: SIZE, value: \"2\"}\n"
      "            command: [torchrun, --nnodes=4, --nproc_per_node=8]\n"
      "            args: [train.py, --model_name_or_path, Qwen/Qwen2.5-7B,\n"
      "              --per_device_train_batch_size, $(SIZE), --bf16, \"True\"]\n"
      "            resources: {limits: {nvidia.com/gpu: 8}}\n");
  CHECK(why_machine(job).starts_with("4 x h100-8; nvidia.com/gpu.product says NVIDIA-H100"));
  CHECK(value_at(job, "job.micro_batch") == "2");
  const Translation script =
      read_as("job.yml",
              "apiVersion: batch/v1\nkind: Job\nspec:\n  template:\n    spec:\n      containers:\n"
              "      - command: [\"/bin/bash\", \"-c\"]\n        args:\n        - |\n"
              "          pip install trl\n          accelerate launch " +
                  words +
                  "\n"
                  "        resources:\n          limits:\n            nvidia.com/gpu: \"2\"\n");
  CHECK(value_at(script, "cluster.gpus_per_node") == "2");
  const Translation values = read_as(
      "values.yaml",
      "replicas: 1\nworker:\n  image: own\n  command: torchrun --nproc_per_node 8 " + words + "\n");
  CHECK(value_at(values, "job.micro_batch") == "2");
  CHECK(refusal_of("job.yaml", "apiVersion: v1\nkind: Service\nspec: {ports: [1]}\n")
            .find("none of its commands starts a training") != std::string::npos);
}

TEST_CASE("Makefiles and Dockerfiles", "[scenarios][sources][wrapped]") {
  const Translation make = read_as("Makefile",
                                   "GPUS ?= 4  # of the box\n\nall: train\n\ntrain:\n"
                                   "\t@echo hi\n\ttorchrun --nproc_per_node=$(GPUS) \\\n\t  " +
                                       words + "\n");
  CHECK(value_at(make, "cluster.gpus_per_node") == "4");
  const Translation docker = read_as("Dockerfile",
                                     "FROM own\nENV GPUS=2\nRUN pip install trl\n"
                                     "CMD [\"bash\", \"-c\", \"torchrun --nproc_per_node=$GPUS " +
                                         words + "\"]\n");
  CHECK(value_at(docker, "cluster.gpus_per_node") == "2");
  CHECK(refusal_of("Dockerfile", "FROM own\nRUN pip install trl\nCMD [\"bash\"]\n")
            .find("it starts no training (CMD and ENTRYPOINT)") != std::string::npos);
}

TEST_CASE("a program for Modal", "[scenarios][sources][wrapped]") {
  const std::string head = "import modal\napp = modal.App('own')\n";
  const Translation command = read_as(
      "modal_train.py",
      head +
          "@app.function(gpu='H100:2')\ndef train():\n"
          "    subprocess.run(['accelerate', 'launch', 'train.py', '--model_name_or_path',\n"
          "      'Qwen/Qwen2.5-7B', '--per_device_train_batch_size', '2', '--bf16', 'True'])\n");
  CHECK(value_at(command, "cluster.gpus_per_node").empty());
  CHECK(why_machine(command).find("gpu=H100:2 of Modal") != std::string::npos);
  const Translation inside =
      read_as("modal_train.py",
              head + "@app.function(gpu='H200')\ndef train():\n    " + loads +
                  "\n    trainer = SFTTrainer(model=model, args=SFTConfig(max_length=512))\n");
  CHECK(why_machine(inside).find("gpu=H200 of Modal") != std::string::npos);
}

TEST_CASE("records of runs", "[scenarios][sources][wrapped]") {
  const Translation config =
      read_as("config.yaml",
              "wandb_version: 1\n\n_wandb:\n  desc: null\n  value:\n    e:\n      abc:\n"
              "        gpu: NVIDIA H100 80GB HBM3\n        gpu_count: 8\n"
              "_name_or_path:\n  desc: null\n  value: Qwen/Qwen2.5-7B\n"
              "per_device_train_batch_size:\n  desc: null\n  value: 4\n"
              "max_length:\n  value: 20\nmax_seq_length:\n  value: 2048\nbf16:\n  value: true\n"
              "deepspeed:\n  value: null\n"
              "peft_config:\n  value:\n    default:\n      r: 32\n      target_modules: [q_proj, "
              "v_proj]\n");
  CHECK(value_at(config, "job.sequence") == "2048");
  CHECK(value_at(config, "job.micro_batch") == "4");
  // Bloom's positions end at seq_length; no row is that long for it.
  const Translation bloom =
      read_as("config.yaml",
              "wandb_version: 1\n\n_name_or_path:\n  value: Qwen/Qwen2.5-7B\nmodel_type:\n"
              "  value: bloom\nseq_length:\n  value: 4096\nper_device_train_batch_size:\n"
              "  value: 4\n");
  CHECK(value_at(bloom, "job.sequence") == "1024");
  CHECK(value_at(config, "strategy.lora.rank") == "32");
  CHECK(why_machine(config).starts_with("h100-8; the run names NVIDIA H100 80GB HBM3"));
  const Translation metadata =
      read_as("wandb-metadata.json",
              R"({"startedAt": "2025", "python": "3.11", "program": "/own/train.py", "gpu_count": 4,
          "gpu": "NVIDIA H100 80GB HBM3", "args": ["--model_name_or_path", "Qwen/Qwen2.5-7B",
          "--per_device_train_batch_size", "2", "--bf16", "True"]})");
  CHECK(value_at(metadata, "job.micro_batch") == "2");
  CHECK(why_machine(metadata).starts_with("h100-4"));
}

TEST_CASE("dialects of programs that are read", "[scenarios][sources][wrapped]") {
  const Translation autotrain = read_as(
      "own.yml",
      "task: llm-sft\nbase_model: Qwen/Qwen2.5-7B\nproject_name: own\nparams:\n  block_size: 512\n"
      "  batch_size: 3\n  epochs: 2\n  peft: true\n  quantization: int4\n  mixed_precision: "
      "bf16\n");
  CHECK(value_at(autotrain, "job.sequence") == "512");
  CHECK(value_at(autotrain, "job.micro_batch") == "3");
  CHECK(value_at(autotrain, "job.gradient_accumulation") == "4");
  CHECK(value_at(autotrain, "job.packing") == "true");
  CHECK(value_at(autotrain, "strategy.lora.quantised") == "nf4_single");
  const Translation nemo =
      read_as("own.yaml",
              "trainer: {devices: 8, num_nodes: 2, precision: bf16, max_steps: 9}\nmodel:\n"
              "  micro_batch_size: 4\n  global_batch_size: 64\n  encoder_seq_length: 2048\n"
              "  tensor_model_parallel_size: 2\n  max_position_embeddings: 2048\n  num_layers: 24\n"
              "  hidden_size: 2048\n  ffn_hidden_size: 5440\n  num_attention_heads: 16\n"
              "  activation: fast-swiglu\n  optim: {name: distributed_fused_adam}\n");
  CHECK(value_at(nemo, "job.global_batch") == "64");
  CHECK(value_at(nemo, "strategy.zero") == "1");
  CHECK(value_at(nemo, "cluster.nodes") == "2");
  const Translation primus = read_as(
      "own.yaml",
      "modules:\n  pre_trainer:\n    framework: megatron\n    model: ${MODEL:llama3.1_8B}.yaml\n"
      "    overrides:\n      micro_batch_size: 2\n      global_batch_size: 32\n"
      "      seq_length: 4096\n      train_iters: 5\n");
  CHECK(value_at(primus, "model") == "\"llama-3.1-8b\"");
  CHECK(value_at(primus, "job.sequence") == "4096");
  const Translation adapter =
      read_as("adapter_config.json",
              R"({"peft_type": "LORA", "base_model_name_or_path": "Qwen/Qwen2.5-7B", "r": 64,
                  "target_modules": ["q_proj", "v_proj"]})");
  CHECK(value_at(adapter, "strategy.lora.rank") == "64");
  CHECK(why_machine(adapter).find("nothing in the file says") != std::string::npos);
}

TEST_CASE("what trains nothing that is modelled is named", "[scenarios][sources][wrapped]") {
  const auto says = [](const std::string& name, const std::string& text, const char* expected) {
    const std::string refusal = refusal_of(name, text);
    INFO(refusal);
    CHECK(refusal.find(expected) != std::string::npos);
  };
  says("trainer_state.json", R"({"global_step": 5, "log_history": [], "train_batch_size": 2})",
       "--beside");
  says("job.yaml", "apiVersion: v1\n{{- if .Values.on }}\nkind: Job\n{{- end }}\n",
       "job.yaml:2: is a template");
  says("own.py",
       "model = AutoModelForSequenceClassification.from_pretrained('google/electra-base')\n"
       "trainer = Trainer(model=model, args=TrainingArguments(bf16=True))\n",
       "is an encoder that is not in the catalogue");
  says("own.py",
       "model = SentenceTransformer('own/base')\ntrainer = SentenceTransformerTrainer(model)\n",
       "\"own/base\" is neither in the catalogue");
  says("own.py",
       "model = AutoModelForSeq2SeqLM.from_pretrained('google/flan-t5-base')\n"
       "trainer = Seq2SeqTrainer(model=model, args=Seq2SeqTrainingArguments(bf16=True))\n",
       "an encoder with a decoder");
  says("own.yaml", "model_name_or_path: google-t5/t5-base\nper_device_train_batch_size: 2\n",
       "is an encoder with a decoder, and these are not modelled");
  says("own.yaml", "colour: red\nsize: 3\n", "a task of SkyPilot, a job of Kubernetes");
}

TEST_CASE("GPUs are known by their spellings", "[scenarios][sources][wrapped]") {
  const auto gpu = [](std::string_view said) {
    const auto called = called_gpu(data, said);
    return called ? fmt::format("{} {}", called->gpu, called->count) : std::string();
  };
  for (const auto& [said, expected] :
       std::vector<std::pair<std::string, std::string>>{{"A100-80GB", "a100-sxm-80 0"},
                                                        {"NVIDIA A100-SXM4-40GB", "a100-sxm-40 0"},
                                                        {"h100", "h100-sxm 0"},
                                                        {"H100-80GB-HBM3", "h100-sxm 0"},
                                                        {"NVIDIA H100 PCIe", "h100-pcie 0"},
                                                        {"nvidia-tesla-t4", "t4 0"},
                                                        {"Tesla V100-SXM2-16GB", "v100-sxm2-16 0"},
                                                        {"Tesla V100-SXM2-32GB", "v100-sxm2-32 0"},
                                                        {"4090", "rtx-4090 0"},
                                                        {"NVIDIA GeForce RTX 4090", "rtx-4090 0"},
                                                        {"RTX3090", "rtx-3090 0"},
                                                        {"A10G", "a10g 0"},
                                                        {"p4d.24xlarge", "a100-sxm-40 8"},
                                                        {"ml.p5.48xlarge", "h100-sxm 8"},
                                                        {"Standard_ND96isr_H100_v5", "h100-sxm 8"},
                                                        {"AMD Instinct MI300X", "mi300x 0"},
                                                        {"own", ""}})
    CHECK(gpu(said) == expected);
  CHECK(machine_called(data, "p4d.24xlarge", 0)->gpus == 8);
  CHECK(machine_called(data, "NVIDIA H200", 8)->node == "h200-8");
  CHECK(machine_called(data, "h800", 8)->node == "h800-8");
}

TEST_CASE("settings and commands that a wrapping hands on", "[scenarios][sources][wrapped]") {
  const Translation clusters = read_as(
      "own.yaml",
      "name: own\ncompute: {gpus: 16}\ncommand: |\n  cd scripts\n"
      "  composer train/train.py /mnt/config/parameters.yaml\nparameters:\n  max_seq_len: 2048\n"
      "  global_train_batch_size: 32\n  device_train_microbatch_size: 2\n  model:\n"
      "    name: hf_causal_lm\n    pretrained_model_name_or_path: meta-llama/Llama-2-7b-hf\n");
  CHECK(value_at(clusters, "job.sequence") == "2048");
  CHECK(value_at(clusters, "cluster.nodes") == "2");
  const std::string modal =
      "import modal\napp = modal.App('own')\n@app.function(gpu='H100:2')\n"
      "def train(name):\n    subprocess.run(f'axolotl train {name}', shell=True)\n";
  CHECK_THAT(refusal_of("own.py", modal), Contains("--set name="));
  CHECK_THAT(refusal_of("own.py",
                        "import modal\napp = modal.App('own')\n"
                        "def f():\n    _run([sys.executable, 'other.py'])\n"),
             Contains("other.py"));
  CHECK_THAT(refusal_of("sky.yaml",
                        "resources: {accelerators: H100:1}\nrun: |\n"
                        "  curl -LsSf https://own.sh/install.sh | sh\n"),
             Contains("none of its commands"));
}

}  // namespace stepsim
