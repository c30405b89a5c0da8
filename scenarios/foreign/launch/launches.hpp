// Programs that a shell script starts, with what their launchers say about the machine.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scenarios/foreign/text/shell_words.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

class Catalogue;

// A number of nodes or GPUs that only a run would know.
struct UnknownCount {
  bool nodes = false;  // else GPUs of each
  std::string option;  // "nnodes"
  ShellWord word;
};

struct Launch {
  std::string program;  // "openrlhf.cli.train_sft", "train/sft.py", "trl sft"
  int line = 0;
  std::vector<ShellWord> arguments{};
  // These are the launcher's own options, with - as _: "config_file" and the like.
  std::map<std::string, ShellWord> options{}, environment{};
  std::optional<std::int64_t> gpus{};  // of each node
  std::optional<std::int64_t> nodes{};
  std::string gpu{};      // that is asked for, or was used: "a100"
  std::string why_gpu{};  // "the notebook's gpuType is T4"; empty: the queue is asked for it
  std::string queue{};    // that is asked: "gpu_a100"
  std::vector<UnknownCount> unknown{};
  ShellWord file{};        // of settings, of the launcher itself; empty: none
  std::string why_gpus{};  // where no launcher says how many; empty: one does
  bool alone = false;      // a Python program that no launcher starts: one process
};

// A training that a script starts before the one that is asked about.
struct EarlierLaunch {
  std::string output;  // where its model goes
  std::string model;   // that it begins with
  int line = 0;
};

// Returns the launches in the order of the script. `data` is the folder with the list of launchers.
std::vector<Launch> launches_in(const Catalogue& data, const ShellScript& script);

// An argument whose value only a run would know.
struct UnknownArgument {
  std::string key;
  ShellWord word;
};

// Returns "--max-length=1" as "--max_length=1"; other words stay as they are.
ShellWord low_lined(ShellWord word);

// Arguments by their names, each in its own line: --key value, --key=value, --key of a flag as
// true; several values are a list. Of one that is said twice the last counts.
struct Arguments {
  Document document;
  std::vector<ShellWord> others{};  // words that belong to no name: files, key=value
  std::vector<UnknownArgument> unknown{};
};
// `flags` are known to have no value.
Arguments named_arguments(const std::vector<ShellWord>& words, const std::string& file,
                          std::span<const std::string> flags = {});

// A value as YAML, in the line where a script has it.
struct NamedValue {
  std::string key, value;
  int line = 0;
};
// Returns a mapping with each key in its line, so that messages lead there.
Document document_in_lines(std::vector<NamedValue> all, const std::string& file);

// Writes "depends on $1, which nothing sets: --set 1=... says it", for the key of an argument.
std::string unknown_argument_message(const UnknownArgument& argument);

}  // namespace stepsim
