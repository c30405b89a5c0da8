#include "scenarios/read/lacks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>

#include "sim/base/config.hpp"
#include "topology/catalog.hpp"
#include "workloads/layers/units.hpp"

namespace stepsim {
namespace {

// This is what the file of the board says.
struct Lacks {
  std::optional<Constant<FlopsPerSecond>> emulated_bf16;
  bool tf32 = false, flash = false;
};

// A search reads the same board thousands of times.
struct KnownLacks {
  std::map<std::string, Lacks> by_gpu;
};

const Lacks& lacks_of(const Catalogue& data, const std::string& gpu) {
  const auto [place, fresh] = data.kept<KnownLacks>().by_gpu.try_emplace(gpu);
  Lacks& lacks = place->second;
  if (!fresh) return lacks;
  const Document document = open_entry(data, gpu_shelf, gpu);
  const Table root = document.root();
  for (const std::string& word : root.texts_or("lacks")) {
    if (word == "bf16")
      lacks.emulated_bf16 = root.constant<FlopsPerSecond>("emulated_bf16");
    else if (word == "tf32")
      lacks.tf32 = true;
    else if (word == "flash")
      lacks.flash = true;
    else
      root.problem("lacks", "expected bf16, tf32 or flash, found \"" + word + "\"");
  }
  document.finish(Leftovers::allowed);
  return lacks;
}

void scale(Constant<FlopsPerSecond>& rate, double share) {
  for (FlopsPerSecond* each : {&rate.value, &rate.low, &rate.high}) each->value *= share;
}

// fp16 is what such a board multiplies: its rates are those of the file.
bool in_bf16(const Precision& precision) {
  return precision.type == ProductType::bf16 && precision.name != "fp16";
}

void emulate(const Constant<FlopsPerSecond>& slow, Gpu& gpu) {
  const double share = std::min(1.0, slow.number() / gpu.gemm.rate.number());
  for (Constant<FlopsPerSecond>* rate :
       {&gpu.gemm.rate, &gpu.peak.bf16, &gpu.attention.flash.forward,
        &gpu.attention.flash.backward})
    scale(*rate, share);
}

}  // namespace

void lay_what_lacks(const Catalogue& data, Scenario& scenario) {
  if (!is_on(data, gpu_shelf, scenario.cluster.gpu.name)) return;
  Gpu& gpu = scenario.cluster.gpu;
  const Lacks& lacks = lacks_of(data, gpu.name);
  const Precision& precision = scenario.strategy.precision;
  if (lacks.emulated_bf16 && in_bf16(precision)) {
    emulate(*lacks.emulated_bf16, gpu);
    scenario.notes.push_back(fmt::format(
        "{} has no units for bf16: PyTorch works it off in 32 bits, at {}, and "
        "programs that check refuse it or take fp16; fp16 (strategy.precision: fp16) is what it "
        "multiplies",
        gpu.name, to_text(lacks.emulated_bf16->value)));
  }
  if (lacks.tf32 && precision.type == ProductType::tf32)
    scenario.notes.push_back(
        fmt::format("{} has no TF32: its products have all 32 bits", gpu.name));
  const AttentionKernel kernel = attention_of(scenario.stack, scenario.strategy);
  if (!lacks.flash || (kernel != AttentionKernel::flash && kernel != AttentionKernel::flash3))
    return;
  scenario.strategy.attention = AttentionKernel::sdpa;
  scenario.notes.push_back(fmt::format(
      "FlashAttention-2 has no kernels for {}, and a program that asks for it ends with an error: "
      "counted is SDPA with its memory-efficient kernel, as PyTorch chooses there",
      gpu.name));
}

}  // namespace stepsim
