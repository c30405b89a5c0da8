// These write scenarios as files of other programs, ready to run there.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

// Returns the words of `--as`.
std::vector<std::string> export_kinds();

struct ExportedFile {
  std::string path, text;
};

// The first is `path`, the others are beside it and named in it. Throws UserError when files of
// this kind can say nothing of such a scenario.
std::vector<ExportedFile> export_as(const Catalogue& data, const Scenario& scenario,
                                    std::string_view kind, const std::string& path);

// The kind of source that such a file is read as.
std::string_view read_as(std::string_view kind);

// Returns the same first file with a comment of these lines at its top, where it can have comments.
std::string with_comment(std::string_view kind, const std::string& text,
                         const std::vector<std::string>& lines);
bool has_comments(std::string_view kind);

// Returns what the command line has to say besides for the file to be read as that scenario: model
// and machine.
std::vector<Setting> settings_beside(const Scenario& scenario);

// Returns whether files of the kind hold the widths of the model, not its name.
bool describes_model(std::string_view kind);

// Keys that a scenario says and its file of another kind does not, when it is read: each with what
// is read there instead.
std::vector<std::string> left_unsaid(const Scenario& scenario, const Scenario& read_back);

// A line for each fact that is another one in `read`: "window: 4096 tokens; here it is none". How
// tensors are stored is left out: the program that reads the file stores them its own way.
std::vector<std::string> model_differences(const Model& model, const Model& read);

}  // namespace stepsim
