#include "analysis/studies/explain/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace stepsim {
namespace {

// A row that differs from the gap by less than this share of it is all of it.
constexpr double all_of_it = 5e-3;
// Steps whose tokens differ by less than this share do the same.
constexpr double same_tokens = 0.02;
// A second row with this share of the gap is named, too.
constexpr double worth_a_word = 0.3;

// Writes "KEY (3 in A, 2 in B)".
std::string named(const DifferingSetting& setting) {
  if (setting.text_a.empty()) return setting.key;
  return fmt::format("{} ({} in A, {} in B)", setting.key, setting.text_a, setting.text_b);
}

std::string same_steps(const Explanation& e) {
  const std::string both = fmt::format("A and B take the same, {}", to_text(e.a.step_time));
  if (!e.settings) return both + ".";
  if (e.settings->rows.size() > 1)
    return fmt::format("{}: what {} makes longer, others make shorter.", both,
                       named(e.settings->rows.front().setting));
  const std::size_t idle = e.settings->idle.size();
  if (idle == 0) return both + ": no setting that is modelled differs.";
  return fmt::format("{}: {} of their settings {}, and change nothing here.", both, idle,
                     idle == 1 ? "differs" : "differ");
}

// Says what A would take with that alone, and whether it would fit.
std::string alone_text(const Explanation& e, const SettingRow& row) {
  const Seconds now = e.a.step_time;
  if (std::abs((row.alone - now).value) < counts_as_same * now.value)
    return "alone it changes nothing, only together with others";
  const bool fits = !row.changed || row.changed->fit != Fit::oom;
  return fmt::format("with that alone as in B, A takes {}{}", to_text(row.alone),
                     fits ? "" : " and does not fit into memory");
}

std::string row_text(const Explanation& e, const SettingRow& row) {
  const bool all = std::abs((row.seconds - e.gap()).value) <= all_of_it * std::abs(e.gap().value);
  return fmt::format("{} carries {}: {}", named(row.setting),
                     all ? "all of it" : size_of(row.seconds) + " of that", alone_text(e, row));
}

std::string carried_text(const Explanation& e) {
  const SettingRows& settings = *e.settings;
  if (settings.rows.empty()) return ", and no setting that differs carries any of it.";
  const auto share = [&](Seconds seconds) { return seconds / e.gap(); };
  const double top = share(settings.rows.front().seconds);
  if (top <= 0 || share(settings.rest) > top) return ", most of it by what no setting says.";
  std::string text = ", and " + row_text(e, settings.rows.front());
  if (settings.rows.size() > 1 && share(settings.rows[1].seconds) > worth_a_word)
    text += "; " + row_text(e, settings.rows[1]);
  return text + ".";
}

std::string range_text(const Range& range) {
  if (range.low == range.high) return to_text(Seconds{range.low});
  return fmt::format("{} to {}", to_text(Seconds{range.low}), to_text(Seconds{range.high}));
}

// Writes ", for 0.25 of the tokens": whose step is longer does not say who is faster.
std::string tokens_text(const Explanation& e) {
  if (e.a.tokens <= 0 || e.b.tokens <= 0) return "";
  const double share = e.a.tokens / e.b.tokens;
  if (std::abs(share - 1) < same_tokens) return "";
  return fmt::format(", for {:.3g} {} the tokens", share, share < 1 ? "of" : "times");
}

// Names the cause whose row says most of the gap.
std::string cause_text(const Explanation& e) {
  if (e.rows.empty() || e.rows.front().seconds.value == 0) return "";
  const Seconds most = e.rows.front().seconds;
  return fmt::format(", above all in {} ({}{})", name_of(e.rows.front()),
                     most.value < 0 ? "-" : "+", size_of(most));
}

}  // namespace

std::string summary_text(const Explanation& e) {
  if (std::abs(e.gap().value) <= 1e-12 * e.a.step_time.value) return same_steps(e);
  const std::string gap = fmt::format("A takes {} {} than B ({} against {}{}){}", size_of(e.gap()),
                                      e.gap().value > 0 ? "longer" : "less", to_text(e.a.step_time),
                                      to_text(e.b.step_time), tokens_text(e), cause_text(e));
  return e.settings ? gap + carried_text(e) : gap + ".";
}

std::string measured_text(const Explanation& e) {
  if (!e.a.measured && !e.b.measured) return "";
  std::string text = "measured: ";
  if (e.a.measured) text += "A " + range_text(*e.a.measured);
  if (e.b.measured) text += (e.a.measured ? ", B " : "B ") + range_text(*e.b.measured);
  if (!e.a.measured || !e.b.measured) return text;
  const Range gap{e.a.measured->low - e.b.measured->high, e.a.measured->high - e.b.measured->low};
  return fmt::format("{}, so A {} {}; predicted: {} {}", text,
                     range_text({std::min(std::abs(gap.low), std::abs(gap.high)),
                                 std::max(std::abs(gap.low), std::abs(gap.high))}),
                     gap.low + gap.high < 0 ? "less" : "longer", size_of(e.gap()),
                     e.gap().value < 0 ? "less" : "longer");
}

}  // namespace stepsim
