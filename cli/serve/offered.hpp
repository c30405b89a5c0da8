// This decides what a question to `serve` may begin with, and which files it may name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cli/serve/question.hpp"
#include "cli/serve/respond.hpp"
#include "sim/base/error.hpp"

namespace stepsim {

constexpr std::string_view no_grpo =
    "is a GRPO job: `stepsim run` answers, this page shows training steps";
// If the kernel cannot keep a request from other files, the request may name none.
constexpr std::string_view no_landlock = "this kernel has no Landlock to keep other files from it";

// This offers scenarios of the catalogue by their names, and files of the named folders by their
// paths.
struct Offered {
  std::vector<std::string> sources{};
  std::vector<Problem> left_out{};  // files of those folders, each with the reason
};
Offered read_offered(const Serving& serving);

// Throws UserError where the question begins with something else, or a setting names a path that is
// not served, in the same words whether there is something or not.
void require_served(const Serving& serving, const Question& question, const AskedScenario& asked);

}  // namespace stepsim
