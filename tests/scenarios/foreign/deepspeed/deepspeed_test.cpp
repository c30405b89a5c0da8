// DeepSpeed's own file, read as DeepSpeed reads it.
#include "scenarios/foreign/deepspeed/deepspeed.hpp"

#include <algorithm>
#include <fstream>

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/tiny_step.hpp"

namespace stepsim {
namespace {

using Catch::Contains;

constexpr std::int64_t ranks = 8;

Model dense_model() {
  Model model;
  model.hidden = 4096;
  return model;
}

DeepSpeedImport read(const std::string& text, const Job& job = {}) {
  const TemporaryFolder folder;
  const std::string path = folder.file("ds.json");
  std::ofstream(path) << text;
  Strategy strategy;
  strategy.optimizer = optimizer_called("adamw");
  DeepSpeedQuestion question{source_data(), strategy, job, dense_model(), ranks};
  question.optimizers = {"adamw", "lion", "muon", "sgd", "sgd_momentum"};
  return read_deepspeed(path, question);
}

}  // namespace

TEST_CASE("auto sizes are those of the Hugging Face integration", "[scenarios]") {
  const Strategy s = read(R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})")
                         .strategy;
  const double h = 4096;
  CHECK(s.sharding == Sharding::zero3);
  CHECK(s.zero.reduce_bucket == h * h);
  CHECK(s.zero.prefetch_bucket == 15099494);  // a whole number, 0.9 * h * h
  CHECK(s.zero.persistence_threshold == 10 * h);
  CHECK(s.zero.overlap_comm);
}

TEST_CASE("below stage 3 communication does not overlap unless the file says so", "[scenarios]") {
  CHECK_FALSE(read(R"({"zero_optimization": {"stage": 2}})").strategy.zero.overlap_comm);
  CHECK(read(R"({"zero_optimization": {"stage": 2, "overlap_comm": true}})")
            .strategy.zero.overlap_comm);
}

TEST_CASE("numbers may stand in quotes", "[scenarios]") {
  CHECK(read(R"({"zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": "0"}})")
            .strategy.zero.prefetch_bucket == 0);
}

TEST_CASE("a file without zero_optimization is stage 0", "[scenarios]") {
  CHECK(read(R"({"bf16": {"enabled": true}})").strategy.sharding == Sharding::zero0);
}

TEST_CASE("two of the three batch sizes give the third", "[scenarios]") {
  const Job job = read(R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2})").job;
  CHECK(job.micro_batch == 2);
  CHECK(job.accumulation == 64 / (2 * ranks));
}

TEST_CASE("three batch sizes that contradict each other are an error that names them",
          "[scenarios]") {
  CHECK_THROWS_WITH(read(R"({"train_batch_size": 60, "train_micro_batch_size_per_gpu": 2,
                             "gradient_accumulation_steps": 4})"),
                    Contains("60 is not micro batch 2 x accumulation 4 x 8 ranks = 64"));
}

TEST_CASE("offloaded parameters below stage 3 are passed over, as by DeepSpeed", "[scenarios]") {
  const DeepSpeedImport got =
      read(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})");
  CHECK(got.strategy.parameter_place == Offload::none);
  REQUIRE(got.notes.size() == 1);
  CHECK_THAT(got.notes.front(), Contains("works with stage 3 only"));
}

TEST_CASE("offload to drives and of a part is read with its keys", "[scenarios]") {
  const Strategy s = read(R"({"zero_optimization": {"stage": 3,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme", "buffer_count": 8, "pipeline_read": true},
      "offload_param": {"device": "nvme", "nvme_path": "/nvme", "buffer_size": 2e8, "max_in_cpu": 0}}})")
                         .strategy;
  CHECK(s.optimizer_place == Offload::nvme);
  CHECK(s.parameter_place == Offload::nvme);
  CHECK(s.offload.optimizer_buffers == 8);
  CHECK(s.offload.pipeline_read);
  CHECK_FALSE(s.offload.pipeline_write);
  CHECK(s.offload.buffer_size == 2e8);
  CHECK(s.offload.max_in_cpu == 0);
  CHECK(
      read(
          R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu", "ratio": 0.4}}})")
          .strategy.offload.ratio == 0.4);
  CHECK_THROWS_WITH(
      read(
          R"({"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu", "ratio": 0.4}}})"),
      Contains("offload_optimizer.ratio: a part of the optimizer needs stage 3"));
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}})"),
      Contains("offload_optimizer.nvme_path: is missing: device is nvme"));
}

TEST_CASE("below stage 3 drives are host memory, as in DeepSpeed, and it is said", "[scenarios]") {
  const DeepSpeedImport got = read(R"({"zero_optimization": {"stage": 2,
      "offload_optimizer": {"device": "nvme", "nvme_path": "/nvme"}}})");
  CHECK(got.strategy.optimizer_place == Offload::cpu);
  REQUIRE(got.notes.size() == 1);
  CHECK_THAT(got.notes.front(), Contains("nvme is host memory below stage 3"));
}

TEST_CASE("keys that DeepSpeed does not have are errors, at the top and deep inside",
          "[scenarios]") {
  CHECK_THROWS_WITH(
      read(R"({"gradient_cliping": 1.0})"),
      Contains("gradient_cliping: unknown key (did you mean \"gradient_clipping\"?)"));
  CHECK_THROWS_WITH(read(R"({"zero_optimization": {"stage": 3, "reduce_bucket": 1e8}})"),
                    Contains("zero_optimization.reduce_bucket: unknown key (did you mean "
                             "\"reduce_bucket_size\"?)"));
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 3, "offload_param":
                             {"device": "cpu", "pin_memry": true}}})"),
      Contains("offload_param.pin_memry: unknown key (did you mean \"pin_memory\"?)"));
  CHECK_NOTHROW(read(R"({"scheduler": {"type": "WarmupLR", "params": {"total": 3}}})"));
}

TEST_CASE("keys of stage 3 mean nothing below it, and that is noted", "[scenarios]") {
  const DeepSpeedImport got =
      read(R"({"zero_optimization": {"stage": 2, "zero_hpz_partition_size": 3,
      "zero_quantized_weights": true, "zero_quantized_gradients": true}})");
  CHECK(got.strategy.zero.hpz == 1);
  CHECK_FALSE(got.strategy.zero.quantized_weights);
  CHECK_FALSE(got.strategy.zero.quantized_gradients);
  REQUIRE(got.notes.size() == 3);
  CHECK_THAT(got.notes.front(), Contains("zero_hpz_partition_size means nothing below stage 3"));
}

TEST_CASE("the type in which gradients add up is read", "[scenarios]") {
  const auto type = [](const std::string& word) {
    return read(R"({"zero_optimization": {"stage": 1}, "data_types": {"grad_accum_dtype": ")" +
                word + "\"}}")
        .strategy.gradients;
  };
  CHECK(type("fp32") == GradientType::fp32);
  CHECK(type("bf16") == GradientType::bf16);
  CHECK_THROWS_WITH(type("fp8"), Contains("data_types.grad_accum_dtype: expected fp32,"));
}

TEST_CASE("one-bit optimizers do not work with ZeRO", "[scenarios]") {
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 1}, "optimizer": {"type": "OneBitAdam"}})"),
      Contains("optimizer.type: OneBitAdam does not work with ZeRO"));
}

TEST_CASE("auto is what the trainer says, and what is absent DeepSpeed makes up", "[scenarios]") {
  Job given;
  given.micro_batch = 4;
  given.accumulation = 2;
  const auto of = [&](const std::string& keys) { return read("{" + keys + "}", given); };
  const auto both = of(R"("train_micro_batch_size_per_gpu": "auto",
      "gradient_accumulation_steps": "auto", "train_batch_size": "auto")");
  CHECK(both.job.micro_batch == 4);
  CHECK(both.job.accumulation == 2);
  CHECK(both.notes.empty());
  const auto micro_only = of(R"("train_micro_batch_size_per_gpu": 1)");
  CHECK(micro_only.job.accumulation == 1);
  CHECK_THAT(micro_only.notes.front(),
             Contains("gradient_accumulation_steps is absent, so DeepSpeed takes 1, not 2"));
  const auto batch_only = of(R"("train_batch_size": 64)");
  CHECK(batch_only.job.micro_batch == 8);
  CHECK(batch_only.job.accumulation == 1);
  CHECK(of(R"("train_batch_size": 64, "gradient_accumulation_steps": 4)").job.micro_batch == 2);
  CHECK(
      of(R"("train_batch_size": 64, "train_micro_batch_size_per_gpu": "auto")").job.accumulation ==
      2);
}

TEST_CASE("ZeRO++ is read by DeepSpeed's names", "[scenarios]") {
  const ZeroKeys keys = read(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 4,
      "zero_quantized_weights": true, "zero_quantized_gradients": true}})")
                            .strategy.zero;
  CHECK(keys.hpz == 4);
  CHECK(keys.quantized_weights);
  CHECK(keys.quantized_gradients);
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 3, "zero_hpz_partition_size": 3}})"),
      Contains("zero_optimization.zero_hpz_partition_size: 3 does not divide 8 ranks"));
}

TEST_CASE("an optimizer that is modelled is taken from DeepSpeed's file", "[scenarios]") {
  const auto optimizer = [](const std::string& keys) {
    return read("{\"optimizer\": {" + keys + "}}").strategy.optimizer.name;
  };
  CHECK(optimizer(R"("type": "Lion")") == "lion");
  CHECK(optimizer(R"("type": "Muon")") == "muon");
  CHECK(optimizer(R"("type": "SGD", "params": {"lr": 0.1})") == "sgd");
  CHECK(optimizer(R"("type": "SGD", "params": {"momentum": 0.9})") == "sgd_momentum");
  CHECK(optimizer(R"("type": "AdamW")") == "adamw");
  CHECK(optimizer(R"("type": "Lamb")") == "adamw");
}

TEST_CASE("PyTorch's own AdamW works through lists of tensors", "[scenarios]") {
  const auto kernels = [](const std::string& rest) {
    return read(R"({"optimizer": {"type": "AdamW", "params": {"lr": "auto", "torch_adam": true}})" +
                rest + "}");
  };
  CHECK(kernels("").strategy.update_kernels == UpdateKernels::foreach);
  CHECK(
      read(R"({"optimizer": {"type": "AdamW", "params": {"lr": 1e-4}}})").strategy.update_kernels ==
      UpdateKernels::fused);
  const auto offloaded =
      kernels(R"(, "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}})");
  CHECK(offloaded.strategy.update_kernels == UpdateKernels::fused);
  REQUIRE(offloaded.notes.size() == 1);
  CHECK_THAT(offloaded.notes.front(), Contains("torch_adam is not modelled on the host"));
}

TEST_CASE("a key with an unusual value is named as not modelled", "[scenarios]") {
  const auto notes = read(R"({"communication_data_type": "fp32", "zero_optimization": {"stage": 3,
      "contiguous_gradients": true, "mics_shard_size": 4, "zeropp_loco_param": {"err_beta": 0.8}}})")
                         .notes;
  REQUIRE(notes.size() == 3);
  CHECK_THAT(notes[0], Contains("zeropp_loco_param is not modelled; the result is without it"));
  CHECK_THAT(notes[1], Contains("zero_optimization.mics_shard_size: 4 is not modelled"));
  CHECK_THAT(notes[2], Contains("communication_data_type: fp32 is not modelled"));
}

TEST_CASE("keys that make no difference are noted", "[scenarios]") {
  const auto notes = read(R"({"steps_per_print": 10})").notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes.front(), Contains("steps_per_print"));
}

TEST_CASE("old names of offload mean what they became", "[scenarios]") {
  const auto place = [](const std::string& keys) {
    const Strategy s = read("{\"zero_optimization\": {\"stage\": 3, " + keys + "}}").strategy;
    return std::pair(s.optimizer_place, s.parameter_place);
  };
  CHECK(place(R"("cpu_offload": true)") == std::pair(Offload::cpu, Offload::none));
  CHECK(place(R"("cpu_offload_params": true)") == std::pair(Offload::none, Offload::cpu));
  CHECK(place(R"("cpu_offload_param": true)") == std::pair(Offload::none, Offload::cpu));
  CHECK(place(R"("cpu_offload": false)") == std::pair(Offload::none, Offload::none));
}

TEST_CASE("training in 32 bits is told from 16", "[scenarios]") {
  const auto told = [](const std::string& text) {
    const auto notes = read(text).notes;
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.find("so DeepSpeed trains in fp32") != std::string::npos;
    });
  };
  CHECK(told(R"({"bf16": {"enabled": false}})"));
  CHECK(told(R"({"bf16": {"enabled": false}, "fp16": {"enabled": false}})"));
  CHECK_FALSE(told(R"({"bf16": {"enabled": false}, "fp16": {"enabled": true}})"));
  CHECK_FALSE(told(R"({"bf16": {"enabled": "auto"}, "fp16": {"enabled": "auto"}})"));
  CHECK_FALSE(told(R"({"fp16": {"enabled": false}})"));
  CHECK_FALSE(told("{}"));
}

namespace {

// What is set over the scenario, beside a file of stage 3 with a batch of 64.
DeepSpeedImport with_set(const Strategy& strategy, const Job& job, std::vector<std::string> set) {
  const TemporaryFolder folder;
  const std::string path = folder.file("ds.json");
  std::ofstream(path) << R"({"train_batch_size": 64, "train_micro_batch_size_per_gpu": 2,
      "gradient_accumulation_steps": 4, "zero_optimization": {"stage": 3, "reduce_bucket_size": 1e8,
      "zero_hpz_partition_size": 8, "offload_optimizer": {"device": "cpu"}}})";
  return read_deepspeed(path,
                        {source_data(), strategy, job, dense_model(), ranks, {}, std::move(set)});
}

}  // namespace

TEST_CASE("what is set stands over DeepSpeed's file, and only that", "[scenarios]") {
  Strategy strategy;
  strategy.sharding = Sharding::zero2;
  strategy.zero.reduce_bucket = 5;
  const DeepSpeedImport none = with_set(strategy, {}, {});
  CHECK(none.strategy.sharding == Sharding::zero3);
  CHECK(none.strategy.zero.reduce_bucket == 1e8);
  CHECK(none.strategy.zero.hpz == 8);
  CHECK(none.notes.empty());
  const DeepSpeedImport stage = with_set(strategy, {}, {"strategy.zero"});
  CHECK(stage.strategy.sharding == Sharding::zero2);
  CHECK(stage.strategy.zero.reduce_bucket == 1e8);
  CHECK(stage.strategy.zero.hpz == 1);  // a key of stage 3
  CHECK_FALSE(stage.strategy.zero.overlap_comm);
  CHECK(stage.strategy.optimizer_place == Offload::cpu);
  const DeepSpeedImport block = with_set(strategy, {}, {"strategy.zero_optimization"});
  CHECK(block.strategy.sharding == Sharding::zero3);
  CHECK(block.strategy.zero.reduce_bucket == 5);
  CHECK(block.strategy.zero.hpz == 1);
  CHECK(with_set(strategy, {}, {"strategy.offload"}).strategy.optimizer_place == Offload::none);
}

TEST_CASE("the whole batch gives way to a part of it that is set", "[scenarios]") {
  Job job;
  job.micro_batch = 4;
  const DeepSpeedImport read = with_set({}, job, {"job.micro_batch"});
  CHECK(read.job.micro_batch == 4);
  CHECK(read.job.accumulation == 4);
  REQUIRE(read.notes.size() == 2);
  CHECK_THAT(read.notes[1], Contains("train_batch_size is 64 there; with what was set it is 128"));
  CHECK_THAT(read.notes[0], Contains("train_micro_batch_size_per_gpu is 2 there; job.micro_batch "
                                     "was set and stands"));
}

}  // namespace stepsim
