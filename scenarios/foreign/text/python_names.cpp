#include <fmt/format.h>

#include <algorithm>

#include "scenarios/foreign/text/python_evaluation.hpp"

namespace stepsim::python {
namespace {

// Returns the line behind `from` that puts more into a list: NAME.append(...); 0: there is none.
int line_that_fills(const PythonScope& scope, const std::string& name, int from) {
  for (const PythonStatement& statement : scope.statements) {
    const PythonTokens& tokens = statement.tokens;
    const bool fills =
        tokens.size() > 3 && is_name(tokens[0], name) && is_sign(tokens[1], ".") &&
        (tokens[2].text == "append" || tokens[2].text == "extend" || tokens[2].text == "insert");
    if (fills && tokens[0].line > from) return tokens[0].line;
  }
  return 0;
}

}  // namespace

std::optional<bool> Evaluation::holds(std::size_t scope, int guard, int inside) {
  for (; guard >= 0 && !is_around(guard, inside); guard = around(guard)) {
    const int verdict = verdict_of(scope, guard);
    if (verdict == no) return false;
    if (verdict == open) {
      for (guard = around(guard); guard >= 0; guard = around(guard))
        if (!is_around(guard, inside) && verdict_of(scope, guard) == no) return false;
      return std::nullopt;
    }
  }
  return true;
}

bool Evaluation::is_around(int guard, int inside) const {
  for (; inside >= guard; inside = around(inside))
    if (inside == guard) return true;
  return false;
}

int Evaluation::verdict_of(std::size_t scope, int guard) {
  const auto [place, fresh] = file_.verdicts.emplace(guard, open);
  if (!fresh) return place->second;
  const PythonGuard& each = file_.guards[static_cast<std::size_t>(guard)];
  if (each.condition.empty()) return place->second = no;
  const PythonValue said = value({scope, each.condition.front().line, each.around}, each.condition);
  if (said.kind == Kind::unknown) return open;
  return file_.verdicts[guard] = truth_of(said) == each.wanted ? yes : no;
}

PythonValue Evaluation::from_environment(const std::string& name, const PythonValue* fallback) {
  if (const std::string* said = given(name)) return of_text(*said);
  if (const auto place = file_.environment.find(name); place != file_.environment.end())
    return of_text(place->second);
  if (name == "WORLD_SIZE" && !file_.processes.empty()) return of_text(file_.processes);
  if (fallback != nullptr) return *fallback;
  return unknown(fmt::format("{}, which nothing sets", name), name);
}

const std::string* Evaluation::given(const std::string& name) {
  const auto place = file_.given.find(name);
  if (place == file_.given.end()) return nullptr;
  file_.asked.insert(name);
  return &place->second;
}

std::optional<PythonValue> Evaluation::attribute(const std::string& type, const std::string& name) {
  for (const PythonClass& each : file_.classes) {
    if (each.name != type) continue;
    for (std::size_t scope = 0; scope < file_.scopes.size(); ++scope) {
      if (file_.scopes[scope].of != type) continue;
      if (auto found = assigned({scope, 0, -1}, "self." + name)) return found;
    }
    for (const PythonAssignment& said : fields_of(file_, each))
      if (std::ranges::find(said.names, name) != said.names.end() && !said.value.empty())
        return value({each.module, said.line, -1}, said.value);
    return property_of(type, name);
  }
  return std::nullopt;
}

// A method that is asked without brackets: @property def NAME(self): return ...
std::optional<PythonValue> Evaluation::property_of(const std::string& type,
                                                   const std::string& name) {
  for (std::size_t scope = 0; scope < file_.scopes.size(); ++scope) {
    const PythonScope& each = file_.scopes[scope];
    const bool asked = std::ranges::any_of(each.decorators, [](const PythonTokens& decorator) {
      return !decorator.empty() && decorator.back().text.ends_with("property");
    });
    if (each.of == type && each.name == name && asked) return returned(scope, 0, {}, {});
  }
  return std::nullopt;
}

PythonValue Evaluation::returned(std::size_t scope, int line, const std::vector<PythonValue>& told,
                                 const PythonValue& keywords) {
  // A function that calls itself is run, or not known.
  const bool again =
      std::ranges::any_of(frames_, [&](const Frame& frame) { return frame.scope == scope; });
  if (frames_.size() >= deepest_call || again)
    return unknown(
        fmt::format("{}() of line {}, which is not run", file_.scopes[scope].name, line));
  frames_.push_back({scope, told, keywords});
  PythonValue result = returned(scope, line);
  frames_.pop_back();
  return result;
}

PythonValue Evaluation::returned(std::size_t scope, int line) {
  const PythonScope& own = file_.scopes[scope];
  for (const PythonAssignment& each : own.returns) {
    const auto comes = holds(scope, each.guard, -1);
    if (comes && !*comes) continue;
    PythonValue said = value({scope, each.line, each.guard}, each.value);
    if (comes || own.returns.size() == 1) return said;
    const bool alike = std::ranges::all_of(own.returns, [&](const PythonAssignment& other) {
      return same_values(said, value({scope, other.line, other.guard}, other.value));
    });
    if (alike) return said;
    break;
  }
  return unknown(fmt::format("{}() of line {}, which is not run", own.name, line));
}

PythonValue Evaluation::lookup(const std::string& name, int line) {
  if (const std::string* said = given(name)) return value_given(*said);
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos) return plain_name(name);
  const std::string last = name.substr(dot + 1), before = name.substr(0, dot);
  if (const std::string* said = given(last)) return value_given(*said);
  if (auto put_there = assigned_place(name)) return *put_there;
  if (before == "self" || before == "cls")
    if (const std::string& type = file_.scopes[place_.scope].of; !type.empty())
      if (auto own = attribute(type, last)) return *own;
  for (const PythonClass& type : file_.classes)
    if (type.name == before)
      if (auto own = attribute(before, last)) return *own;
  if (auto found = of_module(before, last)) return *found;
  if (auto told = started_with(last)) return *told;
  if (last == "num_processes" && !file_.processes.empty()) return value_given(file_.processes);
  if (name.starts_with("torch.") || name.starts_with("np.") || name.starts_with("numpy."))
    return of_text(last);
  if (++depth_ <= deepest_literal) {
    const PythonValue base = as_settings(lookup(before, line));
    --depth_;
    if (base.kind == Kind::object || base.kind == Kind::table)
      if (PythonValue own = field(base, last, line); own.kind != Kind::unknown) return own;
  } else {
    --depth_;
  }
  if (const auto place = file_.arguments.find(last);
      place != file_.arguments.end() && !place->second.empty())
    return with_variable(value({0, 0, -1}, place->second), last, name, line);
  return unknown(fmt::format("{} of line {}", name, line), last);
}

std::optional<PythonValue> Evaluation::of_module(const std::string& before,
                                                 const std::string& name) {
  const bool imported = std::ranges::any_of(file_.imports, [&](const PythonImport& each) {
    return each.module == before || each.module.ends_with("." + before) ||
           std::ranges::find(each.names, before) != each.names.end();
  });
  if (!imported) return std::nullopt;
  for (std::size_t scope = 1; scope < file_.scopes.size(); ++scope)
    if (file_.scopes[scope].module == scope)
      if (auto found = assigned({scope, 0, -1}, name)) return found;
  return std::nullopt;
}

PythonValue Evaluation::with_variable(PythonValue value, const std::string& variable,
                                      const std::string& name, int line) {
  if (value.kind == Kind::unknown)
    return unknown(fmt::format("{} of line {}", name, line), variable);
  return value;
}

std::optional<PythonValue> Evaluation::assigned_place(const std::string& name) {
  const std::size_t module = file_.scopes[place_.scope].module;
  if (auto found = assigned(place_, name)) return found;
  return place_.scope == module ? std::nullopt : assigned({module, 0, -1}, name);
}

PythonValue Evaluation::plain_name(const std::string& name) {
  if (name == "__name__")
    return of_text(file_.scopes[place_.scope].module == 0 ? "__main__" : "a module");
  if (name == "__file__") return of_text("own.py");
  if (auto found = assigned(place_, name)) return *found;
  if (auto found = parameter(place_.scope, name)) return *found;
  const std::size_t module = file_.scopes[place_.scope].module;
  for (std::size_t scope = file_.scopes[place_.scope].around; scope != module;
       scope = file_.scopes[scope].around) {
    if (auto found = assigned({scope, 0, -1}, name)) return *found;
    if (auto found = parameter(scope, name)) return *found;
  }
  if (place_.scope != module)
    if (auto found = assigned({module, 0, -1}, name)) return *found;
  for (std::size_t scope = 0; scope < file_.scopes.size(); ++scope)
    if (file_.scopes[scope].module == scope && scope != module)
      if (auto found = assigned({scope, 0, -1}, name)) return *found;
  for (const PythonClass& type : file_.classes)
    if (type.name == name) return {.kind = Kind::object, .text = name};
  if (name == "torch") return {.kind = Kind::object, .text = "torch"};
  return unknown(fmt::format("{}, which nothing sets", name), name);
}

std::optional<PythonValue> Evaluation::parameter(std::size_t scope, const std::string& name) {
  const PythonScope& own = file_.scopes[scope];
  const auto place = std::ranges::find(own.parameters, name, &PythonParameter::name);
  if (place == own.parameters.end() || name == "self" || name == "cls") return std::nullopt;
  if (const std::size_t told = std::min<std::size_t>(own.decorators.size(), 8); told > 0)
    for (std::size_t i = 0; i < told; ++i)
      if (auto settings = from_hydra(own.decorators[i])) return settings;
  const bool method =
      !own.of.empty() && !own.parameters.empty() &&
      (own.parameters.front().name == "self" || own.parameters.front().name == "cls");
  const auto index = static_cast<std::size_t>(place - own.parameters.begin()) - (method ? 1 : 0);
  for (const Frame& frame : frames_) {
    if (frame.scope != scope) continue;
    if (const PythonValue* there = frame.keywords.at(name)) return *there;
    if (index < frame.told.size()) return frame.told[index];
    if (!place->standard.empty()) return value({own.module, 0, -1}, place->standard);
  }
  const auto [first, end] = file_.calls.equal_range(own.name == "__init__" ? own.of : own.name);
  // Calls in functions that nothing calls count where there are no others.
  const auto counts = [&](const auto& each) {
    const PythonScope& there = file_.scopes[each.second.scope];
    return each.second.scope != scope &&
           (there.module == each.second.scope || !there.of.empty() || !there.decorators.empty() ||
            file_.calls.contains(there.name));
  };
  const bool reached = std::any_of(first, end, counts);
  std::optional<PythonValue> found;
  for (auto call = first; call != end; ++call) {
    if (call->second.scope == scope || (reached && !counts(*call))) continue;
    if (!holds(call->second.scope, call->second.guard, -1).value_or(true)) continue;
    auto said = told_by(call->second, name, index);
    if (!said && !place->standard.empty()) said = value({own.module, 0, -1}, place->standard);
    // Calls that nothing comes to say what only a run knows, or nothing.
    if (!said || (found && said->kind == Kind::unknown)) continue;
    if (found && found->kind != Kind::unknown && !same_values(*found, *said))
      return unknown(fmt::format("{}, which calls of {} say differently", name, own.name), name);
    found = std::move(said);
  }
  if (found) return found;
  if (auto told = started_with(name)) return told;
  if (!place->standard.empty()) return value({own.module, 0, -1}, place->standard);
  if (const auto parsed = file_.arguments.find(name);
      parsed != file_.arguments.end() && !parsed->second.empty())
    return value({0, 0, -1}, parsed->second);
  return unknown(fmt::format("{}, which nothing sets", name), name);
}

std::optional<PythonValue> Evaluation::told_by(const PythonCall& call, const std::string& name,
                                               std::size_t index) {
  for (const auto& keyword : call.keywords) {
    if (keyword.name == name) return value(place_of(call), keyword.value);
    if (!keyword.name.empty()) continue;
    const PythonValue table = value(place_of(call), keyword.value);
    if (const PythonValue* there = table.at(name)) return *there;
  }
  if (index < call.positional.size()) return value(place_of(call), call.positional[index]);
  return std::nullopt;
}

std::optional<PythonValue> Evaluation::from_hydra(const PythonTokens& decorator) {
  if (decorator.size() < 3 || !file_.settings_file ||
      std::ranges::none_of(decorator, [](const auto& each) { return each.text == "hydra"; }))
    return std::nullopt;
  std::string folder, name;
  for (std::size_t i = 0; i + 2 < decorator.size(); ++i) {
    if (decorator[i + 2].kind != PythonKind::text) continue;
    if (decorator[i].text == "config_path") folder = decorator[i + 2].text;
    if (decorator[i].text == "config_name") name = decorator[i + 2].text;
  }
  if (name.empty()) return std::nullopt;
  if (!name.ends_with(".yaml") && !name.ends_with(".yml")) name += ".yaml";
  return file_.settings_file(joined(folder, name));
}

std::optional<PythonValue> Evaluation::started_with(const std::string& argument) const {
  if (const auto said = file_.said.find(argument); said != file_.said.end())
    return value_given(said->second);
  if (const auto parsed = file_.parsed.find(argument); parsed != file_.parsed.end())
    return parsed->second;
  const auto unsaid = file_.unsaid.find(argument);
  return unsaid == file_.unsaid.end() ? std::nullopt : std::optional(unsaid->second);
}

PythonValue Evaluation::value_given(const std::string& text) {
  if (text == "True" || text == "true") return of_truth(true);
  if (text == "False" || text == "false") return of_truth(false);
  if (text == "None" || text == "null") return {.kind = Kind::none};
  const PythonValue number = literal_number(text);
  return number.kind == Kind::unknown ? of_text(text) : number;
}

std::optional<PythonValue> Evaluation::assigned(const PythonPlace& place, const std::string& name) {
  const PythonFile::Asked key{place.scope, place.line, place.guard, name};
  const bool keeps = frames_.empty();
  if (const auto known = file_.known.find(key); keeps && known != file_.known.end())
    return known->second;
  std::optional<PythonValue> found = assigned(place, name, false);
  if (!found && place.line > 0) found = assigned(place, name, true);
  if (keeps && file_.known.size() < most_known && (!found || found->text != too_many))
    file_.known.emplace(key, found);
  return found;
}

std::optional<PythonValue> Evaluation::assigned(const PythonPlace& place, const std::string& name,
                                                bool behind) {
  std::optional<PythonValue> found;
  int line = 0;
  const auto& all = file_.scopes[place.scope].assignments;
  for (std::size_t i = all.size(); i > 0; --i) {
    const PythonAssignment& each = all[i - 1];
    const auto index = std::ranges::find(each.names, name) - each.names.begin();
    if (index == std::ssize(each.names)) continue;
    if (place.line > 0 && (each.line >= place.line) != behind) continue;
    if (behind && each.line == place.line) continue;
    const auto runs = holds(place.scope, each.guard, place.guard);
    if (runs && !*runs) continue;
    PythonValue next = value({place.scope, each.line, each.guard}, each.value);
    if (each.names.size() > 1) {
      const bool fits = next.kind == Kind::list && next.items.size() == each.names.size();
      if (fits) {
        const PythonValue item = next.items[static_cast<std::size_t>(index)];
        next = item;
      } else if (next.kind != Kind::unknown) {
        next = unknown(fmt::format("{} of line {}", name, each.line), name);
      }
    }
    if (next.kind == Kind::unknown && next.variable.empty()) next.variable = name;
    if (next.kind == Kind::list && each.names.size() == 1)
      if (const int more = line_that_fills(file_.scopes[place.scope], name, each.line); more > 0)
        next = unknown(fmt::format("{}, which line {} fills", name, more), name);
    if (found && !same_values(*found, next))
      return unknown(fmt::format("{}, which lines {} and {} set", name, each.line, line), name);
    found = std::move(next);
    line = each.line;
    if (runs) return found;
  }
  return found;
}

}  // namespace stepsim::python
