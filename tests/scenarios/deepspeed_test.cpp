// DeepSpeed's own file, read as DeepSpeed reads it.
#include "scenarios/import/deepspeed.hpp"

#include <fstream>

#include "sim/error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/temporary_folder.hpp"

namespace stepsim {
namespace {

using Catch::Matchers::Contains;

constexpr std::int64_t ranks = 8;

Model dense_model() {
  Model model;
  model.hidden = 4096;
  return model;
}

DeepSpeedImport read(const std::string& text) {
  const TemporaryFolder folder;
  const std::string path = folder.file("ds.json");
  std::ofstream(path) << text;
  return read_deepspeed(path, Strategy{}, Job{}, dense_model(), ranks);
}

}  // namespace

TEST_CASE("auto sizes are those of the Hugging Face integration", "[scenarios]") {
  const Strategy s = read(R"({"zero_optimization": {"stage": 3, "reduce_bucket_size": "auto",
      "stage3_prefetch_bucket_size": "auto", "stage3_param_persistence_threshold": "auto"}})")
                         .strategy;
  const double h = 4096;
  CHECK(s.sharding == Sharding::zero3);
  CHECK(s.zero.reduce_bucket == h * h);
  CHECK(s.zero.prefetch_bucket == 0.9 * h * h);
  CHECK(s.zero.persistence_threshold == 10 * h);
  CHECK(s.zero.overlap_comm);
}

TEST_CASE("below stage 3 communication does not overlap unless the file says so", "[scenarios]") {
  CHECK_FALSE(read(R"({"zero_optimization": {"stage": 2}})").strategy.zero.overlap_comm);
  CHECK(read(R"({"zero_optimization": {"stage": 2, "overlap_comm": true}})")
            .strategy.zero.overlap_comm);
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

TEST_CASE("offloaded parameters below stage 3 are refused", "[scenarios]") {
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}})"),
      Contains("stage 3 only"));
}

TEST_CASE("what is not modelled is refused by name and not ignored", "[scenarios]") {
  CHECK_THROWS_WITH(
      read(R"({"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "nvme"}}})"),
      Contains("offload_optimizer.device: NVMe is not modelled yet"));
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

TEST_CASE("keys that make no difference are noted", "[scenarios]") {
  const auto notes = read(R"({"steps_per_print": 10})").notes;
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes.front(), Contains("steps_per_print"));
}

}  // namespace stepsim
