#include "scenarios/foreign/deepspeed/deepspeed_batch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace stepsim {
namespace {

constexpr std::string_view micro_key = "train_micro_batch_size_per_gpu";
constexpr std::string_view accumulation_key = "gradient_accumulation_steps";
constexpr std::string_view batch_key = "train_batch_size";

std::optional<std::int64_t> count(const Table& root, std::string_view key, std::int64_t most) {
  if (!root.has(key) || root.text_or(key, "") == "auto") return std::nullopt;
  return root.integer(key, 1, most);
}

}  // namespace

bool was_set(const DeepSpeedQuestion& question, std::string_view key) {
  return std::any_of(question.set.begin(), question.set.end(), [&](std::string_view set) {
    return key == set ||
           (key.starts_with(set) && key.size() > set.size() && key[set.size()] == '.');
  });
}

void read_batch(const Table& root, const DeepSpeedQuestion& question, DeepSpeedImport& result) {
  Job& job = result.job;
  const bool set_micro = was_set(question, "job.micro_batch");
  const bool set_accumulation = was_set(question, "job.gradient_accumulation");
  const bool says_micro = set_micro || root.has(micro_key);
  const bool says_accumulation = set_accumulation || root.has(accumulation_key);
  const auto batch = count(root, batch_key, 1 << 30), micro = count(root, micro_key, 1 << 16),
             accumulation = count(root, accumulation_key, 1 << 16);
  const auto third = [&](std::int64_t other) {
    return std::max<std::int64_t>(1, *batch / (other * question.ranks));
  };
  const auto yields = [&](std::string_view theirs, std::int64_t told, std::string_view key,
                          std::int64_t own) {
    if (told != own)
      result.notes.push_back(
          fmt::format("{} is {} there; {} was set and stands", theirs, told, key));
  };
  if (set_micro && micro) yields(micro_key, *micro, "job.micro_batch", job.micro_batch);
  if (set_accumulation && accumulation)
    yields(accumulation_key, *accumulation, "job.gradient_accumulation", job.accumulation);
  if (micro && !set_micro) job.micro_batch = *micro;
  const std::int64_t wanted = job.accumulation;
  if (accumulation && !set_accumulation)
    job.accumulation = *accumulation;
  else if (!set_accumulation && batch && says_micro)
    job.accumulation = third(job.micro_batch);
  else if (!says_accumulation && (batch || says_micro))
    job.accumulation = 1;
  if (batch && !says_micro) job.micro_batch = third(job.accumulation);
  if (!says_accumulation && job.accumulation != wanted)
    result.notes.push_back(fmt::format("{} is absent, so DeepSpeed takes {}, not {}",
                                       accumulation_key, job.accumulation, wanted));
  const std::int64_t product = job.micro_batch * job.accumulation * question.ranks;
  if (!batch || product == *batch || question.some_learn) return;
  if (set_micro || set_accumulation)
    result.notes.push_back(
        fmt::format("{} is {} there; with what was set it is {}", batch_key, *batch, product));
  else
    root.problem(batch_key,
                 fmt::format("{} is not micro batch {} x accumulation {} x {} ranks = {}", *batch,
                             job.micro_batch, job.accumulation, question.ranks, product));
}

}  // namespace stepsim
