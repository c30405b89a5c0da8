#include "analysis/studies/fidelity/kernel_tables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>

#include "sim/base/draw.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "topology/called.hpp"

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

PredictedKernels predict_kernels(const Catalogue& data, std::span<const CsvTable> tables) {
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

namespace {

// Weights' gradients are added up in 32 bits: read and written.
double output_bytes(std::string_view dtype) {
  return dtype.ends_with("fp32") ? 8 : bytes_16;
}

// Names the pass that a product's layout belongs to. In BLAS's column-major letters the input's
// gradient is NN, the weights' is NT, and the rest, TN, is the forward pass.
std::string_view pass_of(std::string_view layout) {
  if (layout.starts_with("NT") || layout == "bwd_grad_w") return " for weights";
  if (layout == "NN" || layout == "bwd_grad_act") return " for inputs";
  return "";
}

// An attention kernel takes the rates of one for every generation, or of one for this one.
struct AttentionName {
  std::string_view name;
  bool later;
};
constexpr std::array<AttentionName, 7> attention_names{{{"flash2", false},
                                                        {"aiter", false},
                                                        {"flash3", true},
                                                        {"cudnn", true},
                                                        {"flashinfer", true},
                                                        {"AITER asm v3 (fmha_v3)", true},
                                                        {"ROCm/flash-attention (CK)", false}}};

struct Work {
  std::string kind;  // empty: see reason
  KernelRow row;
  bool backward = false;
  std::string reason;
};

struct RowReader {
  NumberReader& number;
  const CsvTable::Row& row;

  std::string_view cell(std::string_view name) const { return number.table.cell(row, name); }
  double operator()(std::string_view name) const { return number(row, name); }
  double count(std::string_view name) const { return number.count(row, name); }
};

Work unknown_work(std::string_view op, std::string_view what) {
  return {.kind = "", .row = {}, .backward = false, .reason = fmt::format("{} {}", op, what)};
}

// A row that is repeated for a tenth of a second and more runs at the clocks that power allows.
double share_of(const RowReader& read, const KernelBench& bench) {
  return read.cell("extra") == "long run" ? bench.sustained : 1;
}

Work product_of(const RowReader& read, std::string_view op, const KernelBench& bench) {
  const double m = read("M"), n = read("N"), k = read("K");
  if (m <= 0 || n <= 0 || k <= 0) return unknown_work(op, "is no matrix product of known shape");
  const std::string_view pass = pass_of(read.cell("layout"));
  Work work{.kind = fmt::format("{}{}", op, pass), .row = {}, .backward = false, .reason = ""};
  if (op == "grouped_gemm") {  // M: tokens of a group in the mean; some get none
    const double all = read.count("groups");
    const double groups = m < 8 && all > 1 ? all * (1 - std::pow(1 - 1 / all, all * m)) : all;
    const double rows = m * all / groups;
    work.row = pass == " for weights" ? grouped_gemm("product", groups, k, rows, n)
                                      : grouped_gemm("product", groups, rows, k, n);
    work.row.share = share_of(read, bench);
    // A router's choice of experts for each token leaves no whole tiles.
    work.row.ragged = read.cell("extra").find("topk=") != std::string_view::npos;
    return work;
  }
  const double batch = read.count("batch");
  work.row = gemm("product", batch * m, k, n);
  work.row.share = share_of(read, bench);
  work.row.bytes =
      bytes_16 * batch * (m * k + k * n) + output_bytes(read.cell("dtype")) * batch * m * n;
  return work;
}

Work attention_of(const RowReader& read, std::string_view op, const KernelBench& bench) {
  const double queries = read("queries"), keys = read("keys"), width = read("head_dim");
  const double heads = read("heads");
  if (queries <= 0 || keys <= 0 || width <= 0 || heads <= 0 || read.cell("causal").empty())
    return unknown_work(op, "is no attention of known shape");
  const std::string_view kernel = read.cell("kernel");
  const auto* named = std::ranges::find(attention_names, kernel, &AttentionName::name);
  if (named == attention_names.end() || (named->later && !bench.gpu.attention.later))
    return unknown_work(fmt::format("the kernel \"{}\"", kernel), "has no rates in the GPU's file");
  const double seen = read.cell("causal") == "yes" ? keys / 2 : keys;
  const bool backward = op == "attention_bwd";
  Work work{.kind = fmt::format("attention {}{}", kernel, backward ? " backward" : ""),
            .row = attention("attention", read.count("batch") * queries, seen, heads, width),
            .backward = backward,
            .reason = ""};
  work.row.later = named->later;
  if (backward) work.row = backward_of({work.row}, bench.stack.operators).front();
  return work;
}

// Products of other types have curves of their own, which the GPUs' files do not hold; the type of
// the result, behind an arrow, does not matter.
bool in_16_bits(std::string_view type) {
  const std::string inputs = in_small_letters(type.substr(0, type.find(' ')));
  return inputs.empty() || inputs == "bf16" || inputs == "fp16" || inputs == "bfloat16" ||
         inputs == "float16" || inputs == "half";
}

Work work_of(const RowReader& read, const KernelBench& bench) {
  const std::string_view op = read.cell("op"), type = read.cell("dtype");
  if (!in_16_bits(type))
    return unknown_work(type, "is no type of 16 bits: no curve is known for it");
  if (op == "attention_fwd" || op == "attention_bwd") return attention_of(read, op, bench);
  if (op == "gemm" || op == "batched_gemm" || op == "grouped_gemm")
    return product_of(read, op, bench);
  return unknown_work(op, "is no matrix product or attention of known shape");
}

double seconds_of(const RowReader& read, const KernelRow& work) {
  if (const double time = read("time_ms"); time > 0) return time / 1e3;
  const double rate = read("tflops") * 1e12;
  return rate > 0 ? work.flops / rate : 0;
}

// Returns the catalogue's GPU of each name in the tables; "" where it has none.
std::map<std::string, std::string, std::less<>> gpus_called(const Catalogue& data,
                                                            std::span<const CsvTable> tables) {
  std::map<std::string, std::string, std::less<>> gpus;
  for (const CsvTable& table : tables)
    for (const CsvTable::Row& row : table.rows)
      if (const auto [place, added] = gpus.try_emplace(std::string(table.cell(row, "hardware")));
          added)
        if (const auto card = card_called(data, place->first)) place->second = card->gpu;
  return gpus;
}

Gpu gpu_alone(const Catalogue& data, const std::string& name) {
  std::uint32_t found = 0;
  return load_cluster(data, {.name = node_of_card(data, name, 1, found)}).gpu;
}

}  // namespace

KernelBench::KernelBench(const Gpu& measured, const Operators& operators)
    : gpu(measured), sustained(measured.gemm.sustained.value.value) {
  gpu.gemm.sustained.value = {1};
  stack.operators = operators;
  stack.kernels.gemm.value = stack.kernels.attention.value = {1};
  stack.kernels.memory.value = stack.kernels.grouped_gemm.value = {1};
}

double KernelBench::time(const TimedKernel& kernel) const {
  return device_time(gpu, stack, {kernel.work}, kernel.backward).value;
}

std::vector<CsvTable> read_kernel_tables(const Catalogue& data,
                                         std::span<const std::string> files) {
  std::vector<CsvTable> tables;
  for (const std::string& file : files) tables.push_back(read_csv(file));
  if (tables.empty())
    for (const char* file : {"scenarios/measured/gemm.csv", "scenarios/measured/attention.csv"})
      tables.push_back(read_csv(data.file(file)));
  return tables;
}

MeasuredKernels read_kernels(const Catalogue& data, std::span<const CsvTable> tables) {
  MeasuredKernels result;
  const auto gpus = gpus_called(data, tables);
  const Document counts = read_document(data.file("workloads/operators.yaml"));
  const Operators operators = read_operators(counts.root());
  counts.finish();
  std::vector<Problem> problems;
  for (const CsvTable& table : tables) {
    NumberReader number{table, {}};
    for (const CsvTable::Row& row : table.rows) {
      const RowReader read{number, row};
      const std::string id(read.cell("id"));
      const std::string_view hardware = read.cell("hardware");
      const std::string& gpu = gpus.find(hardware)->second;
      if (gpu.empty()) {
        result.skipped.push_back({id, fmt::format("no GPU \"{}\" in the catalogue", hardware)});
        continue;
      }
      if (!result.benches.contains(gpu))
        result.benches.emplace(gpu, KernelBench(gpu_alone(data, gpu), operators));
      Work work = work_of(read, result.benches.at(gpu));
      const double seconds = work.kind.empty() ? 0 : seconds_of(read, work.row);
      if (work.kind.empty())
        result.skipped.push_back({id, work.reason});
      else if (seconds <= 0)
        result.skipped.push_back({id, "no time"});
      else
        result.kernels.push_back({id, std::string(read.cell("source")), gpu, work.kind, work.row,
                                  work.backward, seconds, 0});
    }
    problems.insert(problems.end(), number.problems.begin(), number.problems.end());
  }
  if (!problems.empty()) throw UserError(problems);
  return result;
}

}  // namespace stepsim
