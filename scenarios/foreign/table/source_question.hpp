// A question is what is asked of a file of another program: the file, and what the command line
// says besides.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/foreign/launch/file_variables.hpp"
#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/table/known_program.hpp"
#include "sim/base/config.hpp"
#include "topology/catalog.hpp"
#include "topology/cluster.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// The command line knows these of a file of another program, as settings that are no key of any
// file.
using Settings = std::span<const std::pair<std::string, std::string>>;

inline constexpr std::string_view source_kind_setting = "source.kind";  // "axolotl"
inline constexpr std::string_view set_tokens_setting = "data_set.tokens";
inline constexpr std::string_view set_samples_setting = "data_set.samples";
// This setting says which of a script's launches is meant, from 1 on.
inline constexpr std::string_view launch_setting = "source.launch";

// A setting that is no key of any file: the file of Accelerate beside the one that is read.
inline constexpr std::string_view accelerate_setting = "source.accelerate";

// Returns what is set at the key; "": it is not set. The last of several counts.
std::string said(Settings settings, std::string_view key);
// Returns a number from 1 on, given with `option`; 0: it is not set.
double count_said(Settings settings, std::string_view key, std::string_view option);

// Returns whether a setting is one of a scenario; else it changes a key of the source.
bool changes_scenario(std::string_view key);
// Returns the settings for keys of the source.
std::vector<std::pair<std::string, std::string>> settings_of_source(Settings settings);

struct SourceQuestion {
  Catalogue data;
  std::string file;
  // These are keys of the scenario, which will stand over what is translated: {"job.fill", "0.9"}.
  std::span<const std::pair<std::string, std::string>> settings;
  double set_tokens = 0;                  // of the data set, once; 0: not said
  double set_samples = 0;                 // rows or pairs of the data set; 0: not said
  const Launch* launch = nullptr;         // of a script; null: the file is no script
  std::vector<EarlierLaunch> earlier{};   // launches before it in the same script
  std::vector<FileVariable> variables{};  // of the file, that count with their defaults
  std::string script{};                   // that starts the training; empty: none does
  const ShellScript* shell = nullptr;     // what that says; null: there is none
  bool own_program = false;               // that it starts: known by its arguments, not by its name
  const KnownProgram* known = nullptr;    // that one, where much is known of it

  // Returns whether a setting decides on this key: the key itself, or a block that holds it.
  bool decides(std::string_view path) const;
};

// Surroundings are what can be known before the scenario is read. Wrong names are left to that
// reading, which has the messages for them.
struct SourceSurroundings {
  std::optional<Cluster> cluster;
  std::optional<Model> model;
};
SourceSurroundings surroundings_of(const SourceQuestion& question, const Document& so_far);

// The first of these stacks that the catalogue has.
std::string first_stack(const Catalogue& data, const std::vector<std::string>& names);

}  // namespace stepsim
