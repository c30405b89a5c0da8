#include "cli/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/program_options.hpp>

#include "cli/screen.hpp"
#include "cli/source_options.hpp"
#include "cli/usage_text.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

namespace po = boost::program_options;

std::vector<std::string> names_of(const Usage& usage) {
  std::vector<std::string> names{"--help"};
  for (const OptionSpec& option : usage.options) names.push_back(fmt::format("--{}", option.name));
  return names;
}

double size_or_throw(std::string_view option, std::string_view text) {
  const auto parsed = parse_quantity(text);
  if (parsed && parsed->dimension == Dimension::bytes && parsed->value >= 1 &&
      parsed->value <= 1e18)
    return parsed->value;
  if (parsed && parsed->dimension == Dimension::ratio)
    throw UserError(
        fmt::format("--{}: the unit is missing: expected a size such as \"64KiB\","
                    " found \"{}\"",
                    option, text));
  throw UserError(fmt::format("--{}: expected a size such as \"64KiB\", found \"{}\"; units: {}",
                              option, text, known_units(Dimension::bytes)));
}

po::options_description described(std::span<const OptionSpec> options) {
  po::options_description description;
  description.add_options()("help,h", "");
  for (const OptionSpec& option : options) {
    std::string names = option.name;
    if (option.letter != 0) names += fmt::format(",{}", option.letter);
    if (option.value.empty())
      description.add_options()(names.c_str(), "");
    else
      description.add_options()(names.c_str(), po::value<std::string>(), "");
  }
  return description;
}

}  // namespace

bool Options::has(std::string_view name) const {
  return get(name).has_value();
}

std::optional<std::string> Options::get(std::string_view name) const {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  return std::nullopt;
}

std::vector<std::string> all_of(const Options& options, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : options.values)
    if (key == name) values.push_back(value);
  return values;
}

std::vector<std::pair<std::string, std::string>> said_settings_of(const Options& options,
                                                                  std::string_view option) {
  std::vector<std::pair<std::string, std::string>> settings;
  for (const auto& [name, value] : options.values) {
    if (name != option) continue;
    const std::size_t equals = value.find('=');
    if (equals == std::string::npos || equals == 0)
      throw UserError(fmt::format("--{}: expected KEY=VALUE such as strategy.zero=2, found \"{}\"",
                                  option, value));
    settings.emplace_back(value.substr(0, equals), value.substr(equals + 1));
  }
  return settings;
}

std::vector<std::pair<std::string, std::string>> shared_settings_of(const Options& options) {
  auto settings = source_settings_of(options);
  append(settings, said_settings_of(options, "both"));
  return settings;
}

std::vector<std::pair<std::string, std::string>> settings_of(const Options& options) {
  auto settings = shared_settings_of(options);
  append(settings, said_settings_of(options));
  return settings;
}

std::optional<Options> parse(std::string_view command, std::span<const std::string> words) {
  return parse(usage_of_command(command), words);
}

std::optional<Options> parse(const Usage& usage, std::span<const std::string> words) {
  if (words.size() == 1 && words.front().starts_with(help_as)) {
    say("{}", usage_as(words.front().substr(help_as.size()), usage));
    return std::nullopt;
  }
  const po::options_description description = described(usage.options);
  Options result;
  try {
    const auto parsed =
        po::command_line_parser({words.begin(), words.end()})
            .options(description)
            .positional(po::positional_options_description().add("word", -1))
            .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
            .allow_unregistered()
            .run();
    for (const auto& option : parsed.options) {
      if (option.string_key == "help") {
        say("{}", help_text(usage));
        return std::nullopt;
      }
      if (option.position_key >= 0) {
        result.words.push_back(option.value.front());
        continue;
      }
      if (option.unregistered) {
        const std::string& said = option.original_tokens.front();
        const std::string name = said.substr(0, said.find('='));
        throw UserError(
            fmt::format("unknown option {}{}", name, did_you_mean(name, names_of(usage))));
      }
      const auto spec = std::ranges::find(usage.options, option.string_key, &OptionSpec::name);
      const bool repeats = spec != usage.options.end() && spec->repeats;
      if (result.has(option.string_key) && !repeats)
        throw UserError(fmt::format("--{} is given twice", option.string_key));
      result.values.emplace_back(option.string_key,
                                 option.value.empty() ? "" : option.value.front());
    }
  } catch (const po::invalid_command_line_syntax& error) {
    const bool extra = error.kind() == po::invalid_command_line_syntax::extra_parameter;
    throw UserError(fmt::format("{}: {}", error.get_option_name(),
                                extra ? "takes no value" : "expected a value"));
  } catch (const po::error_with_option_name& error) {
    throw UserError(fmt::format("{}: expected a value", error.get_option_name()));
  } catch (const po::error& error) {
    throw UserError(error.what());
  }
  if (result.words.size() > usage.most_words)
    throw UserError(
        fmt::format("unexpected \"{}\"; usage: {}", result.words[usage.most_words], usage.call));
  if (result.words.empty() && !usage.asks.empty())
    throw UserError(fmt::format("{}? usage: {}", usage.asks, usage.call));
  return result;
}

std::string word_of(const Options& options, std::string_view name, std::string_view fallback,
                    std::initializer_list<std::string_view> allowed) {
  std::string text = options.get(name).value_or(std::string(fallback));
  const std::vector<std::string> names(allowed.begin(), allowed.end());
  if (!holds(names, text))
    throw UserError(fmt::format("--{}: expected {}, found \"{}\"{}", name, one_of(names), text,
                                did_you_mean(text, names)));
  return text;
}

void require_one_form(const Options& options, std::initializer_list<std::string_view> forms) {
  std::string given;
  for (const std::string_view form : forms) {
    if (!options.has(form)) continue;
    if (!given.empty())
      throw UserError(fmt::format("--{} and --{}: only one of them can be printed", given, form));
    given = form;
  }
}

std::vector<std::uint32_t> parse_ranks(std::string_view text) {
  return parse_numbers("--ranks", "ranks", text);
}

std::vector<double> parse_sizes(std::string_view text) {
  std::vector<double> sizes;
  const auto ends = split(text, ':');
  if (ends.size() == 1) {
    for (const std::string_view part : split(text, ','))
      sizes.push_back(size_or_throw("sizes", part));
    return sizes;
  }
  if (ends.size() != 2)
    throw UserError(
        fmt::format("--sizes: expected FROM:TO such as 64KiB:16GiB, found \"{}\"", text));
  const double first = size_or_throw("sizes", ends.front()),
               last = size_or_throw("sizes", ends.back());
  if (last < first)
    throw UserError(
        fmt::format("--sizes: \"{}\" runs backwards; write {}:{}", text, ends[1], ends[0]));
  sizes.push_back(first);
  while (sizes.back() * 2 <= last) sizes.push_back(sizes.back() * 2);
  return sizes;
}

std::optional<double> size_of(const Options& options, std::string_view name) {
  const auto text = options.get(name);
  return text ? std::optional(size_or_throw(name, *text)) : std::nullopt;
}

std::optional<std::uint32_t> count_of(const Options& options, std::string_view name,
                                      std::uint32_t low, std::uint32_t high) {
  const auto text = options.get(name);
  if (!text) return std::nullopt;
  return parse_count(fmt::format("--{}", name), *text, low, high);
}

}  // namespace stepsim
