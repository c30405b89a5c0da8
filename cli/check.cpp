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
#include "sim/base/error.hpp"
#include "sim/base/json.hpp"
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
  std::sort(files.begin(), files.end());
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

std::string json_of(const std::vector<JudgedClaim>& claims) {
  JsonWriter json;
  json.begin_object().key("claims").begin_array();
  for (const JudgedClaim& claim : claims) {
    json.begin_object()
        .member("id", claim.id)
        .member("text", claim.text)
        .member("verdict", to_text(claim.verdict));
    json.key("probability");
    claim.probability ? json.value(*claim.probability) : json.null();
    json.member("reason", claim.reason);
    json.key("conditions").begin_array();
    for (const JudgedCondition& each : claim.conditions)
      json.begin_object()
          .member("name", each.name)
          .member("probability", each.probability())
          .member("draws", static_cast<double>(each.draws))
          .member("value", each.stated)
          .member("low", each.low)
          .member("high", each.high)
          .end_object();
    json.end_array().key("parts").begin_array();
    for (const JudgedPart& each : claim.parts)
      json.begin_object()
          .member("text", each.text)
          .member("holds", static_cast<double>(each.holds))
          .member("draws", static_cast<double>(each.draws))
          .member("value", each.stated)
          .member("low", each.low)
          .member("high", each.high)
          .end_object();
    json.end_array().key("to_measure").begin_array();
    for (const std::string& name : claim.to_measure) json.value(name);
    json.end_array().key("moved_most_by").begin_array();
    for (const Mover& mover : claim.movers)
      json.begin_object()
          .member("constant", mover.constant.name)
          .member("grade", to_text(mover.constant.grade))
          .member("value_at_low", mover.at_low)
          .member("value_at_high", mover.at_high)
          .end_object();
    json.end_array().end_object();
  }
  json.end_array().end_object();
  return json.take();
}

}  // namespace

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
  fmt::print("{}", options->has("json") ? json_of(judged) : text_of(judged));
  const bool all = std::all_of(judged.begin(), judged.end(), [](const JudgedClaim& claim) {
    return claim.verdict == Verdict::supported;
  });
  return all ? exit_code::yes : exit_code::no;
}

}  // namespace stepsim
