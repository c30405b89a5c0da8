#include "scenarios/foreign/table/source_settings.hpp"

#include <fmt/format.h>

#include <array>

#include "scenarios/keys/head_keys.hpp"
#include "scenarios/read/anchor.hpp"
#include "scenarios/read/constants.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "sim/base/units.hpp"

namespace stepsim {
namespace {

constexpr std::array own_settings{source_kind_setting, set_tokens_setting, set_samples_setting,
                                  launch_setting, accelerate_setting};

bool is_own(std::string_view key) {
  return std::find(own_settings.begin(), own_settings.end(), key) != own_settings.end();
}

}  // namespace

std::string said(Settings settings, std::string_view key) {
  std::string value;
  for (const auto& [name, text] : settings)
    if (name == key) value = text;
  return value;
}

double count_said(Settings settings, std::string_view key, std::string_view option) {
  const std::string text = said(settings, key);
  if (text.empty()) return 0;
  const auto parsed = parse_quantity(text);
  if (!parsed || parsed->dimension != Dimension::ratio || !(parsed->value >= 1) ||
      parsed->value > 1e18)
    throw UserError(fmt::format("{}: expected a number such as 2.5e8, found \"{}\"", option, text));
  return parsed->value;
}

bool changes_scenario(std::string_view key) {
  if (names_constant(key)) return true;
  const std::string_view head = key.substr(0, key.find('.'));
  return holds(scenario_heads, head);
}

std::vector<std::pair<std::string, std::string>> settings_of_source(Settings settings) {
  std::vector<std::pair<std::string, std::string>> given;
  for (const auto& [key, value] : settings)
    if (!changes_scenario(key) && !is_own(key) && !is_anchor_setting(key))
      given.emplace_back(key, value);
  return given;
}

}  // namespace stepsim
