// `fit` chooses constants that predictions rest on so that they meet what was measured.
#include <fmt/format.h>

#include <array>
#include <vector>

#include "cli/command.hpp"
#include "cli/fits.hpp"
#include "cli/options.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/table.hpp"

namespace stepsim {
namespace {

struct Subject {
  std::string_view name;
  std::string_view options;  // that it has
  int (*fit)(const CommandLine&, std::span<const std::string>, const Options&);
};
constexpr std::array subjects{Subject{"stack", "samples write", fit_stack},
                              Subject{"kernels", "json output", fit_kernels},
                              Subject{"network", "json output", fit_network}};

}  // namespace

std::string source_table(std::span<const FittedSource> sources) {
  TextTable table{{"source", " rows", " median as stated", " fitted", " fitted without it"}};
  for (const FittedSource& s : sources)
    table.rows.push_back({s.name, fmt::format("{}", s.rows), percent(s.stated), percent(s.fitted),
                          s.held_out > 0 ? percent(s.held_out) : "-"});
  return render(table);
}

RecordList source_list(std::span<const FittedSource> sources) {
  return list_of(sources, [](const FittedSource& s) -> Records {
    return {{"name", "where rows are from", s.name},
            {"rows", "of it", s.rows},
            {"stated_median_abs_error", "as stated", s.stated, Measure::share},
            {"fitted_median_abs_error", "fitted", s.fitted, Measure::share},
            {"held_out_median_abs_error", "fitted without it", s.held_out, Measure::share}};
  });
}

int fit_command(const CommandLine& line) {
  const auto options = parse("fit", line.words);
  if (!options) return exit_code::yes;
  std::vector<std::string> names = texts_of(subjects, &Subject::name);
  if (options->words.empty())
    throw UserError(
        fmt::format("fit what: {}? usage: {}", one_of(names), usage_of_command("fit").call));
  const std::string& wanted = options->words.front();
  for (const Subject& subject : subjects) {
    if (subject.name != wanted) continue;
    for (const auto& [name, value] : options->values)
      if (subject.options.find(name) == std::string_view::npos)
        throw UserError(fmt::format("--{}: means nothing with fit {}", name, wanted));
    return subject.fit(line, std::span(options->words).subspan(1), *options);
  }
  throw UserError(fmt::format("fit: expected {}, found \"{}\"{}", one_of(names), wanted,
                              did_you_mean(wanted, names)));
}

}  // namespace stepsim
