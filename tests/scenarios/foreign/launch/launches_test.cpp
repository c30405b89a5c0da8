// What launch lines say: how many nodes and GPUs, which arguments, and how the model is shared.
#include "scenarios/foreign/launch/launches.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <fstream>

#include "scenarios/foreign/door/sources.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

const Catalogue& data = source_data();

// Of the first launch "nodes x GPUs of each"; "-" where it is not said.
std::string counts_of(const std::string& text) {
  const auto launches = launches_in(data, read_shell_script(text, "own.sh", {}));
  if (launches.empty()) return "none";
  const auto word = [](const std::optional<std::int64_t>& count) {
    return count ? std::to_string(*count) : std::string("-");
  };
  return fmt::format("{} x {}", word(launches.front().nodes), word(launches.front().gpus));
}

using Files = std::vector<std::pair<std::string, std::string>>;
// The last of the files, beside the others.
Translation translate(const Files& files, const Files& settings = {}) {
  const TemporaryFolder folder;
  for (const auto& [name, text] : files) std::ofstream(folder.file(name)) << text;
  return translate_source(data, folder.file(files.back().first), settings).value();
}

std::string value_at(const Translation& translation, std::string_view path) {
  for (const TranslatedLine& line : translation.lines)
    if (line.path == path) return line.value;
  return "";
}

std::string assumed(const Translation& translation, std::string_view what) {
  for (const Assumption& each : translation.assumptions)
    if (each.what == what) return fmt::format("{}; {}; {}", each.taken, each.why, each.change);
  return "";
}

std::string machine_of(const Translation& translation) {
  return assumed(translation, "machine").substr(0, assumed(translation, "machine").find(';'));
}

const std::string own =
    "train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 2 --bf16 True\n";

}  // namespace

TEST_CASE("what a queue is asked for", "[scenarios][sources]") {
  const std::string run = "\npython " + own, torchrun = "\ntorchrun --nnodes $SLURM_NNODES " + own;
  for (const auto& [text, expected] : Files{
           {"#SBATCH --nodes=4" + torchrun, "4 x -"},
           {"#SBATCH -N 4" + torchrun, "4 x -"},
           {"#SBATCH -N4" + torchrun, "4 x -"},
           {"#SBATCH -N 2-4 --exclusive  # two" + torchrun, "2 x -"},
           {"#SBATCH -N2 --gpus-per-node=4" + torchrun, "2 x 4"},
           {"#SBATCH --gres=gpu:4" + run, "- x 4"},
           {"#SBATCH --gres=tmp:1,gpu:a100:4(S:0-1)" + run, "- x 4"},
           {"#SBATCH --gpus=8\n#SBATCH -N 2" + run, "2 x 4"},
           {"#SBATCH -G h100:8" + run, "- x 8"},
           {"#SBATCH --ntasks=8 --gpus-per-task=1" + run, "- x 8"},
           {"#SBATCH -n 8" + run, "- x -"},
           {"#SBATCH --gres=gpu:4\ntorchrun --nproc_per_node=$SLURM_GPUS_ON_NODE " + own, "- x 4"},
           {"#SBATCH --gres=gpu:4\ntorchrun --nproc_per_node=2 " + own, "- x 2"},
           {"#SBATCH -N 2\naccelerate launch --num_processes 8 " + own, "2 x 4"},
           {"srun -N2 -n8 python " + own, "2 x 4"},
           {"srun --nodes=2 --ntasks-per-node=4 python " + own, "2 x 4"},
           {"srun -N 2 --ntasks-per-node=1 torchrun --nproc_per_node 8 " + own, "2 x 8"},
           {"srun -N 2 --gpus-per-node 4 python " + own, "2 x 4"},
           {"nohup srun -N 2 -n 8 python " + own, "2 x 4"},
           {"srun -N 2 -n 2 llamafactory-cli train lf.yaml", "2 x -"},
           {"#SBATCH -N 4\nsrun -N 2 torchrun --nproc_per_node 8 " + own, "2 x 8"}}) {
    INFO(text);
    CHECK(counts_of(text) == expected);
  }
  const Translation named = translate({{"own.sh", "#SBATCH --gres=gpu:mi300x:8 -N 2" + run}});
  CHECK(machine_of(named) == "2 x mi300x-8");
}

TEST_CASE("a number of nodes that nothing sets is said", "[scenarios][sources]") {
  const std::string launch = "torchrun --nnodes $X --nproc_per_node 8 " + own;
  const Translation read = translate({{"own.sh", launch}});
  CHECK(assumed(read, "number of nodes") ==
        "1; nnodes depends on X, which nothing sets; --set X=N or --nodes N");
  CHECK(machine_of(read) == "h100-8");
  const Translation set = translate({{"own.sh", launch}}, {{"X", "4"}});
  CHECK(machine_of(set) == "4 x h100-8");
  CHECK(assumed(set, "number of nodes").empty());
  CHECK(assumed(translate({{"own.sh", launch}}, {{"cluster.nodes", "2"}}), "number of nodes")
            .empty());
  const Translation gpus = translate({{"own.sh", "torchrun --nproc_per_node=$1 " + own}});
  CHECK(assumed(gpus, "GPUs of each node") ==
        "as if that were not said; nproc_per_node depends on $1, which nothing sets; --set 1=N or "
        "--set cluster.gpus_per_node=N");
}

TEST_CASE("a file of hosts says nodes and GPUs", "[scenarios][sources]") {
  const std::string launch = "deepspeed --hostfile hosts " + own;
  const std::string hosts = "# two\nh1 slots=4\nh2 slots=4\n\n";
  CHECK(machine_of(translate({{"hosts", hosts}, {"own.sh", launch}})) == "2 x 4 of h100-8");
  CHECK(machine_of(translate(
            {{"hosts", hosts}, {"own.sh", "deepspeed --hostfile=hosts --num_gpus 2 " + own}})) ==
        "2 x 2 of h100-8");
  CHECK(assumed(translate({{"own.sh", launch}}), "number of nodes") ==
        "1; hostfile depends on hosts, which is not beside the script; --nodes N");
}

TEST_CASE("arguments of launch lines in each program's own form", "[scenarios][sources]") {
  const std::string factory =
      "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\nfinetuning_type: lora\ncutoff_len: 2048\n";
  const Translation llama =
      translate({{"lf.yaml", factory},
                 {"own.sh",
                  "FORCE_TORCHRUN=1 NNODES=2 NPROC_PER_NODE=4 llamafactory-cli train lf.yaml "
                  "per_device_train_batch_size=4 cutoff_len=4096\n"}});
  CHECK(machine_of(llama) == "2 x 4 of h100-8");
  CHECK(value_at(llama, "job.micro_batch") == "4");
  CHECK(value_at(llama, "job.sequence") == "4096");
  CHECK(machine_of(translate(
            {{"lf.yaml", factory}, {"own.sh", "llamafactory-cli train lf.yaml\n"}})) == "h100-8");

  const Translation axolotl = translate(
      {{"ax.yaml", "base_model: Qwen/Qwen2.5-7B\nsequence_len: 2048\nmicro_batch_size: 1\n"},
       {"own.sh",
        "axolotl train ax.yaml --micro-batch-size 4 --sequence-len 8192 --launcher "
        "torchrun -- --nproc_per_node=2\n"}});
  CHECK(machine_of(axolotl) == "2 of h100-8");
  CHECK(value_at(axolotl, "job.micro_batch") == "4");
  CHECK(value_at(axolotl, "job.sequence") == "8192");

  const Translation hyphens =
      translate({{"own.sh",
                  "torchrun --nproc_per_node=8 train.py --model-name-or-path Qwen/Qwen2.5-7B "
                  "--per-device-train-batch-size 4 --max-length=1024\n"}});
  CHECK(value_at(hyphens, "job.micro_batch") == "4");
  CHECK(value_at(hyphens, "job.sequence") == "1024");

  const Translation titan = translate(
      {{"tt.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n"},
       {"own.sh",
        "torchrun --nproc_per_node=8 -m torchtitan.train --job.config-file tt.toml "
        "--training.seq-len 4096\n"}});
  CHECK(value_at(titan, "job.sequence") == "4096");
  CHECK(machine_of(titan) == "h100-8");
  const Translation some = translate(
      {{"tt.toml", "[model]\nname = \"llama3\"\nflavor = \"8B\"\n[training]\nseq_len = 8192\n"},
       {"own.sh",
        "torchrun --nnodes 2 --nproc_per_node=4 -m torchtitan.train --job.config_file "
        "tt.toml\n"}});
  CHECK(machine_of(some) == "2 x 4 of h100-8");
}

TEST_CASE("Accelerate's options stand over its file", "[scenarios][sources]") {
  const std::string file = "distributed_type: MULTI_GPU\nnum_processes: 8\n";
  const auto zero = [&](const std::string& options) {
    return value_at(
        translate({{"a.yaml", file},
                   {"own.sh", "accelerate launch --config_file a.yaml " + options + " " + own}}),
        "strategy.zero");
  };
  CHECK(zero("") == "0");
  CHECK(zero("--use_deepspeed --zero_stage 2") == "2");
  CHECK(zero("--use_deepspeed --zero_stage=3") == "3");
  CHECK(zero("--use_fsdp") == "fsdp");
}

TEST_CASE("TRL's command line hands keys on to Accelerate", "[scenarios][sources]") {
  const std::string keys = "model_name_or_path: Qwen/Qwen2.5-7B\nper_device_train_batch_size: 2\n";
  for (const auto& [name, expected] : Files{{"single_gpu", "0"},
                                            {"multi_gpu", "0"},
                                            {"zero1", "1"},
                                            {"zero2", "2"},
                                            {"zero3", "3"},
                                            {"fsdp1", "fsdp"},
                                            {"fsdp2", "fsdp"}}) {
    INFO(name);
    const Translation read = translate({{"a.yaml", keys + "accelerate_config: " + name + "\n"},
                                        {"own.sh", "trl sft --config a.yaml\n"}});
    CHECK(value_at(read, "strategy.zero") == expected);
    CHECK(machine_of(read) == (name == "single_gpu" ? "1 of h100-8" : "h100-8"));
  }
  const Translation flags =
      translate({{"own.sh",
                  "trl sft --model_name_or_path Qwen/Qwen2.5-7B --accelerate_config zero2 "
                  "--num_processes 4\n"}});
  CHECK(value_at(flags, "strategy.zero") == "2");
  CHECK(machine_of(flags) == "4 of h100-8");
  CHECK(machine_of(translate({{"a.yaml", keys + "num_processes: 16\nnum_machines: 2\n"}})) ==
        "2 x h100-8");
  CHECK(value_at(translate({{"mine.yaml",
                             "distributed_type: DEEPSPEED\ndeepspeed_config: "
                             "{zero_stage: 1}\n"},
                            {"a.yaml", keys + "accelerate_config: mine.yaml\n"}}),
                 "strategy.zero") == "1");
  CHECK_THROWS_WITH(translate({{"a.yaml", keys + "accelerate_config: zreo3\n"}}),
                    Catch::Contains("a.yaml:3: accelerate_config: expected fsdp1, ") &&
                        Catch::EndsWith("found \"zreo3\" (did you mean \"zero3\"?)"));
  CHECK_THROWS_WITH(translate({{"a.yaml", keys + "num_processes: 3\nnum_machines: 2\n"}}),
                    Catch::Contains("num_processes: 2 machines cannot share 3 processes alike"));
}

TEST_CASE("strategies of FSDP by words and by Accelerate's numbers", "[scenarios][sources]") {
  const auto read = [](const std::string& more) {
    return translate({{"a.yaml", "distributed_type: FSDP\nnum_processes: 8\n" + more},
                      {"own.sh", "accelerate launch --config_file a.yaml " + own}});
  };
  const auto says = [&](const std::string& strategy) {
    const Translation one = read("fsdp_config: {fsdp_sharding_strategy: " + strategy + "}\n");
    return value_at(one, "strategy.zero") + " " +
           value_at(one, "strategy.fsdp.reshard_after_forward");
  };
  for (const auto& [word, expected] : Files{{"FULL_SHARD", "fsdp "},
                                            {"1", "fsdp "},
                                            {"SHARD_GRAD_OP", "fsdp false"},
                                            {"2", "fsdp false"},
                                            {"NO_SHARD", "0 "},
                                            {"3", "0 "},
                                            {"HYBRID_SHARD", "hsdp "},
                                            {"4", "hsdp "},
                                            {"HYBRID_SHARD_ZERO2", "hsdp false"},
                                            {"5", "hsdp false"}}) {
    INFO(word);
    CHECK(says(word) == expected);
  }
  const Translation arguments = translate(
      {{"own.sh", "torchrun --nproc_per_node 8 train.py --fsdp no_shard " + own.substr(9)}});
  CHECK(value_at(arguments, "strategy.zero") == "0");
  CHECK_THAT(fmt::format("{}", fmt::join(arguments.notes, "\n")),
             Catch::Contains("fsdp: NO_SHARD leaves everything on each GPU"));
  const Translation others = read(
      "fsdp_config: {fsdp_version: 2}\nuse_cpu: true\ndynamo_config: {dynamo_backend: "
      "INDUCTOR}\n");
  CHECK(value_at(others, "strategy.compile") == "true");
  const std::string notes = fmt::format("{}", fmt::join(others.notes, "\n"));
  CHECK_THAT(notes, Catch::Contains("a.yaml: use_cpu: true is not modelled: the GPUs are used"));
}

TEST_CASE("Accelerate's sizes of groups", "[scenarios][sources]") {
  const std::string processes = "distributed_type: FSDP\nnum_processes: 8\n",
                    fsdp = processes + "fsdp_config: {fsdp_version: 2}\n";
  const auto read = [&](const std::string& file, const std::string& options = "") {
    return translate(
        {{"a.yaml", file}, {"own.sh", "accelerate launch --config_file a.yaml " + options + own}});
  };
  const auto sizes = [](const std::string& text) { return "parallelism_config: {" + text + "}\n"; };
  const Translation ring =
      read(fsdp + sizes("parallelism_config_dp_shard_size: 2, parallelism_config_cp_size: 4"));
  CHECK(value_at(ring, "strategy.sequence_parallel.ring") == "4");
  CHECK(value_at(ring, "strategy.zero") == "fsdp");
  const Translation ulysses =
      read("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}\nnum_processes: 4\n" +
           sizes("parallelism_config_sp_size: 2"));
  CHECK(value_at(ulysses, "strategy.sequence_parallel.ulysses") == "2");
  const Translation copies = read(
      fsdp + sizes("parallelism_config_dp_replicate_size: 2, parallelism_config_dp_shard_size: 2, "
                   "parallelism_config_tp_size: 2"));
  CHECK(value_at(copies, "strategy.zero") == "hsdp");
  CHECK(value_at(copies, "strategy.fsdp.replicate") == "2");
  CHECK(value_at(copies, "strategy.tensor_parallel.size") == "2");
  const Translation option = read(fsdp,
                                  "--use_parallelism_config --parallelism_config_dp_shard_size 4 "
                                  "--parallelism_config_cp_size 2 ");
  CHECK(value_at(option, "strategy.sequence_parallel.ring") == "2");
  CHECK_THROWS_WITH(
      read(fsdp + sizes("parallelism_config_cp_size: 4")),
      Catch::Contains("sizes multiply to 4 for 8 processes: expected dp_shard_size: 2"));
}

}  // namespace stepsim
