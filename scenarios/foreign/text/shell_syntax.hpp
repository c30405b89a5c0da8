// This is the grammar of shell scripts, as far as scripts that start trainings use it. Nothing is
// expanded here: words are kept as they stand, with their quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace stepsim {

// Text of a shell script, each letter with the line that it stands in: words that a script puts
// together out of variables and arrays keep the places of their parts.
struct Letter {
  char c = 0;
  int line = 0;
  int unknown = -1;  // at least 0: something that only a run would know stands here, by its number
};

using ShellText = std::vector<Letter>;

ShellText shell_text(std::string_view text, int line);  // newlines in it count lines
std::string plain(const ShellText& text);               // without what is not known

// A file that is read as one of these may be so large.
inline constexpr std::size_t largest_script = 1u << 20;

struct ShellRedirection {
  std::string sign;      // ">", "<<", "<<<"
  ShellText target;      // a file, or the word that ends a here-document
  ShellText body{};      // of a here-document
  bool literal = false;  // of a here-document in which nothing is expanded
};

enum class ShellKind : std::uint8_t {
  simple,      // words
  list,        // nodes, one after the other
  condition,   // if: nodes are condition, body, condition, body, ..., and what stands behind else
  cases,       // case: words[0], and one node for each of `patterns`
  repetition,  // for: words[0] is the variable, then its values; one node
  loop,        // while and until: condition, body
  function,    // words[0] is the name; one node
  subshell     // ( ... )
};

// A link says how a node hangs on the one before it.
enum class ShellLink : std::uint8_t { then, if_well, if_not, pipe };

struct ShellNode {
  ShellKind kind = ShellKind::simple;
  int line = 0;
  std::vector<ShellText> words{};
  std::vector<ShellRedirection> redirections{};
  std::vector<ShellNode> nodes{};
  std::vector<std::vector<ShellText>> patterns{};
  ShellLink link = ShellLink::then;
  bool negated = false;
};

// Throws UserError about quotes and blocks that are never closed; `file` is for messages.
ShellNode parse_shell(const ShellText& text, const std::string& file);

// Returns the words in the brackets of an array, over several lines and without comments.
std::vector<ShellText> words_of_list(const ShellText& text, const std::string& file);

// The place behind what is quoted, or in brackets, from `from` on: '...', "...", `...`, $(...),
// ${...}; just behind one letter where there is no such thing. `depth`: in so many others. Throws
// UserError.
std::size_t behind_piece(const ShellText& text, std::size_t from, const std::string& file,
                         int depth = 0);

}  // namespace stepsim
