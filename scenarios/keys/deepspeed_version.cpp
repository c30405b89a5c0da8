#include "scenarios/keys/deepspeed_version.hpp"

#include <array>
#include <charconv>
#include <optional>
#include <string>

namespace stepsim {
namespace {

using Version = std::array<int, 3>;

// Reads "0.18.5" or "0.18", and nothing else.
std::optional<Version> version_of(const std::string& text) {
  Version version{};
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::size_t i = 0; i < version.size(); ++i) {
    const auto [next, error] = std::from_chars(at, end, version[i]);
    if (error != std::errc{} || version[i] < 0) return std::nullopt;
    at = next;
    if (at == end) return i == 0 ? std::nullopt : std::optional(version);
    if (*at++ != '.') return std::nullopt;
  }
  return std::nullopt;
}

// DeepSpeed issue 8586 describes 0.19.6 and all before it; a change of it was proposed behind that.
constexpr Version last_to_clear_in_sub_groups{0, 19, 6};
// Release 0.18.5 brought it, and pull request 7886 took it out: merged after 0.18.6 and before
// 0.18.9 was prepared.
constexpr Version first_to_count{0, 18, 5}, last_to_count{0, 18, 7};
// Pull request 1453 wrote stage 3 anew for 0.6.0. Before, a fetch called torch.cuda.synchronize(),
// and counted modules from the second one on (issue 1069), so that each looked like another one
// than expected and nothing was prefetched or kept.
constexpr Version first_to_run_on{0, 6, 0};

// These were read in stage_1_and_2.py of these releases; pull request 7981 put it right.
constexpr Version first_to_lose_sums{0, 15, 2}, last_to_lose_sums{0, 18, 9};

// Pull request 8207: pin_memory of offload blocks is true unless it is said.
constexpr Version first_to_pin{0, 19, 5};

// Pull request 7371 made the backward pass wait for each reduction, and 7805 took that out again.
constexpr Version first_to_wait{0, 17, 5}, last_to_wait{0, 18, 4};

}  // namespace

void read_deepspeed_version(const Table& table, Strategy& strategy) {
  const std::string text = table.text_or("deepspeed_version", "");
  if (text.empty()) return;
  const std::optional<Version> version = version_of(text);
  if (!version) {
    table.problem("deepspeed_version", "expected numbers with dots, such as 0.18.5");
    return;
  }
  ZeroKeys& keys = strategy.zero;
  keys.clears_in_sub_groups = *version <= last_to_clear_in_sub_groups;
  keys.counts_in_hooks = first_to_count <= *version && *version <= last_to_count;
  keys.waits_for_reductions = first_to_wait <= *version && *version <= last_to_wait;
  keys.stops_at_fetches = *version < first_to_run_on;
  keys.loses_sums = first_to_lose_sums <= *version && *version <= last_to_lose_sums;
  strategy.offload.pins = first_to_pin <= *version;
}

}  // namespace stepsim
