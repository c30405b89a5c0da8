// Many scripts start programs of others that lie nowhere near: papers' and models' own ones. A file
// of scenarios/foreign/programs/known/ says by what such a program is known, and what it does where
// its command says nothing.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "scenarios/foreign/launch/launches.hpp"
#include "sim/base/config.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

struct KnownProgram {
  std::string table;  // "programs/known/qlora", which has the keys of any program, too
  std::string title;  // "QLoRA's qlora.py"
  std::vector<std::pair<std::string, std::string>> releases{};  // {"transformers", "4.31"}
};

// Returns the program that a launch starts, known by the name of its file and by an option that few
// others have; nothing where it is not known.
std::optional<KnownProgram> known_program(const Catalogue& data, const Launch& launch);

// Lays what the program does by itself under what the command in `file` tells it; a key counts as
// told under each of the names that the program has for it.
void lay_under(const Catalogue& data, const KnownProgram& known, const Launch& launch,
               const std::string& file, Document& told);

}  // namespace stepsim
