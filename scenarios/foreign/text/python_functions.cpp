#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "scenarios/foreign/text/python_evaluation.hpp"
#include "sim/base/letters.hpp"

namespace stepsim::python {

PythonValue Evaluation::subscripted(PythonValue value, const std::string& name, int line) {
  const Tokens before = rest_;
  const PythonValue key = choice();
  const bool whole = is("]");
  rest_ = before;
  skip_brackets();
  if (!whole) return unknown(fmt::format("{}[...] of line {}", name, line));
  if (key.kind == Kind::text) {
    if (const std::string* said = given(key.text)) return value_given(*said);
    if (!name.empty())
      if (auto put_there = assigned_place(name + "." + key.text)) return *put_there;
    value = as_settings(std::move(value));
    if (value.kind == Kind::table || value.kind == Kind::object)
      return field(value, key.text, line);
    // Of settings in settings the last name is the one that --set takes.
    if (value.kind == Kind::unknown && name.empty()) return unknown(value.text, key.text);
    if (value.kind == Kind::unknown && !value.variable.empty() && value.variable != name)
      return value;
    return unknown(fmt::format("{}[...] of line {}", name, line), key.text);
  }
  if (value.kind == Kind::list && key.kind == Kind::number && !value.items.empty()) {
    const auto size = static_cast<double>(value.items.size());
    const double at = key.number < 0 ? key.number + size : key.number;
    if (at >= 0 && at < size) return value.items[static_cast<std::size_t>(at)];
  }
  return unknown(fmt::format("{}[...] of line {}", name, line));
}

PythonValue Evaluation::as_settings(PythonValue value) const {
  if (value.kind != Kind::text || !file_.settings_file) return value;
  for (const char* ending : {".yaml", ".yml", ".json"})
    if (value.text.ends_with(ending))
      if (auto settings = file_.settings_file(value.text)) return *settings;
  return value;
}

PythonValue Evaluation::field(const PythonValue& value, const std::string& name, int line) {
  if (const PythonValue* there = value.at(name)) return *there;
  if (value.kind == Kind::object)
    if (auto own = attribute(value.text, name)) return *own;
  if (value.kind == Kind::text) return value;  // parts of paths
  return unknown(fmt::format("{} of line {}", name, line), name);
}

PythonValue Evaluation::method(const PythonValue& value, const std::string& name,
                               const std::vector<PythonValue>& told, int line) {
  const auto word = [&](std::size_t i) {
    return i < told.size() && told[i].kind == Kind::text ? told[i].text : std::string();
  };
  if (name == "get" && !told.empty()) {
    if (const std::string* said = given(word(0))) return value_given(*said);
    if (const PythonValue* there = value.at(word(0))) return *there;
    if (value.kind == Kind::table)
      return told.size() > 1 ? told[1] : PythonValue{.kind = Kind::none};
    if (const PythonValue settings = as_settings(value); settings.kind == Kind::table)
      return method(settings, name, told, line);
    return unknown(fmt::format("what stands in line {}, which is not run", line), word(0));
  }
  // A truth that the command line says is text to the program: args.bf16.lower() == "true".
  if (value.kind == Kind::truth && (name == "lower" || name == "upper" || name == "strip"))
    return of_text(name == "lower"     ? value.number != 0 ? "true" : "false"
                   : name == "upper"   ? value.number != 0 ? "TRUE" : "FALSE"
                   : value.number != 0 ? "True"
                                       : "False");
  if (value.kind == Kind::text) {
    const std::string& text = value.text;
    if (name == "lower") return of_text(in_small_letters(text));
    if (name == "startswith" && !told.empty()) return of_truth(text.starts_with(word(0)));
    if (name == "endswith" && !told.empty()) return of_truth(text.ends_with(word(0)));
    if (name == "split") return split(text, told.empty() ? " " : word(0));
    if (name == "replace" && told.size() == 2 && !word(0).empty()) {
      std::string result = text;
      for (std::size_t at = result.find(word(0));
           at != std::string::npos && result.size() < most_items;
           at = result.find(word(0), at + word(1).size()))
        result.replace(at, word(0).size(), word(1));
      return of_text(result);
    }
    // Of paths and open files: all are the same file.
    for (const char* same : {"strip", "open", "read", "read_text", "resolve", "absolute",
                             "expanduser", "as_posix", "encode", "rstrip"})
      if (name == same) return value;
    if (name == "joinpath") return of_text(joined(text, word(0)));
  }
  if (value.kind == Kind::table || value.kind == Kind::object)
    for (const char* same : {"copy", "to_dict", "model_dump", "dict"})
      if (name == same) return value;
  return unknown(fmt::format("{}() of line {}, which is not run", name, line));
}

PythonValue Evaluation::split(const std::string& text, const std::string& sign) {
  PythonValue list{.kind = Kind::list};
  for (std::size_t from = 0; !sign.empty() && list.items.size() < most_items;) {
    const std::size_t end = text.find(sign, from);
    list.items.push_back(of_text(text.substr(from, end - from)));
    if (end == std::string::npos) break;
    from = end + sign.size();
  }
  return list;
}

std::vector<PythonValue> Evaluation::arguments(PythonValue* keywords) {
  const Tokens inside = rest_;
  std::vector<PythonValue> all;
  while (!rest_.empty() && !is(")")) {
    const std::size_t before = rest_.size();
    if (take("**")) {
      const PythonValue table = choice();
      for (std::size_t i = 0; keywords != nullptr && i < table.keys.size(); ++i)
        put(*keywords, table.keys[i], table.items[i]);
    } else if (rest_.size() > 2 && rest_[0].kind == PythonKind::name && rest_[1].text == "=" &&
               rest_[1].kind == PythonKind::sign) {
      const std::string name = rest_[0].text;
      rest_ = rest_.subspan(2);
      PythonValue said = choice();
      if (keywords != nullptr) put(*keywords, name, std::move(said));
    } else {
      all.push_back(choice());
    }
    if (rest_.size() == before || !(take(",") || is(")"))) break;
  }
  rest_ = inside;
  skip_brackets();
  return all;
}

PythonValue Evaluation::called(const std::string& name, int line) {
  PythonValue keywords{.kind = Kind::table};
  const std::vector<PythonValue> told = arguments(&keywords);
  const std::string last = name.substr(name.rfind('.') + 1);
  if (auto known = known_call(name, last, told, keywords)) return *known;
  // Whatever it is called: the launcher says how many there are.
  if ((name.find("world_size") != std::string::npos || last == "device_count") &&
      !file_.processes.empty())
    return value_given(file_.processes);
  // A condition about the GPU: those that are modelled have CUDA, and 16 bits of bfloat.
  if (last.starts_with("is_") && (last.ends_with("_available") || last.ends_with("_supported")))
    return of_truth(std::ranges::none_of(
        std::array{"xpu", "mps", "npu", "hpu", "tpu", "xla", "mlu", "musa"},
        [&](const char* other) { return name.find(other) != std::string::npos; }));
  if (const std::size_t dot = name.rfind('.'); dot != std::string::npos) {
    const PythonValue base = lookup(name.substr(0, dot), line);
    if (base.kind != Kind::unknown && base.kind != Kind::object)
      return method(base, last, told, line);
    if (base.kind == Kind::object && last == "get") return method(base, last, told, line);
  }
  for (const PythonClass& type : file_.classes)
    if (type.name == last) {
      keywords.kind = Kind::object;
      keywords.text = last;
      const std::vector<PythonAssignment> fields = fields_of(file_, type);
      for (std::size_t i = 0; i < told.size() && i < fields.size() && type.is_data; ++i)
        if (!fields[i].names.empty()) put(keywords, fields[i].names.front(), told[i]);
      return keywords;
    }
  for (std::size_t scope = 1; scope < file_.scopes.size(); ++scope)
    if (file_.scopes[scope].name == last) return returned(scope, line, told, keywords);
  return unknown(fmt::format("{}() of line {}, which is not run", name, line));
}

std::optional<PythonValue> Evaluation::known_call(const std::string& name, const std::string& last,
                                                  const std::vector<PythonValue>& told,
                                                  const PythonValue& keywords) {
  const bool one = told.size() == 1;
  const bool whole = name == "int";
  if ((whole || name == "float") && one) return as_number(told[0], whole);
  if (name == "str" && one && told[0].kind == Kind::text) return told[0];
  if (name == "str" && one && told[0].kind == Kind::number)
    return of_text(fmt::format("{}", told[0].number));
  if (name == "bool" && one && told[0].kind != Kind::unknown) return of_truth(truth_of(told[0]));
  if (name == "len" && one && (told[0].kind == Kind::list || told[0].kind == Kind::table))
    return of_number(static_cast<double>(told[0].items.size()), true);
  if (name == "round" && one && is_number(told[0]))
    return of_number(std::round(told[0].number), true);
  if ((name == "math.ceil" || name == "math.floor") && one && is_number(told[0]))
    return of_number(last == "ceil" ? std::ceil(told[0].number) : std::floor(told[0].number), true);
  if ((name == "list" || name == "tuple" || name == "set" || name == "sorted") && one)
    return told[0];
  if ((name == "max" || name == "min") && told.size() == 2) {
    PythonValue less = compared("<", told[0], told[1]);
    if (less.kind == Kind::unknown) return less;
    return truth_of(less) == (name == "min") ? told[0] : told[1];
  }
  return library_call(name, last, told, keywords);
}

std::optional<PythonValue> Evaluation::library_call(const std::string& name,
                                                    const std::string& last,
                                                    const std::vector<PythonValue>& told,
                                                    const PythonValue& keywords) {
  const bool one = told.size() == 1;
  if ((name == "os.environ.get" || name == "os.getenv" || name == "getenv") && !told.empty() &&
      told[0].kind == Kind::text) {
    const PythonValue* named = keywords.at("default");
    const PythonValue nothing{.kind = Kind::none};
    const bool asks_alone = told.size() < 2 && named == nullptr;
    if (asks_alone && !given(told[0].text) && !file_.environment.contains(told[0].text) &&
        told[0].text != "WORLD_SIZE")
      return nothing;
    return from_environment(told[0].text, told.size() > 1 ? &told[1] : named);
  }
  if (name == "getattr" && told.size() > 1 && told[1].kind == Kind::text) {
    const std::string& asked = told[1].text;
    if (const PythonValue* there = told[0].at(asked)) return *there;
    if (told[0].text == "torch") return told[1];
    if (told[0].kind == Kind::object)
      if (auto own = attribute(told[0].text, asked)) return own;
    if (auto argument = started_with(asked)) return argument;
    if (const auto place = file_.arguments.find(asked);
        place != file_.arguments.end() && !place->second.empty())
      return value({0, 0, -1}, place->second);
    if (asked.find("float") != std::string::npos) return told[1];
    return told.size() > 2 ? told[2] : unknown(fmt::format("getattr(..., {})", asked), asked);
  }
  // The folder is called as the model is: of Hugging Face and of ModelScope.
  if (last == "snapshot_download") {
    for (const char* key : {"repo_id", "model_id"})
      if (const PythonValue* there = keywords.at(key)) return *there;
    if (!told.empty()) return told[0];
  }
  if (name == "dict" && told.empty()) return keywords;
  if (name == "dict" && one && told[0].kind == Kind::table) return told[0];
  if (last == "DictConfig" || last == "SimpleNamespace" || last == "EasyDict" ||
      last == "AttrDict" || last == "to_container" || last == "create" || last == "Namespace")
    if (one || told.empty())
      if ((one && told[0].kind == Kind::table) || (told.empty() && !keywords.items.empty()))
        return one ? told[0] : keywords;
  if ((name == "field" || last == "field" || last == "Field" || last == "Option" ||
       last == "Argument")) {
    for (const char* key : {"default", "default_factory"})
      if (const PythonValue* there = keywords.at(key)) return *there;
    if (!told.empty() && last != "field") return told[0];
    return unknown("a field without a default");
  }
  if (name == "open" || last == "Path" || last == "fspath" || last == "abspath" ||
      last == "expanduser" || last == "realpath" || name == "vars" || last == "asdict")
    return told.empty() ? std::optional<PythonValue>() : told[0];
  if (name == "os.path.join") {
    std::string path;
    for (const PythonValue& part : told) path = joined(path, part.text);
    return of_text(path);
  }
  if (last == "get_device_capability")
    return PythonValue{.kind = Kind::list, .items = {of_number(9, true), of_number(0, true)}};
  if ((last == "safe_load" || last == "load" || last == "full_load" || last == "loads" ||
       last == "from_yaml_file") &&
      !told.empty() && told[0].kind == Kind::text && file_.settings_file)
    return file_.settings_file(told[0].text);
  return std::nullopt;
}

}  // namespace stepsim::python
