#include <stdexcept>

#include "analysis/studies/claims/claim_file.hpp"
#include "analysis/studies/claims/claim_sentence.hpp"
#include "analysis/studies/fidelity/kernel_tables.hpp"
#include "analysis/studies/outcome/metrics.hpp"
#include "analysis/studies/sweep/sweep_journal.hpp"
#include "analysis/studies/sweep/sweep_plan.hpp"
#include "analysis/studies/sweep/sweep_search.hpp"
#include "cli/mcp/protocol.hpp"
#include "cli/options.hpp"
#include "cli/serve/question.hpp"
#include "cli/source_options.hpp"
#include "scenarios/read/scenario_reader.hpp"
#include "scenarios/rows/nccl_output.hpp"
#include "sim/base/config.hpp"
#include "sim/base/error.hpp"
#include "tests/fuzz/targets.hpp"

namespace stepsim::fuzz {
namespace {

void read_collective_rows(const std::string& bytes) {
  const CsvTable table = parse_csv(bytes, "file.csv");
  const std::vector<MeasuredCollective> rows = measured_collectives(table);
  for (const MeasuredCollective& row : rows) machine_of(data, row);
  row_notes(table, rows);
}

void read_nccl(const std::string& bytes) {
  if (is_nccl_output(bytes)) read_nccl_output(bytes, "all_reduce.txt");
}

void read_kernel_rows(const std::string& bytes) {
  families_of(predict_kernels(data, std::vector{parse_csv(bytes, "file.csv")}).kernels);
}

void read_claim_file(const std::string& bytes) {
  read_claims(data, as_file("claims.yaml", bytes));
}

void read_sentence(const std::string& bytes) {
  claim_of_sentence(bytes, {{{"A", "a.yaml", {}}, {"B", "b.yaml", {}}}, 2.5});
}

void expand_all(const SweepPlan& plan) {
  constexpr double most = 500;  // points: a longer grid only takes longer
  double points = 1;
  for (const Axis& axis : plan.axes) points *= static_cast<double>(axis.choices.size());
  if (points > most) return;
  for (const SweepValues& values : expand(plan)) settings_of(plan, values);
}

void read_sweep_plan(const std::string& bytes) {
  const std::string file = as_file("sweep.yaml", bytes);
  if (is_sweep_file(file)) expand_all(read_sweep_file(file));
}

void read_axis(const std::string& bytes) {
  parse_axis("--vary", bytes);
}

void read_where(const std::string& bytes) {
  expand_all({.scenario = "tiny",
              .fixed = {},
              .axes = {parse_axis("--vary", "job.micro_batch=1,2"),
                       parse_axis("--vary", "strategy.zero=1")},
              .where = {bytes}});
}

void read_search(const std::string& bytes) {
  const Search search = parse_search(bytes);
  search.statement.holds([](std::string_view name) -> Fact {
    if (name == "bottleneck") return std::string("compute");
    if (name == "fits") return {};
    return 3.0;
  });
}

// A line is written as it was read.
void read_outcome(const std::string& bytes) {
  const auto outcome = outcome_from(bytes);
  if (!outcome) return;
  const std::string line = to_line(*outcome);
  const auto again = outcome_from(line);
  if (!again || to_line(*again) != line)
    throw std::logic_error("a journal's line is written otherwise than it is read");
}

void read_journal(const std::string& bytes) {
  for (const std::string& text : {bytes, "stepsim sweep 1 identity 1/1 build\n" + bytes}) try {
      SweepJournal journal(as_file("sweep.journal", text), "identity 1/1 build");
      journal.add(journal.finished().size(), impossible("fuzzed"));
    } catch (const UserError&) {  // the other one may still be read
    }
}

void read_request(const std::string& bytes) {
  for (const PostedFile& file : read_question(bytes).files) may_be_posted(file.name);
}

// What comes back is one line of JSON, whatever was said.
void read_mcp(const std::string& bytes) {
  static const Fence fence{.data = data, .folders = {"/runs"}, .readable = {"/runs"}};
  const McpHeard heard = hear(fence, "", bytes);
  if (heard.reply.empty()) return;
  if (heard.reply.find('\n') != heard.reply.size() - 1)
    throw std::logic_error("a reply has more than one line");
  parse_document(heard.reply, "the reply").root().text("jsonrpc");
}

void read_api(const std::string& bytes) {
  for (const Tool& tool : all_tools()) try {
      read_tool_question(tool, bytes);
    } catch (const UserError&) {  // another tool may take it
    }
}

// A word a line.
void read_words(const std::string& bytes) {
  static const Usage usage = usage_of_command("run");
  std::vector<std::string> words;
  for (std::size_t from = 0; from <= bytes.size();) {
    const std::size_t end = std::min(bytes.find('\n', from), bytes.size());
    words.push_back(bytes.substr(from, end - from));
    from = end + 1;
  }
  constexpr std::size_t most = 5000;  // Boost takes a time with the square of them
  if (words.size() > most) return;
  for (const std::string& word : words) {
    if (word.starts_with("--help")) return;  // which is printed
    for (void (*each)(std::string_view) :
         {+[](std::string_view text) { parse_ranks(text); },
          +[](std::string_view text) { parse_sizes(text); },
          +[](std::string_view text) { parse_count("workers", text, 1, 64); }})
      try {
        each(word);
      } catch (const UserError&) {  // it may be a word of another kind
      }
  }
  const auto options = parse(usage, words);
  if (!options) return;
  source_settings_of(*options);
  settings_of(*options);
  word_of(*options, "output", "text", {"text", "json"});
}

constexpr Target targets[]{{"collectives", read_collective_rows},
                           {"nccl", read_nccl},
                           {"kernels", read_kernel_rows},
                           {"claims", read_claim_file},
                           {"sentence", read_sentence},
                           {"sweep-plan", read_sweep_plan},
                           {"axis", read_axis},
                           {"where", read_where},
                           {"search", read_search},
                           {"outcome", read_outcome},
                           {"journal", read_journal},
                           {"question", read_request},
                           {"mcp", read_mcp},
                           {"api", read_api},
                           {"words", read_words}};

}  // namespace

std::span<const Target> study_targets() {
  return targets;
}

}  // namespace stepsim::fuzz
