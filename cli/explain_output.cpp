#include "cli/explain_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "analysis/studies/explain/summary.hpp"
#include "cli/engine_options.hpp"
#include "cli/screen.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string signed_text(Seconds value) {
  const std::string size = size_of(value);
  return value.value < 0 ? "-" + size : value.value > 0 ? "+" + size : size;
}

// Rows beneath a thousandth of the gap and of both steps say nothing.
bool matters(const Explanation& e, const ExplainRow& row) {
  const double size =
      std::max(std::abs(e.gap().value), 1e-3 * std::max(e.a.step_time.value, e.b.step_time.value));
  return std::abs(row.seconds.value) >= 1e-2 * size;
}

// Cuts the text to the room beside the figures of a step.
std::string fitted(const std::string& text) {
  constexpr std::size_t figures = 43;
  const std::size_t room = line_width() - std::min(line_width() / 2, figures);
  return text.size() <= room ? text : text.substr(0, room - 3) + "...";
}

// Writes first what a person asked for: the sentence, and what could not run.
std::string head(const Explanation& e) {
  std::string text = wrap(summary_text(e), line_width(), 0) + "\n";
  for (const std::string& note : e.fairness.too_large) text += wrap(note, line_width(), 0) + "\n";
  if (const std::string measured = measured_text(e); !measured.empty())
    text += wrap(measured, line_width(), 0) + "\n";
  if (e.at_limit && e.at_limit->flips) text += wrap(at_limit_text(e), line_width(), 0) + "\n";
  TextTable table{{"", " step", " tok/s/GPU", " energy", " memory", "scenario"}};
  for (const auto& [name, side] : {std::pair{"A", &e.a}, std::pair{"B", &e.b}})
    table.rows.push_back({name, to_text(side->step_time),
                          fmt::format("{:.0f}", side->tokens_per_second_per_gpu),
                          side->energy.value > 0 ? to_text(side->energy) : "-",
                          fmt::format("{:.0f} %", 100 * side->needed / side->capacity),
                          fitted(fmt::format("{} ({})", side->title, side->label))});
  return text + "\n" + render(table);
}

std::string share_of_gap(const Explanation& e, Seconds seconds) {
  return e.gap().value == 0 ? std::string("-") : percent(seconds / e.gap());
}

// "not set: all cores" is "not set" in a table.
std::string short_value(const std::string& text) {
  constexpr std::string_view unset = "not set";
  return text.starts_with(unset) ? std::string(unset) : text;
}

std::vector<std::string> setting_cells(const Explanation& e, const SettingRow& row) {
  std::vector<std::string> cells{row.setting.key, short_value(row.setting.text_a),
                                 short_value(row.setting.text_b), signed_text(row.seconds),
                                 share_of_gap(e, row.seconds)};
  if (!e.settings->exact) cells.push_back(to_text(row.standard_error));
  cells.push_back(to_text(row.alone));
  cells.emplace_back(row.changed && row.changed->cause ? to_text(*row.changed->cause) : "");
  cells.push_back(row.changed && row.changed->fit == Fit::oom ? "does not fit" : "");
  return cells;
}

// Writes which settings differ, and what each of them carries.
std::string settings_part(const Explanation& e) {
  if (!e.settings) return "";
  const SettingRows& s = *e.settings;
  TextTable table{{"setting", "in A", "in B", " of the gap", " share"}};
  if (!s.exact) table.columns.emplace_back(" std. error");
  append(table.columns, {" A with it alone", "most in", ""});
  for (const SettingRow& row : s.rows) table.rows.push_back(setting_cells(e, row));
  if (s.rest.value != 0)
    table.rows.push_back(
        {"what no setting says", "", "", signed_text(s.rest), share_of_gap(e, s.rest)});
  table.rows.push_back({"gap", "", "", signed_text(e.gap()), share_of_gap(e, e.gap())});
  for (auto& cells : table.rows) cells.resize(table.columns.size());
  std::string text = "\n" + render(table);
  if (s.idle.empty()) return text;
  std::string idle = s.idle.size() == 1 ? "differs, and changes nothing here: "
                                        : "differ, and change nothing here: ";
  idle += fmt::format("{}", fmt::join(mapped(s.idle, &DifferingSetting::key), ", "));
  return text + wrap(idle, line_width(), 0) + "\n";
}

std::string signed_range(const Range& range) {
  return fmt::format("{} to {}", signed_text({range.low}), signed_text({range.high}));
}

TextTable gap_table(const Explanation& e) {
  TextTable table{{"cause", " exposed in A", " exposed in B", " of the gap", " share"}};
  if (e.draws) table.columns.emplace_back(" 8 of 10 draws");
  append(table.columns, {" hidden in A", " hidden in B"});
  const auto add = [&](std::string_view name, const CauseTime& a, const CauseTime& b,
                       Seconds seconds, const std::optional<Range>& range) {
    std::vector<std::string>& cells = table.rows.emplace_back();
    cells = {std::string(name), to_text(a.exposed), to_text(b.exposed), signed_text(seconds),
             share_of_gap(e, seconds)};
    if (e.draws) cells.push_back(range ? signed_range(*range) : "");
    append(cells, {to_text(a.hidden), to_text(b.hidden)});
  };
  for (const ExplainRow& row : e.rows) add(name_of(row), row.a, row.b, row.seconds, row.range);
  add("step, gap", {e.a.step_time, {}}, {e.b.step_time, {}}, e.gap(),
      e.draws ? std::optional(e.draws->gap) : std::nullopt);
  table.rows.back()[table.columns.size() - 2].clear();
  table.rows.back().back().clear();
  return table;
}

std::string constant_text(const NamedConstant& c) {
  if (c.grade == Grade::given) return fmt::format("{} {} (given)", c.name, value_text(c, c.value));
  return fmt::format("{} {} ({}, {} to {})", c.name, value_text(c, c.value), to_text(c.grade),
                     value_text(c, c.low), value_text(c, c.high));
}

std::string draws_part(const Explanation& e) {
  if (!e.draws) return "";
  const GapDraws& draws = *e.draws;
  std::string text = "\n" + wrap(draws_text(e), line_width(), 0) + "\n\n";
  TextTable sides{{"8 of 10 draws", " step", " tok/s/GPU", " memory"}};
  for (const auto& [name, side] : {std::pair{"A", &draws.a}, std::pair{"B", &draws.b}})
    sides.rows.push_back(
        {name,
         fmt::format("{} to {}", to_text(Seconds{side->step_time.low}),
                     to_text(Seconds{side->step_time.high})),
         fmt::format("{:.0f} to {:.0f}", side->throughput.low, side->throughput.high),
         fmt::format("{} to {}", to_text(Bytes{side->memory.low}),
                     to_text(Bytes{side->memory.high}))});
  text += render(sides);
  return text + movers_table(draws.movers, "the gap", "gap", signed_text);
}

std::string what_if(const Explanation& e) {
  constexpr std::size_t most_carriers = 3;
  std::string text;
  for (const ExplainRow& row : e.rows) {
    if (!row.cause || !matters(e, row)) continue;
    text +=
        "\n" +
        wrap(fmt::format("{}: {}", name_of(row), counterfactual_text(e, row)), line_width(), 0) +
        "\n";
    for (std::size_t i = 0; i < std::min(most_carriers, row.carriers.size()); ++i)
      text += fmt::format("  made of {}\n", constant_text(row.carriers[i].constant));
  }
  return text;
}

std::string part_text(const PathPart& part, std::size_t most) {
  std::vector<std::string> words;
  for (const auto& [cause, seconds] : part.causes) {
    if (words.size() == most || seconds.value < 0.01 * part.seconds.value) break;
    words.push_back(fmt::format("{} {}", to_text(cause), to_text(seconds)));
  }
  return fmt::format("{}", fmt::join(words, ", "));
}

std::string path_text(const ExplainedSide& side, std::string_view name) {
  TextTable table{{fmt::format("{} waits for", name), " time", "made of"}};
  for (const PathPart& part : side.path)
    table.rows.push_back({title_of(part), to_text(part.seconds), part_text(part, 5)});
  return "\n" + render(table);
}

std::string notes(const Explanation& e) {
  std::string text;
  if (e.parting)
    text +=
        fmt::format("\nthey first differ in {}: A {} ({}), B {} ({})\n", title_of(e.parting->first),
                    to_text(e.parting->first.seconds), part_text(e.parting->first, 2),
                    to_text(e.parting->second.seconds), part_text(e.parting->second, 2));
  if (e.at_limit && !e.at_limit->flips) text += "\n" + at_limit_text(e) + "\n";
  for (const auto& [title, list] : {std::pair{"equal on both sides", &e.fairness.equal},
                                    std::pair{"not equal", &e.fairness.unequal}}) {
    if (!list->empty()) text += fmt::format("\n{}\n", title);
    for (const std::string& note : *list) text += "  " + note + "\n";
  }
  if (!e.draws)
    text +=
        "\nnote: --samples 8 adds ranges to all rows, and the constants that move the gap most\n";
  return text;
}

Records side_records(const ExplainedSide& side, const std::optional<SideRanges>& ranges) {
  const auto range = [&](Range SideRanges::*member) {
    return ranges ? std::optional((*ranges).*member) : std::nullopt;
  };
  const RecordList path = list_of(side.path, [](const PathPart& part) -> Records {
    Records causes;
    for (const auto& [cause, seconds] : part.causes)
      causes.emplace_back(to_text(cause), "one key for each cause", seconds);
    return {{"part", "a stretch of the step", title_of(part)},
            {"seconds", "it takes", part.seconds},
            {"causes", "of it", causes}};
  });
  return {
      {"scenario", "as it was called", side.label},
      {"title", "its name", side.title},
      {"step_time_s", "one optimizer step", side.step_time},
      {"tokens_per_second_per_gpu", "padding left out", side.tokens_per_second_per_gpu},
      {"sequences", "of a step, all ranks", side.sequences},
      {"tokens", "of a step without padding, all ranks", side.tokens},
      {"energy_j", "of a step: GPUs, hosts and the network",
       side.energy.value > 0 ? std::optional(side.energy.value) : std::nullopt, Measure::joules},
      {"peak_memory_bytes", "needed of a GPU", Bytes{side.needed}},
      {"capacity_bytes", "what a framework can allocate", Bytes{side.capacity}},
      {"verdict", "fits, tight or oom", to_text(side.fit)},
      {"measured_s", "what somebody saw a step take", side.measured, Measure::seconds},
      {"operations", "that were replayed", side.operations},
      played_record(side.played_by),
      {"step_time_interval_s", "8 of 10 draws: step time", range(&SideRanges::step_time),
       Measure::seconds},
      {"tokens_per_second_per_gpu_interval", "8 of 10 draws: throughput",
       range(&SideRanges::throughput)},
      {"peak_memory_interval_bytes", "8 of 10 draws: memory", range(&SideRanges::memory),
       Measure::bytes},
      {"critical_path", "what the step waits for", path}};
}

Records figure_records(const ExplainRow& row) {
  const auto of_cause = [&](Seconds seconds) {
    return row.cause ? std::optional(seconds) : std::nullopt;
  };
  const std::string_view only_in = row.in_a() && row.in_b() ? "" : row.in_a() ? "a" : "b";
  return {{"cause", "cause; idle: the rank waits for others", name_of(row)},
          {"seconds", "of the gap: exposed in A less exposed in B", row.seconds},
          {"counterfactual_s", "the step that has the cause, of two A, without it",
           of_cause(row.in_a() ? row.a_without : row.b_without)},
          {"a_without_s", "A without it", of_cause(row.a_without)},
          {"b_without_s", "B without it", of_cause(row.b_without)},
          {"only_in", "a or b, if the other does not have it", only_in},
          {"a_exposed_s", "exposed in A", row.a.exposed},
          {"a_hidden_s", "hidden in A", row.a.hidden},
          {"b_exposed_s", "exposed in B", row.b.exposed},
          {"b_hidden_s", "hidden in B", row.b.hidden}};
}

Records cause_records(const Explanation& e, const ExplainRow& row) {
  return joined({figure_records(row),
                 {{"interval_s", "8 of 10 draws: of the gap", row.range, Measure::seconds},
                  {"counterfactual", "the same in words", counterfactual_text(e, row)},
                  {"constants", "what it is made of, the most important first",
                   list_of(row.carriers, [](const Carrier& carrier) {
                     return joined({constant_records(carrier.constant),
                                    {{"weight", "change of the cause by that of the constant",
                                      carrier.weight}}});
                   })}}});
}

Records draws_records(const GapDraws& draws) {
  return {{"made", "draws of the constants", draws.draws},
          {"most", "that were allowed", draws.most},
          {"a_slower", "in which A takes longer", draws.a_slower},
          {"same_largest_row", "in which the largest row is the same", draws.same_top},
          {"gap_interval_s", "8 of 10 draws", draws.gap, Measure::seconds},
          {"moved_most_by", "constants that move the gap most",
           mover_list(draws.movers, "gap_at_low_s", "gap_at_high_s")}};
}

Records limit_records(const AtLimit& at) {
  return {{"a_micro_batch", "the largest that fits", at.micro_batch_a},
          {"b_micro_batch", "the largest that fits", at.micro_batch_b},
          {"a_tokens_per_second_per_gpu", "with that", at.rate_a},
          {"b_tokens_per_second_per_gpu", "with that", at.rate_b},
          {"flips", "the other one wins there", at.flips}};
}

}  // namespace

std::string explanation_text(const Explanation& e) {
  return head(e) + settings_part(e) + "\n" + render(gap_table(e)) + draws_part(e) + what_if(e) +
         path_text(e.a, "A") + path_text(e.b, "B") + notes(e) +
         played_text(together(e.a.played_by, e.b.played_by));
}

std::string explanation_csv(const Explanation& e) {
  return to_csv(list_of(e.rows, [](const ExplainRow& row) {
                  const auto low = row.range ? std::optional(row.range->low) : std::nullopt;
                  const auto high = row.range ? std::optional(row.range->high) : std::nullopt;
                  return joined(
                      {figure_records(row),
                       {{"low_s", "8 of 10 draws", low}, {"high_s", "8 of 10 draws", high}}});
                }).items);
}

Records explanation_records(const Explanation& e) {
  const auto ranges = [&](SideRanges GapDraws::*side) {
    return e.draws ? std::optional((*e.draws).*side) : std::nullopt;
  };
  const auto parting = e.parting ? std::optional(title_of(e.parting->first)) : std::nullopt;
  return {{"summary", "in a sentence", summary_text(e)},
          {"a", "the first step", side_records(e.a, ranges(&GapDraws::a))},
          {"b", "the second step", side_records(e.b, ranges(&GapDraws::b))},
          {"gap_s", "A takes so much longer than B", e.gap()},
          {"rows", "they add up to the gap",
           list_of(e.rows, [&](const ExplainRow& row) { return cause_records(e, row); })},
          parts_if("settings", "the gap by setting", e.settings, settings_records),
          parts_if("draws", "how sure it is", e.draws, draws_records),
          {"parting", "where the two first differ", parting},
          {"equal", "on both sides", list_of(e.fairness.equal)},
          {"not_equal", "what makes it unfair", list_of(e.fairness.unequal)},
          {"does_not_fit", "what could not run", list_of(e.fairness.too_large)},
          parts_if("at_limit", "each with the largest micro-batch that fits", e.at_limit,
                   limit_records)};
}

Records explain_sample() {
  Explanation e;
  PathPart part;
  part.causes = {{Cause::compute, {}}};
  e.a.path = e.b.path = {part};
  e.parting.emplace();
  e.at_limit.emplace();
  e.draws.emplace().movers = {Mover{}};
  ExplainRow& row = e.rows.emplace_back();
  row.cause = Cause::compute;
  row.carriers = {Carrier{}};
  SettingRows& settings = e.settings.emplace();
  settings.rows.emplace_back().changed.emplace();
  settings.idle.emplace_back();
  return explanation_records(e);
}

}  // namespace stepsim
