// Many files wrap a training in something else: a notebook, a job of a cluster, a Makefile. What is
// wrapped is a program's text or a script, which are read as such; the wrapping says on which
// machine they run.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/text/code_cells.hpp"
#include "scenarios/foreign/text/shell_words.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

struct WrappedSource {
  std::string title{};   // "a Jupyter notebook"
  std::string python{};  // a program's text, and
  std::string shell{};   // a script, each in the lines of the file; empty: there is none
  std::map<std::string, ShellFile> files{};  // that it writes, by their names
  std::string gpu{}, why_gpu{};              // "T4", "the notebook's gpuType is T4"
  std::optional<std::int64_t> gpus{}, nodes{};
  std::string why_gpus{};
  // Arguments of a program of this kind, "trl", in place of a text.
  std::string kind{}, program{};
  std::vector<NamedValue> settings{};
  std::vector<CodeCell> cells{};  // of a notebook
  std::vector<std::string> notes{};
  std::string nothing{};  // why it wraps nothing that trains, for the message; empty: not known
};

// Return whether a list, or one value, stands at the key.
bool is_list(const Table& table, std::string_view key);
bool is_text(const Table& table, std::string_view key);

// Returns text that begins in this line of a file: with as many empty lines before it.
std::string in_line(int line, std::string_view text);
// Returns a word as a shell reads it back.
std::string shell_quoted(std::string_view word);

}  // namespace stepsim
