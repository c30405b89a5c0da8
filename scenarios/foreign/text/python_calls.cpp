#include <algorithm>

#include "scenarios/foreign/text/python_values.hpp"

namespace stepsim {
namespace {

bool opens(const PythonToken& token) {
  return token.kind == PythonKind::sign &&
         (token.text == "(" || token.text == "[" || token.text == "{");
}
bool closes(const PythonToken& token) {
  return token.kind == PythonKind::sign &&
         (token.text == ")" || token.text == "]" || token.text == "}");
}

// The arguments of a call whose bracket opens at `at`. Returns the place behind it.
std::size_t read_arguments(const PythonTokens& tokens, std::size_t at, PythonCall& call) {
  int depth = 0;
  PythonTokens part;
  const auto keep = [&] {
    if (part.size() > 1 && part[0].kind == PythonKind::name && is_sign(part[1], "="))
      call.keywords.push_back({part[0].text, {part.begin() + 2, part.end()}, part[0].line});
    else if (part.size() > 1 && is_sign(part[0], "**"))
      call.keywords.push_back({"", {part.begin() + 1, part.end()}, part[0].line});
    else if (!part.empty())
      call.positional.push_back(part);
    part.clear();
  };
  for (; at < tokens.size(); ++at) {
    if (closes(tokens[at]) && --depth == 0) break;
    if (depth == 1 && is_sign(tokens[at], ","))
      keep();
    else if (depth >= 1)
      part.push_back(tokens[at]);
    if (opens(tokens[at])) ++depth;
  }
  keep();
  return at + 1;
}

// Calls of click, typer and argparse that say an argument and its default.
void read_parser_call(PythonFile& file, const PythonCall& call) {
  PythonTokens standard;
  std::string named;
  for (const auto& keyword : call.keywords) {
    if (keyword.name == "default") standard = keyword.value;
    if (keyword.name == "dest" && keyword.value.size() == 1) named = keyword.value.front().text;
    const bool flag = keyword.name == "action" && keyword.value.size() == 1;
    if (flag && keyword.value.front().text.starts_with("store_") && standard.empty())
      standard = {{PythonKind::name, keyword.value.front().text == "store_true" ? "False" : "True",
                   keyword.line}};
    if (keyword.name == "is_flag" && standard.empty())
      standard = {{PythonKind::name, "False", keyword.line}};
  }
  for (const PythonTokens& name : call.positional) {
    if (name.size() != 1 || name[0].kind != PythonKind::text || !name[0].text.starts_with("-"))
      continue;
    std::string key =
        name[0].text.substr(std::min(name[0].text.find_first_not_of('-'), name[0].text.size()));
    key = key.substr(0, key.find('/'));  // "--flag/--no-flag" of click
    std::replace(key.begin(), key.end(), '-', '_');
    file.arguments[key] = standard;
  }
  if (!named.empty()) file.arguments[named] = standard;
}

}  // namespace

const PythonValue* PythonValue::at(const std::string& key) const {
  for (std::size_t i = keys.size(); i > 0; --i)
    if (keys[i - 1] == key && i <= items.size()) return &items[i - 1];
  return nullptr;
}

PythonPlace place_of(const PythonCall& call) {
  return {call.scope, call.from, call.guard};
}

std::vector<PythonCall> calls_in(const PythonFile& file,
                                 const std::function<bool(const std::string&)>& is_wanted) {
  constexpr std::size_t most_calls = 500;
  std::vector<PythonCall> calls;
  for (std::size_t scope = 0; scope < file.scopes.size(); ++scope)
    for (const PythonStatement& statement : file.scopes[scope].statements) {
      const PythonTokens& tokens = statement.tokens;
      for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
        if (tokens[i].kind != PythonKind::name || !is_sign(tokens[i + 1], "(") ||
            !is_wanted(tokens[i].text) || calls.size() >= most_calls)
          continue;
        PythonCall call{.name = tokens[i].text, .line = tokens[i].line, .scope = scope};
        for (std::size_t at = i;
             at > 1 && is_sign(tokens[at - 1], ".") && tokens[at - 2].kind == PythonKind::name;
             at -= 2)
          call.name = tokens[at - 2].text + "." + call.name;
        call.from = tokens.front().line;
        call.guard = statement.guard;
        std::size_t behind = read_arguments(tokens, i + 1, call);
        if (behind < tokens.size() && is_name(tokens[behind], "if"))
          for (++behind; behind < tokens.size() && !is_name(tokens[behind], "else") &&
                         !is_name(tokens[behind], "for");
               ++behind)
            call.only_if.push_back(tokens[behind]);
        calls.push_back(std::move(call));
      }
    }
  return calls;
}

std::vector<PythonAssignment> fields_of(const PythonFile& file, const PythonClass& type) {
  std::vector<PythonAssignment> fields = type.fields;
  std::vector<std::string> open = type.bases, seen{type.name};
  for (std::size_t i = 0; i < open.size() && i < 50; ++i) {
    if (std::ranges::find(seen, open[i]) != seen.end()) continue;
    seen.push_back(open[i]);
    for (const PythonClass& each : file.classes) {
      if (each.name != open[i]) continue;
      for (const PythonAssignment& field : each.fields)
        if (std::ranges::none_of(fields, [&](const auto& own) {
              return !own.names.empty() && own.names == field.names;
            }))
          fields.push_back(field);
      for (const std::string& base : each.bases) open.push_back(base);
    }
  }
  return fields;
}

void add_module(PythonFile& file, PythonShape module) {
  const std::size_t first = file.scopes.size();
  const int guards = static_cast<int>(file.guards.size());
  const auto move = [&](int& guard) { guard = guard < 0 ? guard : guard + guards; };
  const auto move_all = [&](std::vector<PythonAssignment>& all) {
    for (PythonAssignment& each : all) move(each.guard);
  };
  for (PythonGuard& each : module.guards) {
    move(each.around);
    file.guards.push_back(std::move(each));
  }
  for (PythonScope& each : module.scopes) {
    each.module = first;
    each.around += first;
    move_all(each.assignments);
    move_all(each.returns);
    for (PythonStatement& statement : each.statements) move(statement.guard);
    file.scopes.push_back(std::move(each));
  }
  for (PythonClass& each : module.classes) {
    each.module = first;
    move_all(each.fields);
    file.classes.push_back(std::move(each));
  }
  file.aliases.insert(module.aliases.begin(), module.aliases.end());
  file.imports.insert(file.imports.end(), module.imports.begin(), module.imports.end());
}

void index_python(PythonFile& file) {
  file.calls.clear();
  const auto adds = [](const std::string& name) {
    return name == "add_argument" || name == "option";
  };
  for (const PythonCall& call : calls_in(file, adds)) read_parser_call(file, call);
  for (const PythonClass& type : file.classes)
    if (type.is_data)
      for (const PythonAssignment& field : type.fields)
        for (const std::string& name : field.names) file.arguments.emplace(name, field.value);
  std::set<std::string> own;
  for (const PythonScope& scope : file.scopes) own.insert(scope.name);
  for (const PythonClass& type : file.classes) own.insert(type.name);
  for (PythonCall& call : calls_in(file, [&](const auto& name) { return own.contains(name); })) {
    const std::string last = call.name.substr(call.name.rfind('.') + 1);
    file.calls.emplace(last, std::move(call));
  }
}

PythonFile read_python(std::string_view text, const std::string& file) {
  PythonFile result;
  static_cast<PythonShape&>(result) = parse_python(text, file);
  index_python(result);
  return result;
}

}  // namespace stepsim
