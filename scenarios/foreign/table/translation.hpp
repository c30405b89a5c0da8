// A translation is a file of another program in the words of a scenario: what each of its keys
// became, and what it does not say.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/assumption.hpp"
#include "sim/base/config.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"

namespace stepsim {

// One key of the scenario, and the key of the source that it follows from.
struct TranslatedLine {
  std::string path;    // "job.sequence"
  std::string value;   // as YAML
  std::string key;     // "sequence_len"; empty: nothing in the source says it
  int line = 0;        // of that key; 0: it is absent, and this is what that means
  std::string remark;  // where the key alone does not explain the value
  bool stays = false;  // also where the command line names another machine
  std::string by{};    // the program that has it so by itself where the key is absent
};

enum class KeyFate : std::uint8_t { used, without_effect, unmodelled, unknown };
inline constexpr std::array<std::string_view, 4> key_fate_titles{
    "used", "changes neither time nor memory", "not modelled; the result is without it", "unknown"};

struct SourceKey {
  std::string key;
  int line = 0;
  KeyFate fate = KeyFate::used;
  std::string remark;
  std::string value{};        // of one that is not modelled
  bool needs_memory = false;  // which then is too little
};

struct Translation {
  std::string file;
  std::string program;  // "Axolotl"
  std::vector<TranslatedLine> lines;
  std::vector<Assumption> assumptions;
  std::vector<SourceKey> keys;     // in the order of the source
  std::vector<std::string> notes;  // keys that do not do what their author may have hoped
  std::vector<std::string> files;  // read beside it
  std::vector<std::string> set{};  // keys of the source that the command line sets
};

// Returns the scenario as a document, its keys with the source's file, key and line as origin.
Document document_of(const Translation& translation);
// Puts back lines that stay, where the command line has replaced the block that they were in.
void keep_lines(const Translation& translation, Document& document);
// Writes the scenario as a file to go on with: each line with what it came from.
std::string translated_scenario(const Translation& translation);
// Writes every key of the source in one of four lists.
std::string key_lists(const Translation& translation);

// Returns problems of a scenario's keys as problems of the source's.
std::vector<Problem> in_words_of_source(std::vector<Problem> problems,
                                        const Translation& translation);

}  // namespace stepsim
