// A shell script is a source: this finds which of the trainings that it starts is asked about.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "scenarios/foreign/launch/launches.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

// Tells a shell script by its ending, or by its first line.
bool is_shell_script(const std::string& file);

struct ScriptSource {
  ShellScript script;
  Launch launch;
  std::vector<EarlierLaunch> earlier;
  std::vector<std::string> notes;
};

// `is_training` knows the programs that are read, `known` names them for the message about a script
// that starts none. `number`: which of the trainings, from 1 on. Throws UserError.
struct ScriptQuestion {
  Catalogue data;
  std::string file;
  std::span<const std::pair<std::string, std::string>> given;
  std::function<bool(const Launch&, const ShellScript&)> is_training;
  std::string known;
  std::size_t number = 1;
  // The script's text where it is a part of the file, which is called so, and files that it finds.
  std::optional<std::string> text{};
  std::string title = "a shell script";
  std::map<std::string, ShellFile> files{};
};
ScriptSource read_script_source(const ScriptQuestion& question);

}  // namespace stepsim
