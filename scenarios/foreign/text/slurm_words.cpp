#include "scenarios/foreign/text/slurm_words.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::int64_t most_asked_for = 1 << 20;

// Reads a count; of "2-4" the first.
std::optional<std::int64_t> count_of_slurm(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc() || value < 1 || value > most_asked_for) return std::nullopt;
  const bool whole = end == text.data() + text.size() || *end == '-';
  return whole ? std::optional(value) : std::nullopt;
}

// Reads "8", "a100:8", "gpu:8" and "gpu:a100:8(S:0-1)", alone or among others in a list.
void read_gpus_of_slurm(std::string_view text, bool named, SlurmCounts& counts,
                        std::optional<std::int64_t>& count) {
  constexpr std::string_view mark = "gpu";
  while (!text.empty()) {
    std::string_view one = text.substr(0, text.find(','));
    text.remove_prefix(std::min(one.size() + 1, text.size()));
    one = one.substr(0, one.find('('));
    if (named && !(one.starts_with(mark) && (one.size() == mark.size() || one[mark.size()] == ':')))
      continue;
    if (named) one.remove_prefix(std::min(mark.size() + 1, one.size()));
    const std::size_t colon = one.rfind(':');
    const std::string_view last = colon == std::string_view::npos ? one : one.substr(colon + 1);
    const bool type_alone = !last.empty() && !is_digit(last.front());
    count = one.empty() || type_alone ? 1 : count_of_slurm(last);
    const std::string_view type = type_alone                        ? one
                                  : colon == std::string_view::npos ? ""
                                                                    : one.substr(0, colon);
    if (!type.empty()) counts.gpu = type;
    return;
  }
}

std::string long_name_of(char letter) {
  constexpr std::array<std::pair<char, std::string_view>, 5> names{
      {{'N', "nodes"}, {'n', "ntasks"}, {'G', "gpus"}, {'p', "partition"}, {'C', "constraint"}}};
  const auto name = std::ranges::find(names, letter, &std::pair<char, std::string_view>::first);
  return name == names.end() ? std::string(1, letter) : std::string(name->second);
}

// sbatch takes a shell's quotes off what stands behind #SBATCH.
std::string without_quotes(const std::string& text) {
  const bool quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
                      text.back() == text.front();
  return quoted ? text.substr(1, text.size() - 2) : text;
}

}  // namespace

std::map<std::string, std::string> slurm_options(std::span<const std::string> words) {
  std::map<std::string, std::string> options;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word.size() < 2 || word.front() != '-') continue;
    const bool is_long = word[1] == '-';
    const std::size_t sign = is_long ? word.find('=') : word.size() > 2 ? 2 : std::string::npos;
    const std::string name = is_long ? word.substr(2, sign == std::string::npos ? sign : sign - 2)
                                     : long_name_of(word[1]);
    if (sign != std::string::npos)
      options[name] = without_quotes(word.substr(is_long ? sign + 1 : sign));
    else if (i + 1 < words.size() && !words[i + 1].starts_with('-'))
      options[name] = without_quotes(words[++i]);
  }
  return options;
}

SlurmCounts slurm_counts(const std::map<std::string, std::string>& options) {
  const auto said = [&](const char* name) {
    const auto place = options.find(name);
    return place == options.end() ? std::string() : place->second;
  };
  SlurmCounts counts;
  counts.nodes = count_of_slurm(said("nodes"));
  const std::int64_t nodes = counts.nodes.value_or(1);
  const auto of_each = [&](std::optional<std::int64_t> all) -> std::optional<std::int64_t> {
    return all && *all % nodes == 0 ? std::optional(*all / nodes) : std::nullopt;
  };
  counts.tasks = count_of_slurm(said("ntasks-per-node"));
  if (!counts.tasks) counts.tasks = of_each(count_of_slurm(said("ntasks")));
  std::optional<std::int64_t> all, of_task;
  read_gpus_of_slurm(said("gpus-per-task"), false, counts, of_task);
  read_gpus_of_slurm(said("gpus"), false, counts, all);
  if (of_task && counts.tasks) counts.gpus = *of_task * *counts.tasks;
  if (all) counts.gpus = of_each(all);
  read_gpus_of_slurm(said("gres"), true, counts, counts.gpus);
  read_gpus_of_slurm(said("gpus-per-node"), false, counts, counts.gpus);
  // A GPU that nodes have to have: "v100-32g".
  if (const std::string nodes_like = said("constraint");
      counts.gpu.empty() && nodes_like.find_first_of("0123456789") != std::string::npos)
    counts.gpu = nodes_like.substr(0, nodes_like.find_first_of("&|,("));
  return counts;
}

}  // namespace stepsim
