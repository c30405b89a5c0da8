// This reads JSON as people write it: with comments.
#pragma once

#include <string>

namespace stepsim {

// DeepSpeed reads its file with a parser that knows comments (// and # to the end of the line, /*
// */) and commas behind the last entry. The text without comments, every other character in its
// line; `file` is for the message about a comment that is never closed.
std::string without_comments(std::string text, const std::string& file);

// DeepSpeed takes numbers in quotes for numbers. The text without quotes around those that are
// values, every other character where it was.
std::string with_bare_numbers(std::string text);

}  // namespace stepsim
