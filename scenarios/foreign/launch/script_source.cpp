#include "scenarios/foreign/launch/script_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "sim/base/error.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

std::string place_of(const Launch& launch) {
  return fmt::format("{} of line {}", launch.program, launch.line);
}

std::string places_of(const std::vector<const Launch*>& launches) {
  constexpr std::size_t most = 6;
  std::vector<std::string> places;
  for (const Launch* each : launches)
    if (places.size() < most) places.push_back(place_of(*each));
  if (launches.size() > most) places.push_back(fmt::format("{} more", launches.size() - most));
  return fmt::format("{}", fmt::join(places, ", "));
}

[[noreturn]] void no_training(const ScriptQuestion& question, const std::vector<Launch>& all) {
  if (all.empty())
    throw UserError(
        {{question.file, 0, "",
          fmt::format("is {} that starts no training; it was read, not run", question.title)}});
  const Document facts =
      read_document(question.data.file("scenarios/foreign/launch/launchers.yaml"));
  const Table lessons = facts.root().table("not_read");
  for (const Launch& each : all)
    if (const std::string name = each.program.substr(0, each.program.find(' ')); lessons.has(name))
      throw UserError(
          {{question.file, each.line, "",
            fmt::format("the script starts {}: {}", each.program, lessons.text(name))}});
  std::vector<const Launch*> others(all.size());
  std::transform(all.begin(), all.end(), others.begin(), [](const Launch& each) { return &each; });
  throw UserError({{question.file, all.front().line, "",
                    fmt::format("the script starts {}, which is no training of {}",
                                places_of(others), question.known)}});
}

std::string text_at(const Table& table, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (table.has(key)) return table.text_or(key, "");
  return "";
}

}  // namespace

bool is_shell_script(const std::string& file) {
  constexpr std::array endings{".sh", ".bash", ".zsh", ".slurm", ".sbatch", ".job"};
  const std::string ending = std::filesystem::path(file).extension().string();
  if (std::find(endings.begin(), endings.end(), ending) != endings.end()) return true;
  if (!ending.empty()) return false;
  std::error_code failed;
  if (!std::filesystem::is_regular_file(file, failed)) return false;
  const std::string text = read_text(file);
  const std::string first = text.substr(0, text.find('\n'));
  return first.starts_with("#!") && first.ends_with("sh");
}

ScriptSource read_script_source(const ScriptQuestion& question) {
  ScriptSource result{read_shell_script(question.text ? *question.text : read_text(question.file),
                                        question.file, question.given),
                      {},
                      {},
                      {}};
  result.script.files.insert(question.files.begin(), question.files.end());
  const std::vector<Launch> all = launches_in(question.data, result.script);
  std::vector<const Launch*> found, others;
  std::optional<UserError> unread;
  for (const Launch& each : all) {
    try {
      if (question.is_training(each, result.script)) found.push_back(&each);
    } catch (const UserError& error) {  // others may be read
      result.notes.push_back(
          fmt::format("{} is not read: {}", place_of(each), error.problems().front().message));
      if (!unread) unread = error;
    }
  }
  if (found.empty() && unread) throw UserError(*unread);
  if (found.empty()) no_training(question, all);
  if (question.number > found.size())
    throw UserError(fmt::format("--launch {}: the script starts {} training{}: {}", question.number,
                                found.size(), found.size() == 1 ? "" : "s", places_of(found)));
  result.launch = *found[question.number - 1];
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i + 1 != question.number) others.push_back(found[i]);
    if (i + 1 >= question.number) continue;
    const Arguments said = named_arguments(found[i]->arguments, question.file);
    const Table root = said.document.root();
    result.earlier.push_back(
        {text_at(root, {"save_path", "output_dir", "ckpt.output_dir"}),
         text_at(root, {"pretrain", "model_name_or_path", "model.model_name_or_path"}),
         found[i]->line});
  }
  if (!others.empty())
    result.notes.push_back(
        fmt::format("the script starts {} trainings: this is {}; --launch N takes another: {}",
                    found.size(), place_of(result.launch), places_of(others)));
  for (const std::string& note : result.script.notes) result.notes.push_back(note);
  return result;
}

}  // namespace stepsim
