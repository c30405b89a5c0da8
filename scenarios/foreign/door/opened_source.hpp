// This opens a file of another program: what it says, or what the program that it starts is told.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/foreign/door/source_kinds.hpp"
#include "scenarios/foreign/launch/script_source.hpp"
#include "scenarios/foreign/table/known_program.hpp"
#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

// A file of settings, or the arguments of a program, and what is known of where they come from.
struct OpenedSource {
  const SourceKind* kind = nullptr;
  Document document;
  std::string file;
  std::optional<ScriptSource> script{};
  std::vector<UnknownArgument> unknown{};
  std::vector<CodeCell> cells{};        // of a notebook
  std::optional<KnownProgram> known{};  // that is started, and is not here
};

OpenedSource open_source(const Catalogue& data, const std::string& file, Settings settings);

// A file of settings as it stands; comments in JSON are taken.
Document open_document(const std::string& file);

// Throws where an argument that only a run would know is one that counts.
void refuse_unknown(const SourceQuestion& question, const OpenedSource& opened);

}  // namespace stepsim
