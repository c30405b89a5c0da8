#include "cli/explain_output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "analysis/studies/explain/summary.hpp"
#include "cli/engine_options.hpp"
#include "cli/screen.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

std::string signed_text(Seconds value) {
  const std::string size = to_text(Seconds{std::abs(value.value)});
  return value.value < 0 ? "-" + size : value.value > 0 ? "+" + size : size;
}

// Rows beneath a thousandth of the gap and of both steps say nothing.
bool matters(const Explanation& e, const ExplainRow& row) {
  const double size =
      std::max(std::abs(e.gap().value), 1e-3 * std::max(e.a.step_time.value, e.b.step_time.value));
  return std::abs(row.seconds.value) >= 1e-2 * size;
}

// Beside the figures of a step.
std::string fitted(const std::string& text) {
  constexpr std::size_t figures = 43;
  const std::size_t room = line_width() - std::min(line_width() / 2, figures);
  return text.size() <= room ? text : text.substr(0, room - 3) + "...";
}

// What a person asked for comes first: the sentence, and what could not run.
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
  cells.push_back(row.changed && row.changed->fit == Fit::oom ? "does not fit" : "");
  return cells;
}

// Which settings differ, and what each of them carries.
std::string settings_part(const Explanation& e) {
  if (!e.settings) return "";
  const SettingRows& s = *e.settings;
  TextTable table{{"setting", "in A", "in B", " of the gap", " share"}};
  if (!s.exact) table.columns.emplace_back(" std. error");
  append(table.columns, {" A with it alone", ""});
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

std::string time_cell(const ExplainedSide& side, Cause cause, bool active) {
  const CauseTime& time = side.causes[index(cause)];
  return active ? fmt::format("{} + {}", to_text(time.exposed), to_text(time.hidden)) : "-";
}

// A cause of one side only is marked with it.
std::string only_in(const ExplainRow& row, std::string_view a, std::string_view b) {
  return std::string(row.in_a && row.in_b ? "" : row.in_a ? a : b);
}

Seconds latent_sum(const Explanation& e) {
  Seconds sum;
  for (const ExplainRow& row : e.rows)
    if (row.latent) sum += row.seconds;
  return sum;
}

// Causes that nobody gains from, were they free alone.
std::string latent_part(const Explanation& e) {
  std::vector<std::string> words;
  for (const ExplainRow& row : e.rows)
    if (row.latent && matters(e, row))
      words.push_back(fmt::format("{} {}", to_text(row.cause), signed_text(row.seconds)));
  if (words.empty()) return "";
  return "\n" +
         wrap(fmt::format("latent: free alone, {} moves neither step by a thousandth, and would "
                          "show once others are gone: {}",
                          words.size() == 1 ? "this cause" : "each of these causes",
                          fmt::join(words, ", ")),
              line_width(), 0) +
         "\n";
}

TextTable gap_table(const Explanation& e) {
  const bool drawn = !e.a.attribution.exact || !e.b.attribution.exact;
  TextTable table{{"cause", " of the gap", " share"}};
  if (drawn) table.columns.emplace_back(" std. error");
  if (e.draws) table.columns.emplace_back(" 8 of 10 draws");
  append(table.columns, {" A: exposed + hidden", " B: exposed + hidden", "only in"});
  const auto share = [&](Seconds seconds) { return share_of_gap(e, seconds); };
  for (const ExplainRow& row : e.rows) {
    if (row.latent) continue;
    std::vector<std::string> cells{std::string(to_text(row.cause)), signed_text(row.seconds),
                                   share(row.seconds)};
    if (drawn) cells.push_back(to_text(row.standard_error));
    if (e.draws) cells.push_back(signed_range(*row.range));
    cells.push_back(time_cell(e.a, row.cause, row.in_a));
    cells.push_back(time_cell(e.b, row.cause, row.in_b));
    cells.push_back(only_in(row, "A", "B"));
    table.rows.push_back(std::move(cells));
  }
  if (const Seconds latent = latent_sum(e); latent.value != 0)
    table.rows.push_back({"latent, see below", signed_text(latent), share(latent)});
  if (e.residual.value != 0)
    table.rows.push_back({"residual", signed_text(e.residual), share(e.residual)});
  table.rows.push_back({"gap", signed_text(e.gap()), share(e.gap())});
  if (e.draws) {
    if (drawn) table.rows.back().emplace_back();
    table.rows.back().push_back(signed_range(e.draws->gap));
  }
  for (auto& cells : table.rows) cells.resize(table.columns.size());
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

// Parts are shares of what all causes save together; one of them alone may save more or less.
std::string closes_most(const Explanation& e) {
  const auto most = std::ranges::max_element(e.rows, {}, &ExplainRow::closes);
  if (most == e.rows.end() || most->closes < 0.005) return "";
  return fmt::format("\nof all causes {}, freed alone, closes the most of the gap: {}\n",
                     to_text(most->cause), percent(most->closes, 0));
}

std::string what_if(const Explanation& e) {
  constexpr std::size_t most_carriers = 3;
  std::string text = closes_most(e);
  for (const ExplainRow& row : e.rows) {
    if (row.latent || !matters(e, row)) continue;
    text += "\n" +
            wrap(fmt::format("{}: {}", to_text(row.cause), counterfactual_text(e, row)),
                 line_width(), 0) +
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
  for (const auto& [name, side] : {std::pair{"A", &e.a}, std::pair{"B", &e.b}})
    if (const auto& anomaly = side->attribution.anomaly) {
      text += fmt::format("\nanomaly: {} takes {} longer once {} is free", name,
                          to_text(anomaly->slower), to_text(anomaly->cause));
      for (const Cause beside : members(anomaly->beside))
        text += fmt::format("{}{}", beside == members(anomaly->beside).front() ? " beside " : ", ",
                            to_text(beside));
      text += fmt::format(" ({} of its {} replays show the like)\n", side->attribution.anomalies,
                          side->attribution.replays);
    }
  if (e.at_limit && !e.at_limit->flips) text += "\n" + at_limit_text(e) + "\n";
  for (const auto& [title, list] : {std::pair{"equal on both sides", &e.fairness.equal},
                                    std::pair{"not equal", &e.fairness.unequal}}) {
    if (!list->empty()) text += fmt::format("\n{}\n", title);
    for (const std::string& note : *list) text += "  " + note + "\n";
  }
  if (!e.a.attribution.exact || !e.b.attribution.exact)
    text += fmt::format(
        "\nnote: with so many causes not all combinations are replayed, but {} of A and {} of B, "
        "until the\nerrors were small; --replays 4096 replays all of up to twelve causes\n",
        e.a.attribution.replays, e.b.attribution.replays);
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
      {"replays", "with causes free of cost", side.attribution.replays},
      {"exact", "all combinations were replayed", side.attribution.exact},
      {"anomalies", "replays that took longer with a cause free", side.attribution.anomalies},
      {"step_time_interval_s", "8 of 10 draws: step time", range(&SideRanges::step_time),
       Measure::seconds},
      {"tokens_per_second_per_gpu_interval", "8 of 10 draws: throughput",
       range(&SideRanges::throughput)},
      {"peak_memory_interval_bytes", "8 of 10 draws: memory", range(&SideRanges::memory),
       Measure::bytes},
      {"critical_path", "what the step waits for", path}};
}

// What the step that has the cause would take without it; of two, A.
Seconds counterfactual_of(const ExplainRow& row) {
  return row.in_a ? row.a_without : row.b_without;
}

// The figures of a row; without one, those of the residual.
Records figure_records(const Explanation& e, const ExplainRow* row) {
  const auto of = [&](const auto& member) {
    return row != nullptr ? std::optional(std::invoke(member, *row)) : std::nullopt;
  };
  const auto time = [&](const ExplainedSide& side, Seconds CauseTime::*member) {
    return row != nullptr ? std::optional(side.causes[index(row->cause)].*member) : std::nullopt;
  };
  const auto side = [](const ExplainRow& each) { return only_in(each, "a", "b"); };
  return {
      {"cause", "cause", row != nullptr ? to_text(row->cause) : "residual"},
      {"seconds", "of the gap", row != nullptr ? row->seconds : e.residual},
      {"stderr_s", "standard error of that", of(&ExplainRow::standard_error).value_or(Seconds{})},
      {"counterfactual_s", "the step that has the cause, without it", of(counterfactual_of)},
      {"a_without_s", "A without it", of(&ExplainRow::a_without)},
      {"b_without_s", "B without it", of(&ExplainRow::b_without)},
      {"only_in", "a or b, if the other does not have it", of(side)},
      {"a_exposed_s", "exposed in A", time(e.a, &CauseTime::exposed)},
      {"a_hidden_s", "hidden in A", time(e.a, &CauseTime::hidden)},
      {"b_exposed_s", "exposed in B", time(e.b, &CauseTime::exposed)},
      {"b_hidden_s", "hidden in B", time(e.b, &CauseTime::hidden)}};
}

Records cause_records(const Explanation& e, const ExplainRow* row) {
  const auto of = [&](const auto& member) {
    return row != nullptr ? std::optional(std::invoke(member, *row)) : std::nullopt;
  };
  const std::vector<Carrier> none;
  return joined(
      {figure_records(e, row),
       {{"interval_s", "8 of 10 draws: of the gap", row != nullptr ? row->range : std::nullopt,
         Measure::seconds},
        {"counterfactual", "the same in words",
         of([&](const ExplainRow& each) { return counterfactual_text(e, each); })},
        {"gap_closes_by", "share of the gap, were it free", of(&ExplainRow::closes),
         Measure::share},
        {"latent", "free alone it moves neither step by a thousandth", of(&ExplainRow::latent)},
        {"constants", "what it is made of, the most important first",
         list_of(row != nullptr ? row->carriers : none, [](const Carrier& carrier) {
           return joined(
               {constant_records(carrier.constant),
                {{"weight", "change of the cause by that of the constant", carrier.weight}}});
         })}}});
}

// Rows and, where there is one, the residual.
template <class Parts>
RecordList all_rows(const Explanation& e, const Parts& parts) {
  RecordList list = list_of(e.rows, [&](const ExplainRow& row) { return parts(e, &row); });
  if (e.residual.value != 0) list.items.emplace_back("", "", parts(e, nullptr));
  return list;
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
  return head(e) + settings_part(e) + "\n" + render(gap_table(e)) + latent_part(e) + draws_part(e) +
         what_if(e) + path_text(e.a, "A") + path_text(e.b, "B") + notes(e) +
         played_text(together(e.a.played_by, e.b.played_by));
}

std::string explanation_csv(const Explanation& e) {
  return to_csv(all_rows(e, [](const Explanation& all, const ExplainRow* row) {
                  const auto range = row != nullptr ? row->range : std::nullopt;
                  const auto low = range ? std::optional(range->low) : std::nullopt;
                  const auto high = range ? std::optional(range->high) : std::nullopt;
                  return joined(
                      {figure_records(all, row),
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
          {"residual_s", "left with every cause free", e.residual},
          {"rows", "they add up to the gap", all_rows(e, cause_records)},
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
  e.rows.emplace_back().carriers = {Carrier{}};
  SettingRows& settings = e.settings.emplace();
  settings.rows.emplace_back().changed.emplace();
  settings.idle.emplace_back();
  return explanation_records(e);
}

}  // namespace stepsim
