// `check` says whether a claim holds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/studies/claims/claim_file.hpp"
#include "analysis/studies/claims/claim_sentence.hpp"
#include "analysis/studies/claims/judgement.hpp"
#include "cli/command.hpp"
#include "cli/job_cost.hpp"
#include "cli/progress.hpp"
#include "cli/result_kinds.hpp"
#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "scenarios/load/load_scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> claim_files(const CommandLine& line,
                                     const std::vector<std::string>& words) {
  if (!words.empty()) return words;
  std::vector<std::string> files;
  std::error_code failed;
  for (const std::string& folder : line.data.places("claims"))
    for (const auto& entry : fs::directory_iterator(folder, failed))
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  if (files.empty())
    throw UserError({{line.data.file("claims"), 0, "", "holds no claims (*.yaml)"}});
  std::ranges::sort(files);
  return files;
}

// A sentence has blanks, and is no file.
bool is_sentence(const std::string& word) {
  std::error_code failed;
  return word.find(' ') != std::string::npos && !word.ends_with(".yaml") &&
         !fs::exists(word, failed);
}

bool speaks_of(const Claim& claim, std::size_t scenario) {
  return std::ranges::any_of(claim.assertions, [&](const Assertion& assertion) {
    return std::ranges::any_of(assertion.quantity.metrics,
                               [&](const MetricOf& metric) { return metric.scenario == scenario; });
  });
}

// The first is A, the next is B; the last one has the changes, and A where the sentence is about A
// alone. Machine and model are those of all.
Claim sentence_of(const CommandLine& line, const Options& options) {
  SentenceQuestion question;
  std::optional<Cluster> first;
  const std::span<const std::string> sources = std::span(options.words).subspan(1);
  const std::vector<Setting> shared = shared_settings_of(options);
  const std::vector<Setting> changes = settings_of(options);  // those, then --set
  if (sources.empty())
    throw UserError(fmt::format("\"{}\": which scenarios? name them behind the sentence",
                                options.words.front()));
  const auto add = [&](const std::string& source, const std::vector<Setting>& settings) {
    const char letter = static_cast<char>('A' + question.scenarios.size());
    // Its problems are told before anything is replayed.
    const Scenario scenario = load_scenario(line.data, source, settings);
    if (!first) first = scenario.cluster;
    question.scenarios.push_back({std::string(1, letter), source, settings});
  };
  for (const std::string& source : sources)
    add(source, &source == &sources.back() && sources.size() > 1 ? changes : shared);
  const bool changed = changes.size() > shared.size();
  if (sources.size() == 1 && changed) add(sources.front(), changes);
  question.price = rates_of(options, line.data, *first).price;
  Claim claim = claim_of_sentence(options.words.front(), question);
  const std::size_t last = question.scenarios.size() - 1;
  if (!changed || speaks_of(claim, last)) return claim;
  if (sources.size() > 1)
    throw UserError(fmt::format("--set changes {}, of which \"{}\" says nothing",
                                question.scenarios[last].alias, options.words.front()));
  question.scenarios = {{"A", sources.front(), changes}};
  return claim_of_sentence(options.words.front(), question);
}

std::vector<Claim> claims_of(const CommandLine& line, const Options& options) {
  if (!options.words.empty() && is_sentence(options.words.front()))
    return {sentence_of(line, options)};
  if (options.has("set") || options.has("price") || !source_settings_of(options).empty())
    throw UserError(
        "--set, --price and what says machine or model belong to a sentence such as \"A fits\"; a "
        "file of claims has `set` of its own");
  std::vector<Claim> claims;
  for (const std::string& file : claim_files(line, options.words))
    for (Claim& claim : read_claims(line.data, file)) claims.push_back(std::move(claim));
  return claims;
}

// Says what was taken for the scenarios of a sentence.
std::string taken_for(const Catalogue& data, const Claim& claim, bool brief) {
  const auto scenarios = mapped(claim.scenarios, [&](const ClaimScenario& each) {
    return load_scenario(data, each.source, each.settings);
  });
  std::string lines;
  for (std::size_t i = 0; brief && i < scenarios.size(); ++i)
    lines += fmt::format("{}: {}", claim.scenarios[i].alias, taken_in_brief(scenarios[i]));
  if (brief) return lines;
  std::vector<ReadSide> sides;
  sides.reserve(scenarios.size());
  for (std::size_t i = 0; i < scenarios.size(); ++i)
    sides.push_back({claim.scenarios[i].alias, claim.scenarios[i].source, scenarios[i]});
  return taken_text(sides);
}

std::string brief_text(const std::vector<JudgedClaim>& claims) {
  std::string text;
  for (const JudgedClaim& claim : claims)
    text += claims.size() == 1 ? sentence_text(claim) + "\n"
                               : fmt::format("{}: {}\n", claim.id, sentence_text(claim));
  return text;
}

// Writes "25 % of 24 draws".
std::string share(const JudgedClaim& claim) {
  if (!claim.probability) return "-";
  return fmt::format("{:.0f} % of {} draws", 100 * *claim.probability,
                     claim.conditions.front().draws);
}

std::string text_of(const std::vector<JudgedClaim>& claims) {
  std::string text;
  const std::size_t width = line_width();
  std::array<std::size_t, 4> counts{};
  for (const JudgedClaim& claim : claims) {
    ++counts[static_cast<std::size_t>(claim.verdict)];
    text += fmt::format("{:<9}  {:>17}  {}\n", to_text(claim.verdict), share(claim), claim.id);
    if (claim.text != claim.id) text += fmt::format("  {}\n", wrap(claim.text, width, 2));
    if (claim.probability) text += fmt::format("  {}\n", wrap(sentence_text(claim), width, 2));
    text += fmt::format("  -> {}\n", wrap(claim.reason, width, 5));
    if (claim.probability) text += fmt::format("     {}\n", wrap(movers_text(claim), width, 5));
    for (const std::string& condition : condition_texts(claim))
      text += fmt::format("     under {}\n", wrap(condition, width, 11));
    text += '\n';
  }
  return text + fmt::format("{} supported, {} refuted, {} depend, {} undecided\n", counts[0],
                            counts[1], counts[2], counts[3]);
}

Records figure_records(const JudgedFigure& each) {
  return {{"draws", "of the constants", each.draws},
          {"value", "at the stated constants", each.stated},
          {"low", "of 8 of 10 draws", each.low},
          {"high", "of 8 of 10 draws", each.high}};
}

Records scenario_records(std::string_view alias, const std::optional<Records>& asked) {
  return {{"name", "in the claim", alias},
          {"asked", "what was read; null: the settings make no scenario", asked}};
}

// Writes "zero3: cluster.nodes=4". The first condition is the claim as it stands.
std::vector<std::string> changes_of(const Claim& claim, std::size_t condition) {
  std::vector<std::string> changes;
  if (condition == 0) return changes;
  for (const auto& [scenario, settings] : claim.conditions[condition - 1].changes)
    for (const auto& [key, value] : settings)
      changes.push_back(fmt::format("{}: {}={}", claim.scenarios[scenario].alias, key, value));
  return changes;
}

Records claim_records(const Claim& asked, const RecordList& scenarios, const JudgedClaim& claim) {
  const RecordList movers = list_of(claim.movers, [](const Mover& mover) -> Records {
    return {{"constant", "constant", mover.constant.name},
            {"grade", "how far it can be trusted", to_text(mover.constant.grade)},
            {"value_at_low", "with the constant at its low end", mover.at_low},
            {"value_at_high", "with the constant at its high end", mover.at_high}};
  });
  std::size_t condition = 0;
  const RecordList conditions = list_of(claim.conditions, [&](const JudgedCondition& each) {
    return joined(
        {{{"name", "of the condition", each.name},
          {"set", "in its scenarios, as NAME: KEY=VALUE", list_of(changes_of(asked, condition++))},
          {"probability", "share of the draws in which it holds", each.probability(),
           Measure::share}},
         figure_records(each)});
  });
  const RecordList parts = list_of(claim.parts, [](const JudgedPart& each) {
    return joined(
        {{{"text", "a part of the claim", each.text}, {"holds", "in so many draws", each.holds}},
         figure_records(each)});
  });
  return {
      {"id", "of the claim", claim.id},
      {"text", "what is claimed", claim.text},
      {"verdict", "supported, refuted, depends or undecided", to_text(claim.verdict)},
      {"probability", "share of the draws in which it holds", claim.probability, Measure::share},
      {"sentence", "the verdict in words", sentence_text(claim)},
      {"reason", "of the verdict", claim.reason},
      {"scenarios", "that it is about", scenarios},
      {"conditions", "under each of which it was judged", conditions},
      {"parts", "if it has several", parts},
      {"to_measure", "constants that would decide it", list_of(claim.to_measure)},
      {"moved_most_by", "constants that move the figure most", movers}};
}

Records claim_list(const RecordList& claims) {
  return {{"claims", "in the order of their files", claims}};
}

Records records_of(const Catalogue& data, const std::vector<Claim>& claims,
                   const std::vector<JudgedClaim>& judged) {
  auto claim = claims.begin();
  return claim_list(list_of(judged, [&](const JudgedClaim& each) {
    const RecordList scenarios = list_of(claim->scenarios, [&](const ClaimScenario& own) {
      return scenario_records(own.alias, asked_of(data, {own.source, own.settings}));
    });
    return claim_records(*claim++, scenarios, each);
  }));
}

}  // namespace

Records check_sample() {
  JudgedClaim claim;
  claim.conditions.emplace_back();
  claim.parts.emplace_back();
  claim.movers.emplace_back();
  const RecordList scenarios = list_of(
      std::array{asked_sample()}, [](const Records& each) { return scenario_records("", each); });
  return claim_list(list_of(std::array{claim}, [&](const JudgedClaim& each) {
    return claim_records({}, scenarios, each);
  }));
}

int check_command(const CommandLine& line) {
  const auto options = parse("check", line.words);
  if (!options) return exit_code::yes;
  const bool sentence = !options->words.empty() && is_sentence(options->words.front());
  const std::vector<Claim> claims = claims_of(line, *options);
  JudgementOptions study;
  study.data = line.data;
  study.progress = progress_bar("replays");
  study.most_draws = count_of(*options, "draws", 1, 100000).value_or(study.most_draws);
  study.seed = count_of(*options, "seed", 0, 1000000000).value_or(1);
  if (const auto workers = count_of(*options, "workers", 1, 1024)) study.workers = *workers;
  const std::vector<JudgedClaim> judged = judge(claims, study);
  if (options->has("json"))
    print_result(check_kind, {}, records_of(line.data, claims, judged));
  else if (options->has("brief"))
    say("{}{}", brief_text(judged), sentence ? taken_for(line.data, claims.front(), true) : "");
  else
    say("{}{}", sentence ? taken_for(line.data, claims.front(), false) : "", text_of(judged));
  const bool all = std::ranges::all_of(
      judged, [](const JudgedClaim& claim) { return claim.verdict == Verdict::supported; });
  return all ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
