// Profiles of real runs: which kernels took how long, and what bounds them.
#include "scenarios/foreign/logs/kernel_profile.hpp"

#include <sstream>

#include "scenarios/foreign/logs/trainer_log.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/source_data.hpp"

namespace stepsim {
namespace {

KernelProfile trace_of(const std::string& events) {
  std::istringstream file(
      "{\n\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0}],\n"
      "\"traceEvents\": [" +
      events + "],\n\"traceName\": \"x\" }\n");
  return read_kernel_trace(file, "trace.json");
}

std::string event(const std::string& category, const std::string& name, double begin,
                  double lasts) {
  return "{\"ph\": \"X\", \"cat\": \"" + category + "\", \"name\": \"" + name +
         "\", \"pid\": 0, \"tid\": 7, \"ts\": " + std::to_string(begin) +
         ", \"dur\": " + std::to_string(lasts) +
         ", \"args\": {\"name\": \"}] \\\" {\", \"grid\": [1, 1, 1]}}";
}

}  // namespace

TEST_CASE("a trace is read by step, and what runs side by side keeps the device busy once",
          "[profile]") {
  const KernelProfile profile = trace_of(
      event("user_annotation", "ProfilerStep#3", 1000, 500) + "," +
      event("user_annotation", "ProfilerStep#4", 1500, 500) + "," +
      event("cpu_op", "aten::mm", 1010, 20) + "," +
      event("kernel", "ampere_bf16_s16816gemm_bf16_128x128", 1100, 300) + "," +
      event("kernel", "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage)", 1200, 300) +
      "," + event("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 1900, 50) + "," +
      event("kernel", "void flash_fwd_kernel<Flash_fwd_kernel_traits>", 1600, 100) + "," +
      event("kernel", "void at::native::vectorized_elementwise_kernel<4>", 1700, 100));
  CHECK(profile.steps == 2);
  CHECK(*profile.step_time == Approx(500e-6));
  // 1100 to 1500, 1600 to 1800 and 1900 to 1950 of 1000 microseconds.
  CHECK(*profile.idle == Approx(350e-6 / 2));
  const ProfiledTimes times = times_of(profile, source_data());
  CHECK(times.products == Approx(150e-6));
  CHECK(times.attention == Approx(50e-6));
  CHECK(times.other == Approx(50e-6));
  CHECK(times.collectives == Approx(150e-6));
  CHECK(times.copies == Approx(25e-6));
}

TEST_CASE("a trace without a kernel, and one that ends early, end with a message", "[profile]") {
  CHECK_THROWS_WITH(trace_of(event("cpu_op", "aten::mm", 0, 1)),
                    "trace.json: is a trace without a kernel of a GPU: profile with "
                    "ProfilerActivity.CUDA");
  CHECK(trace_of(event("kernel", "gemm", 0, 1) + ", {\"cat\": \"kernel\", \"na").kernels.size() ==
        1);
}

TEST_CASE("rows of key_averages() that the host spends nothing on are kernels", "[profile]") {
  const std::string text =
      "-----------------------  ------------  ------------  ------------  ------------\n"
      "                   Name      Self CPU     Self CUDA    CUDA total    # of Calls\n"
      "-----------------------  ------------  ------------  ------------  ------------\n"
      "          ProfilerStep*       1.234ms       0.000us       9.000ms             4\n"
      "               aten::mm     100.000us       8.000ms       8.000ms           400\n"
      "   nvjet_tst_128x256_64       0.000us       8.000ms       8.000ms           400\n"
      "          ProfilerStep*       0.000us       9.500ms       9.500ms             4\n"
      "void at::native::reduce       0.000us     400.000us     400.000us            80\n"
      "-----------------------  ------------  ------------  ------------  ------------\n"
      "Self CUDA time total: 8.400ms\n";
  const TrainerLog log = read_trainer_log(text, "averages.txt");
  REQUIRE(log.profile);
  CHECK(log.profile->steps == 4);
  CHECK(!log.seconds_per_step);
  const ProfiledTimes times = times_of(*log.profile, source_data());
  CHECK(times.products == Approx(2e-3));
  CHECK(times.other == Approx(100e-6));
}

TEST_CASE("summaries of nsys and rocprof are read in columns and as CSV", "[profile]") {
  const std::string csv =
      "Processing [x.sqlite] with [cuda_gpu_kern_sum.py]...\n"
      "Time (%),Total Time (ns),Instances,Avg (ns),Name\n"
      "80.0,8000000,10,800000,\"void cutlass::Kernel2<a, b>(T1::Params)\"\n"
      "20.0,2000000,10,200000,ncclDevKernel_ReduceScatter\n";
  const std::string columns =
      " Time (%)  Total Time (ns)  Instances  Avg (ns)   Name\n"
      " --------  ---------------  ---------  --------   ----\n"
      "     80.0        8,000,000         10  800,000.0  void cutlass::Kernel2<a, b>(T1::Params)\n"
      "     20.0        2,000,000         10  200,000.0  ncclDevKernel_ReduceScatter\n";
  const std::string rocprof =
      "\"Name\",\"Calls\",\"TotalDurationNs\",\"AverageNs\",\"Percentage\"\n"
      "\"Cijk_Ailk_Bljk_BBS_BH_MT128x128\",10,8000000,800000,80.0\n"
      "\"rcclGenericKernel\",10,2000000,200000,20.0\n";
  for (const std::string& text : {csv, columns, rocprof}) {
    const TrainerLog log = read_trainer_log(text, "kernels");
    REQUIRE(log.profile);
    CHECK(log.profile->steps == 0);
    const ProfiledTimes times = times_of(*log.profile, source_data());
    CHECK(times.products == Approx(8e-3));
    CHECK(times.collectives == Approx(2e-3));
  }
}

}  // namespace stepsim
