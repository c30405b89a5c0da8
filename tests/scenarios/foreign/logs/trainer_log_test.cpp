// What trainings say of themselves.
#include "scenarios/foreign/logs/trainer_log.hpp"

#include "sim/base/error.hpp"
#include "tests/support/catch.hpp"

namespace stepsim {

TEST_CASE("the last line of a progress bar is read, and shorter bars are not", "[logs]") {
  const TrainerLog log = read_trainer_log(
      "  0%|          | 0/1188 [00:00<?, ?it/s]\r"
      " 12%|#2        | 143/1188 [4:33:02<33:12:11, 114.30s/it]\n"
      "{'loss': 1.23, 'epoch': 0.36}\n"
      "100%|##########| 12/12 [00:03<00:00,  3.55it/s]\n",
      "log");
  CHECK(log.kind == "a progress bar");
  CHECK(log.done == 143);
  CHECK(*log.total == 1188);
  CHECK(*log.seconds_per_step == Approx((4 * 3600 + 33 * 60 + 2) / 143.0));
  CHECK(*log.recent == Approx(114.3));
  CHECK(phase_of(log) == RunPhase::full_swing);
}

TEST_CASE("a clock that says inf is none", "[logs]") {
  CHECK_THROWS_WITH(read_trainer_log("5/100 [inf:00<00:38,  2.50it/s]", "log"),
                    Catch::Contains("log: holds no"));
}

TEST_CASE("rates of a progress bar become times", "[logs]") {
  const TrainerLog log = read_trainer_log("5/100 [00:02<00:38,  2.50it/s]", "log");
  CHECK(*log.recent == Approx(0.4));
  CHECK(phase_of(log) == RunPhase::first_steps);
  const TrainerLog none = read_trainer_log("0/100 [00:00<?, ?it/s]", "log");
  CHECK_FALSE(none.seconds_per_step.has_value());
  CHECK(phase_of(none) == RunPhase::not_begun);
}

TEST_CASE("trainer_state.json says how long a finished run took", "[logs]") {
  const TrainerLog log = read_trainer_log(
      R"({"global_step": 500, "max_steps": 500, "log_history": [{"loss": 1.5, "step": 10},
          {"step": 500, "train_runtime": 4000.0, "train_samples_per_second": 4.0, "train_steps_per_second": 0.125}]})",
      "trainer_state.json");
  CHECK(log.kind == "trainer_state.json");
  CHECK(log.done == 500);
  CHECK(*log.total == 500);
  CHECK(*log.seconds_per_step == Approx(8));
  CHECK(phase_of(log) == RunPhase::finished);
}

TEST_CASE("a trainer's last line counts its steps", "[logs]") {
  const TrainerLog log = read_trainer_log(
      "{'train_runtime': 4000.0, 'train_samples_per_second': 4.0, 'train_steps_per_second': 0.125}",
      "log");
  CHECK(*log.seconds_per_step == Approx(8));
  CHECK(log.done == 500);
}

TEST_CASE("lines of Megatron are read with their middle and their spread", "[logs]") {
  std::string text;
  for (const double ms : {9000.0, 5000.0, 2000.0, 2100.0, 1900.0, 2000.0, 2050.0})
    text +=
        " iteration        7/     100 | consumed samples: 64 | elapsed time per iteration (ms): " +
        std::to_string(ms) + " | learning rate: 1e-5\n";
  const TrainerLog log = read_trainer_log(text, "log");
  CHECK(log.kind == "Megatron's log");
  CHECK(*log.seconds_per_step == Approx(2));
  CHECK(*log.total == 100);
  CHECK(log.spread->high < 2.2);
}

TEST_CASE("lines of TorchTitan have a rate and memory", "[logs]") {
  const TrainerLog log = read_trainer_log(
      "[titan] step: 10  loss: 7.5  memory: 47.60GiB(50.1%)  tps: 6,123  tflops: 350.1  mfu: 35 %\n"
      "[titan] step: 20  loss: 7.1  memory: 48.00GiB(50.5%)  tps: 6,140  tflops: 351.0  mfu: 35 "
      "%\n",
      "log");
  CHECK(log.done == 20);
  CHECK(*log.tokens_per_second_per_gpu == Approx(6140).epsilon(0.01));
  CHECK(*log.memory == Approx(48 * 0x1p30));
}

TEST_CASE("a file without any progress says what would be read", "[logs]") {
  CHECK_THROWS_WITH(
      read_trainer_log("loss 1.2 at step [3]\n", "my.log"),
      "my.log: holds no progress of a training: expected a line of a progress bar such as "
      "\"143/1188 [4:33:02<33:12:11, 114.30s/it]\", trainer_state.json, 'train_runtime', lines of "
      "Megatron (elapsed time per iteration (ms)), TorchTitan (step: ... tps: ...), torchtune, "
      "NeMo, verl or LLaMA-Factory, a history of W&B, events of TensorBoard, memory as "
      "nvidia-smi shows it, or kernels of a profile (PyTorch's trace or key_averages(), nsys' "
      "cuda_gpu_kern_sum, rocprof's statistics)");
  CHECK_THROWS_WITH(load_trainer_log("/nowhere/log"), "/nowhere/log: cannot be read");
}

TEST_CASE("nvidia-smi says memory of the fullest card, and how busy cards are", "[logs]") {
  const TrainerLog log = read_trainer_log(
      "memory.used [MiB], utilization.gpu [%]\n30000 MiB, 80 %\n31000 MiB, 90 %\n", "smi.csv");
  CHECK(log.kind == "nvidia-smi");
  CHECK(*log.memory == 31000 * 0x1p20);
  CHECK(log.memory_kind == MemoryKind::device);
  CHECK(*log.busy == Approx(0.85));
  const TrainerLog table = read_trainer_log(
      "| NVIDIA-SMI 550.54 |\n| 30%  40C  P0  300W / 700W |  23456MiB / 81559MiB | 99% |\n", "smi");
  CHECK(*table.memory == 23456 * 0x1p20);
}

TEST_CASE("logs of verl, NeMo, torchtune and LLaMA-Factory are read", "[logs]") {
  CHECK(*read_trainer_log("step:1 - timing_s/step:12.5\nstep:2 - timing_s/step:10.5\n", "log")
             .seconds_per_step > 10);
  CHECK(read_trainer_log("global_step=20, train_step_timing in s=3.25\n", "log").seconds_per_step ==
        Approx(3.25));
  CHECK(read_trainer_log(
            "Step 5 | loss:1.0 tokens_per_second_per_gpu:2500.0 peak_memory_alloc:30\n", "log")
            .tokens_per_second_per_gpu == Approx(2500));
  const TrainerLog factory = read_trainer_log(
      "{\"current_steps\": 10, \"total_steps\": 50, \"elapsed_time\": \"0:01:40\"}\n", "log");
  CHECK(*factory.seconds_per_step == Approx(10));
  CHECK(*factory.total == 50);
}

TEST_CASE("a history of W&B gives the pace of its later part", "[logs]") {
  std::string csv = "_step,_runtime,train/global_step\n", json;
  for (int i = 1; i <= 10; ++i) {
    csv +=
        std::to_string(i) + "," + std::to_string(20 + 2 * i) + "," + std::to_string(5 * i) + "\n";
    json += "{\"_step\": " + std::to_string(i) + ", \"_runtime\": " + std::to_string(20 + 2 * i) +
            "}\n";
  }
  CHECK(*read_trainer_log(csv, "log").seconds_per_step == Approx(0.4));
  CHECK(*read_trainer_log(json, "log").seconds_per_step == Approx(2));
}

}  // namespace stepsim
