// `check`: does a claim hold?
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "analysis/studies/claims/claim_file.hpp"
#include "analysis/studies/claims/judgement.hpp"
#include "cli/command.hpp"
#include "cli/options.hpp"
#include "cli/progress.hpp"
#include "cli/result_kinds.hpp"
#include "sim/base/error.hpp"
#include "sim/base/table.hpp"
#include "topology/catalog.hpp"

namespace stepsim {
namespace {

namespace fs = std::filesystem;

constexpr std::array option_specs{
    OptionSpec{"draws", "N",
               "most draws of the constants for a claim and condition: eight at a time while more "
               "could change the verdict (default 24)"},
    OptionSpec{"seed", "N", "of the draws (default 1)"},
    workers_option,
    json_option,
};
constexpr Usage usage{
    "stepsim check [CLAIMS.yaml...] [options]",
    "Judges claims about scenarios: supported, refuted, depends (on which condition) or undecided "
    "(and which constants to measure), each with the share of draws of the constants under which "
    "it holds, and what the steps are bound by. Without words: the claims of the catalogue. Exit "
    "code 1: not all of them are supported.",
    option_specs, "  stepsim check\n  stepsim check my-claims.yaml --draws 48 --json\n", 1000};

std::vector<std::string> files_of(const CommandLine& line, const std::vector<std::string>& words) {
  if (!words.empty()) return words;
  std::vector<std::string> files;
  std::error_code failed;
  for (const std::string& folder : data_places(line.data, "claims"))
    for (const auto& entry : fs::directory_iterator(folder, failed))
      if (entry.path().extension() == ".yaml") files.push_back(entry.path().string());
  if (files.empty())
    throw UserError({{data_file(line.data, "claims"), 0, "", "holds no claims (*.yaml)"}});
  std::ranges::sort(files);
  return files;
}

// "25 % of 24 draws"
std::string share(const JudgedClaim& claim) {
  if (!claim.probability) return "-";
  return fmt::format("{:.0f} % of {} draws", 100 * *claim.probability,
                     claim.conditions.front().draws);
}

std::string text_of(const std::vector<JudgedClaim>& claims) {
  std::string text;
  std::array<std::size_t, 4> counts{};
  for (const JudgedClaim& claim : claims) {
    ++counts[static_cast<std::size_t>(claim.verdict)];
    text += fmt::format("{:<9}  {:>17}  {}\n", to_text(claim.verdict), share(claim), claim.id);
    text += fmt::format("  {}\n", wrap(claim.text, 110, 2));
    text += fmt::format("  -> {}\n", wrap(claim.reason, 110, 5));
    if (claim.probability) text += fmt::format("     {}\n", wrap(movers_text(claim), 110, 5));
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

// "zero3: cluster.nodes=4". The first condition is the claim as it stands.
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

Records records_of(const std::string& data, const std::vector<Claim>& claims,
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
  const auto options = parse(usage, line.words);
  if (!options) return exit_code::yes;
  std::vector<Claim> claims;
  for (const std::string& file : files_of(line, options->words))
    for (Claim& claim : read_claims(line.data, file)) claims.push_back(std::move(claim));
  JudgementOptions study;
  study.data = line.data;
  study.progress = progress_bar("replays");
  study.most_draws = count_of(*options, "draws", 1, 100000).value_or(study.most_draws);
  study.seed = count_of(*options, "seed", 0, 1000000000).value_or(1);
  if (const auto workers = count_of(*options, "workers", 1, 1024)) study.workers = *workers;
  const std::vector<JudgedClaim> judged = judge(claims, study);
  if (options->has("json"))
    print_result(check_kind, {}, records_of(line.data, claims, judged));
  else
    fmt::print("{}", text_of(judged));
  const bool all = std::ranges::all_of(
      judged, [](const JudgedClaim& claim) { return claim.verdict == Verdict::supported; });
  return all ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
