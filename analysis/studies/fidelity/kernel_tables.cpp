#include "analysis/studies/fidelity/kernel_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/studies/fidelity/kernel_bench.hpp"
#include "sim/base/quantile.hpp"

namespace stepsim {
namespace {

KernelFamily family_of(const std::string& name, const std::vector<const TimedKernel*>& members) {
  KernelFamily family{name, members.size(), 0, 0, 0, "", 0};
  std::vector<double> sizes;
  sizes.reserve(members.size());
  for (const TimedKernel* kernel : members) {
    const double error = kernel->error();
    sizes.push_back(std::abs(error));
    family.signed_mean += error / static_cast<double>(members.size());
    if (std::abs(error) <= std::abs(family.worst_error)) continue;
    family.worst = kernel->id;
    family.worst_error = error;
  }
  std::ranges::sort(sizes);
  family.median = quantile(sizes, 0.5);
  family.p90 = quantile(sizes, 0.9);
  return family;
}

}  // namespace

KernelTimes predict_kernels(const Catalogue& data, std::span<const CsvTable> tables) {
  MeasuredKernels read = read_kernels(data, tables);
  for (TimedKernel& kernel : read.kernels)
    kernel.predicted = read.benches.at(kernel.gpu).time(kernel);
  return {std::move(read.kernels), std::move(read.skipped)};
}

std::vector<KernelFamily> families_of(const std::vector<TimedKernel>& kernels) {
  std::map<std::string, std::vector<const TimedKernel*>> families;
  std::vector<const TimedKernel*> all;
  for (const TimedKernel& kernel : kernels) {
    families[fmt::format("{} {}", kernel.gpu, kernel.kind)].push_back(&kernel);
    all.push_back(&kernel);
  }
  std::vector<KernelFamily> result;
  result.reserve(families.size() + 1);
  for (const auto& [name, members] : families) result.push_back(family_of(name, members));
  if (!all.empty()) result.push_back(family_of("all", all));
  return result;
}

}  // namespace stepsim
