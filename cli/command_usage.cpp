// This reads what the files of cli/commands/ say of commands and their options; they are compiled
// in, as help needs no data.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/options.hpp"
#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {
namespace {

constexpr std::string_view shared_file = "shared.yaml";

Document read_command_file(const std::string& name) {
  return parse_document(command_asset(name), "cli/commands/" + name);
}

// Reads "-o --output FILE" or "--set KEY=VALUE ..." and what stands behind it.
OptionSpec option_of(std::string_view label, std::string help) {
  OptionSpec option{.name = {}, .value = {}, .help = std::move(help)};
  for (std::string_view word : split(label, ' ')) {
    if (word == "...")
      option.repeats = true;
    else if (word.starts_with("--"))
      option.name = word.substr(2);
    else if (word.starts_with('-'))
      option.letter = word.back();
    else
      option.value = word;
  }
  return option;
}

std::vector<OptionSpec> options_in(const Table& options) {
  std::vector<OptionSpec> result;
  const std::vector<std::string> labels = options.keys();
  result.reserve(labels.size());
  for (const std::string& label : labels)
    result.push_back(option_of(label, options.text_or(label, "")));
  return result;
}

std::vector<OptionSpec> shared_options(std::string_view group) {
  return options_in(read_command_file(std::string(shared_file)).root().table(group));
}

// Puts in what several commands say in the same words.
void fill_shared(std::vector<OptionSpec>& options) {
  if (std::ranges::none_of(options, &std::string::empty, &OptionSpec::help)) return;
  const std::vector<OptionSpec> shared = shared_options("shared");
  for (OptionSpec& option : options)
    if (option.help.empty()) option = *std::ranges::find(shared, option.name, &OptionSpec::name);
}

}  // namespace

Usage usage_of_command(std::string_view command) {
  const Document file = read_command_file(fmt::format("{}.yaml", command));
  const Table root = file.root();
  const std::string call = root.text("call");
  // Further ways to call it stand below the first, which follows "usage: ".
  Usage usage{.brief = root.text("brief"),
              .call = fmt::format("{}", fmt::join(lines_in(call), "\n       ")),
              .summary = root.text("summary"),
              .options = options_in(root.table("options")),
              .examples = {},
              .most_words = static_cast<std::size_t>(root.integer("words", 0, 1'000'000)),
              .asks = root.text_or("asks", "")};
  fill_shared(usage.options);
  if (root.flag_or("source_options", false))
    for (OptionSpec& option : shared_options("source")) {
      option.of_source = true;
      usage.options.push_back(std::move(option));
    }
  const std::string examples = root.text_or("examples", "");
  for (const std::string_view line : lines_in(examples))
    usage.examples += fmt::format("  {}\n", line);
  file.finish();
  return usage;
}

std::vector<OptionSpec> front_options() {
  return shared_options("front");
}

}  // namespace stepsim
