// Many files wrap a training in something else: a notebook, a job of a cluster, a Makefile. What is
// wrapped is a program's text or a script, which are read as such; the wrapping says on which
// machine they run.
#pragma once

#include <cstddef>
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

// Some files say in words of their own what a program that is read says, too: a table has both.
// Returns nothing where the file is in no dialect. Throws UserError with a lesson about a file that
// is known and holds no training that is read.
std::optional<WrappedSource> read_dialect(const Catalogue& data, const Document& document);

// This reads YAML files that ask a cluster to run commands: tasks of SkyPilot and dstack, jobs of
// Kubernetes (Job, PyTorchJob, TrainJob, RayCluster and RayJob), values of Helm, compose files.
// Returns whether the text is, by its first keys, a task of SkyPilot or an object of Kubernetes.
bool is_job_file(std::string_view text);

// Returns nothing where the text is no such file. Throws UserError about one that is no YAML.
std::optional<WrappedSource> read_job_file(const Catalogue& data, std::string_view text,
                                           const std::string& file);

// Returns nothing where the text does not import modal.
std::optional<WrappedSource> read_modal_program(std::string_view text, const std::string& file);

// This reads a Jupyter notebook: its code cells are one program, and lines that begin with ! or %
// are a script beside it. Nothing of it is run.
// `number`: which of the trainings, from 1 on; a notebook may load a model and train it, and then
// do the same with another one. Throws UserError about what is no notebook, and about several
// trainings of different models where `number` is 0.
WrappedSource read_notebook(const Catalogue& data, const std::string& file, std::size_t number);

// Commands of all targets, one after the other; $(NAME) is a variable as in a shell.
WrappedSource read_makefile(std::string_view text);
// Returns what the container starts; what building it runs trains nothing.
WrappedSource read_dockerfile(std::string_view text);

// This reads what Weights & Biases keeps of a run: config.yaml with all arguments as they were, and
// wandb-metadata.json with the program, its words and the GPUs.
// Return nothing where the text is no such file. Throw UserError about one that cannot be read.
std::optional<WrappedSource> read_run_config(const Catalogue& data, std::string_view text,
                                             const std::string& file);
std::optional<WrappedSource> read_run_metadata(std::string_view text, const std::string& file);

}  // namespace stepsim
