#include "scenarios/foreign/text/python_modules.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "scenarios/foreign/text/near_files.hpp"
#include "scenarios/foreign/text/relaxed_json.hpp"
#include "sim/base/config.hpp"
#include "sim/base/whole_file.hpp"

namespace stepsim {
namespace {

constexpr std::size_t most_modules = 32, largest_module = 256u << 10, largest_settings = 256u << 10;

// Returns the file of "a.b" or ".a.b".
std::optional<std::string> module_file(const std::string& from, const std::string& module) {
  std::string path = module.substr(std::min(module.find_first_not_of('.'), module.size()));
  std::replace(path.begin(), path.end(), '.', '/');
  if (path.empty()) return std::nullopt;
  if (auto file = find_in_repository(from, path + ".py")) return file;
  return find_in_repository(from, path + "/__init__.py");
}

std::vector<std::string> files_of(const std::string& from, const PythonImport& one) {
  std::vector<std::string> files;
  if (auto file = module_file(from, one.module)) files.push_back(*file);
  if (files.empty() || files.front().ends_with("__init__.py"))
    for (const std::string& name : one.names)
      if (auto file = module_file(from, one.module + "." + name)) files.push_back(*file);
  return files;
}

std::string small_text(const std::string& file, std::size_t most) {
  std::error_code failed;
  const auto size = std::filesystem::file_size(file, failed);
  return failed || size > most ? std::string() : read_text(file);
}

PythonValue value_of_table(const Table& table, int depth);

PythonValue value_of_text(const std::string& text, bool quoted) {
  const std::string line = quoted ? text.substr(1, text.size() - 2) : text;
  if (!quoted && (line == "true" || line == "True" || line == "yes"))
    return {.kind = PythonValue::Kind::truth, .number = 1};
  if (!quoted && (line == "false" || line == "False" || line == "no"))
    return {.kind = PythonValue::Kind::truth};
  if (!quoted && (line.empty() || line == "null" || line == "~" || line == "None"))
    return {.kind = PythonValue::Kind::none};
  if (!quoted && line.find_first_not_of("0123456789.+-eE_") == std::string::npos) {
    const PythonFile none;
    PythonTokens tokens{{PythonKind::number, line, 1}};
    std::erase(tokens[0].text, '_');
    if (PythonValue number = value_of(none, {}, tokens); number.kind == PythonValue::Kind::number)
      return number;
  }
  return {.kind = PythonValue::Kind::text, .text = line};
}

PythonValue value_of_table(const Table& table, int depth) {
  constexpr int deepest = 24;
  PythonValue value{.kind = PythonValue::Kind::table};
  for (const std::string& key : table.keys()) {
    PythonValue item{.kind = PythonValue::Kind::none};
    if (table.is_mapping(key)) {
      if (depth < deepest) item = value_of_table(table.table(key), depth + 1);
    } else if (table.has(key)) {
      const std::string line = table.one_line(key);
      if (line.starts_with('[')) {
        item.kind = PythonValue::Kind::list;
        for (const std::string& each : table.values(key)) {
          const bool quoted = each.size() > 1 && each.front() == '"' && each.back() == '"';
          item.items.push_back(value_of_text(each, quoted));
        }
      } else {
        const bool quoted = line.size() > 1 && (line.front() == '"' || line.front() == '\'');
        item = quoted ? PythonValue{.kind = PythonValue::Kind::text, .text = table.text_or(key, "")}
                      : value_of_text(line, false);
      }
    }
    value.keys.push_back(key);
    value.items.push_back(std::move(item));
  }
  return value;
}

std::optional<PythonValue> settings_in(const std::string& near, const std::string& said) {
  auto file = find_in_repository(near, said);
  // A path of another machine is known by its last parts.
  std::string tail = said.starts_with('/') ? said.substr(1) : "";
  for (; !file && tail.find('/') != std::string::npos; tail = tail.substr(tail.find('/') + 1))
    file = find_in_repository(near, tail);
  if (!file) return std::nullopt;
  try {
    if (file->ends_with(".json"))
      return value_of_table(
          parse_document(without_comments(small_text(*file, largest_settings), *file), *file)
              .root(),
          0);
    if (file->ends_with(".yaml") || file->ends_with(".yml") || file->ends_with(".toml")) {
      if (small_text(*file, largest_settings).empty()) return std::nullopt;
      return value_of_table(read_document(*file).root(), 0);
    }
  } catch (const UserError&) {  // no file of settings, and what hangs on it is not known
  }
  return std::nullopt;
}

}  // namespace

PythonProgram read_python_program(std::string_view text, const std::string& file,
                                  const std::string& near) {
  PythonProgram program{.file = read_python(text, file)};
  if (near.empty()) return program;
  struct Wanted {
    PythonImport import;
    std::string from;
    int line;
  };
  std::vector<Wanted> wanted;
  wanted.reserve(program.file.imports.size());
  for (const PythonImport& each : program.file.imports) wanted.push_back({each, near, each.line});
  std::set<std::string> seen{near};
  for (std::size_t i = 0; i < wanted.size() && seen.size() <= most_modules; ++i) {
    const Wanted one = wanted[i];
    for (const std::string& found : files_of(one.from, one.import)) {
      if (!seen.insert(found).second || seen.size() > most_modules) continue;
      try {
        PythonShape shape = parse_python(small_text(found, largest_module), found);
        for (const PythonImport& each : shape.imports) wanted.push_back({each, found, one.line});
        program.imported[program.file.scopes.size()] = one.line;
        add_module(program.file, std::move(shape));
      } catch (const UserError&) {  // what needs it is not known
      }
    }
  }
  if (!program.imported.empty()) index_python(program.file);
  program.file.settings_file = [near](const std::string& said) { return settings_in(near, said); };
  return program;
}

}  // namespace stepsim
