#include <fmt/format.h>

#include <optional>
#include <string>

#include "scenarios/foreign/launch/launches.hpp"
#include "scenarios/foreign/programs/programs.hpp"
#include "scenarios/foreign/wrapped/dialect.hpp"
#include "sim/base/error.hpp"

namespace stepsim {
namespace {

// Options as the block of a file, each in its line.
Document as_file(const Document& options, const std::string& file) {
  const Table said = options.root();
  std::string text = "{task: llm, params: {";
  int line = 1;
  for (const std::string& key : said.keys()) {
    const auto origin = said.origin(key);
    for (const int there = origin ? origin->line : 0; line < there; ++line) text += '\n';
    text += fmt::format("{}: {}, ", key, said.one_line(key));
  }
  return parse_document(text + "}}", file);
}

}  // namespace

Translation translate_autotrain(const SourceQuestion& question, const Document& source) {
  const bool is_file = source.root().has("task");
  std::optional<Document> own;
  if (!is_file) own = as_file(source, question.file);
  const auto read = read_dialect(question.data, own ? *own : source);
  if (!read)
    throw UserError({{question.file, question.launch == nullptr ? 0 : question.launch->line, "",
                      "AutoTrain trains no language model there: task: llm does"}});
  Launch launch = question.launch == nullptr ? Launch{} : *question.launch;
  launch.program = read->program;
  SourceQuestion asked = question;
  asked.launch = &launch;
  Translation translation = translate_trl(asked, document_in_lines(read->settings, question.file));
  translation.notes.insert(translation.notes.begin(), read->notes.begin(), read->notes.end());
  return translation;
}

}  // namespace stepsim
