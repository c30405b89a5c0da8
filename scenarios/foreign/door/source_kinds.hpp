// These are the kinds of files of other programs, and of programs that scripts start: they say how
// each is told.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/table/source_question.hpp"
#include "scenarios/foreign/table/translation.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// A kind of file has words that no other has, and words that it has beside one of those. A kind may
// also be that of a program that a script starts.
struct SourceKind {
  std::string name, title;
  std::string table{};  // of its keys; empty: its reader knows them
  std::vector<std::string> marks{}, beside{};
  Translation (*translate)(const SourceQuestion&, const Document&) = nullptr;  // a scenario already
  std::vector<std::string> programs{};   // "openrlhf.cli.train_*"
  bool takes_file = false;               // the program's first word is a file of this kind
  bool toml = false;                     // only such files are meant
  std::vector<std::string> never{};      // words that it never has
  bool sets_keys = false;                // arguments are key=value
  std::string file_option{};             // that names the file, where no word of its own does
  std::string first_word{};              // the key that the program's first word is; empty: none
  std::vector<std::string> arguments{};  // of programs of any name
  // One of these has to be there, too; if there are none, any program will do.
  std::vector<std::string> told_beside{};
  std::vector<std::string> no_programs{};  // have these arguments, and train nothing
  bool by_file{};    // its programs have usual names: the first word has to be its file
  bool low_lines{};  // of its options: --max-length is --max_length
  bool goes_on{};    // `defaults` names the file that it goes on from, and all else may stand there
};

// Returns those of source_kinds.yaml.
const std::vector<SourceKind>& known_kinds();
// Returns a file of scenarios/foreign/door/ as it was compiled in.
std::string_view door_asset(std::string_view name);
// Returns the words of `--from`.
std::vector<std::string> source_kinds();

// The kind of a file, told by what it holds, or the one that is asked for. Throws UserError when it
// is none that can be read, or two at once.
const SourceKind& kind_of(const Document& document, std::string_view asked);

// The kind of what a script starts, by its name, else by its arguments; null where it is none.
const SourceKind* kind_of(const Launch& launch, const std::string& asked);
bool is_called(const SourceKind& kind, const Launch& launch);
bool is_told(const SourceKind& kind, const Launch& launch);
// Writes "axolotl, openrlhf or trl".
std::string known_programs();
// Returns the kind of Python files that call a trainer themselves.
const SourceKind* python_kind();

}  // namespace stepsim
