#include "scenarios/foreign/table/trainer_adapters.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "scenarios/foreign/table/trainer_words.hpp"
#include "scenarios/rules/rules.hpp"
#include "sim/base/letters.hpp"
#include "sim/base/lists.hpp"

namespace stepsim {
namespace {

// Returns those of the names that matrices of the model have; nothing where that is all of them.
std::vector<std::string> modules_there(const MappedSource& source, const Table& same,
                                       const std::vector<std::string>& names) {
  if (!source.around().model) return {};
  const std::vector<std::string> matrices = matrices_of(*source.around().model);
  Lora there;
  const auto add = [&](const std::string& name) {
    const Lora one{.modules = {name}};
    const bool found =
        std::ranges::any_of(matrices, [&](const std::string& each) { return one.chooses(each); });
    if (found && !holds(there.modules, name)) there.modules.push_back(name);
    return found;
  };
  const auto own = same.table_if(source.around().model->architecture);
  for (const std::string& name : names)
    if (const std::string last = name.substr(name.rfind('.') + 1);
        !add(name) && own && own->has(last))
      for (const std::string& each : own->texts(last)) add(each);
  const bool all =
      std::ranges::all_of(matrices, [&](const std::string& each) { return there.chooses(each); });
  return all ? std::vector<std::string>{} : there.modules;
}

// Puts embedding and head that are trained as a whole beside adapters; tells of other modules.
void put_whole_modules(MappedSource& source, const Table& outer, std::string_view key) {
  if (key.empty() || !source.says(key)) return;
  const Table known = outer.table("whole_modules");
  std::vector<std::string> others;
  for (const std::string& said : words_at(source, key)) {
    const std::string last = said.substr(said.rfind('.') + 1);
    if (holds(known.texts("embedding"), last))
      source.put("strategy.lora.train_embedding", "true", key);
    else if (holds(known.texts("head"), last))
      source.put("strategy.lora.train_head", "true", key);
    else
      others.push_back(said);
  }
  if (!others.empty())
    source.without_memory(key, fmt::format("{}: trained whole, so that copies, gradients and "
                                           "states of them come on top",
                                           fmt::join(others, ", ")));
}

// Puts what is trained instead of a product of two matrices, and how its kernels run.
void put_kind_of_adapter(MappedSource& source, const AdapterWords& words) {
  const bool dora = !words.dora_key.empty() && source.on(words.dora_key);
  if (dora) source.put("strategy.lora.method", "dora", words.dora_key);
  // A share of 0 is put as well: the stack may have another default.
  if (!words.dropout_key.empty() && (words.usual_dropout || source.says(words.dropout_key)))
    source.put(
        "strategy.lora.dropout",
        fmt::format("{}", source.number(words.dropout_key, words.usual_dropout.value_or(0), 0, 1)),
        words.dropout_key);
  if (!words.fused) return;
  if (dora)
    source.without(words.fused_key, "fused functions around DoRA: the real step is faster");
  else
    source.put("strategy.lora.kernels", "fused", words.fused_key);
}

// Returns what a pattern stands for, as far as it says so: "(up|down)_proj" is "up_proj" and
// "down_proj"; nothing where it has other signs.
std::vector<std::string> alternatives_in(std::string_view pattern) {
  constexpr std::size_t most = 64;
  std::vector<std::string> all{""};
  while (!pattern.empty()) {
    std::vector<std::string> parts{""};
    if (pattern.front() == '(') {
      const std::size_t end = pattern.find(')');
      if (end == std::string_view::npos) return {};
      std::string_view inside = pattern.substr(1, end - 1);
      if (inside.starts_with("?:")) inside.remove_prefix(2);
      for (const char c : inside)
        if (c == '|')
          parts.emplace_back();
        else if (is_letter_or_digit(c) || c == '_')
          parts.back() += c;
        else
          return {};
      pattern.remove_prefix(end + 1);
    } else {
      parts.front() = pattern.front();
      if (!is_letter_or_digit(pattern.front()) && pattern.front() != '_') return {};
      pattern.remove_prefix(1);
    }
    std::vector<std::string> longer;
    for (const std::string& begin : all)
      for (const std::string& part : parts)
        if (longer.size() < most) longer.push_back(begin + part);
    all = std::move(longer);
  }
  return all;
}

// peft takes one text for a pattern over the whole names of modules: the last part says which
// matrices, or the names of matrices that stand in it.
std::vector<std::string> modules_of_pattern(const std::string& said, const Table& known) {
  if (said.find_first_of("(|") == std::string::npos) return {said};
  std::string_view last = said;
  while (!last.empty() && std::string_view("$^.*+?").find(last.back()) != std::string_view::npos)
    last.remove_suffix(1);
  int depth = 0;
  for (std::size_t at = last.size(); at > 0; --at) {
    depth += last[at - 1] == ')' ? 1 : last[at - 1] == '(' ? -1 : 0;
    if (depth != 0 || std::string_view(".*+").find(last[at - 1]) == std::string_view::npos)
      continue;
    last.remove_prefix(at);
    break;
  }
  std::vector<std::string> modules = alternatives_in(last);
  if (!modules.empty()) return modules;
  std::string word;
  for (const char c : said + ".") {
    if (is_letter_or_digit(c) || c == '_') {
      word += c;
      continue;
    }
    for (const char* where : {"attention", "feed_forward"})
      if (holds(known.texts(where), word) && !holds(modules, word)) modules.push_back(word);
    word.clear();
  }
  return modules.empty() ? std::vector{said} : modules;
}

}  // namespace

void put_adapter(MappedSource& source, const AdapterWords& words) {
  const Document shared = shared_words(source);
  const Table modules = shared.root().table("lora_modules");
  std::vector<std::string> named =
      words.modules ? *words.modules : words_at(source, words.modules_key);
  if (named.empty() && !words.usual_modules.empty()) named = {words.usual_modules};
  if (named.size() == 1) named = modules_of_pattern(named.front(), modules);
  source.put("strategy.lora.rank",
             words.rank > 0 ? words.rank
                            : source.whole(words.rank_key, words.usual_rank, 1, most_lora_rank),
             words.rank_key);
  const auto names_any = [&](std::string_view where) {
    const std::vector<std::string> known = modules.texts(where);
    return std::ranges::any_of(named, [&](const std::string& said) {
      const std::string last = said.substr(said.rfind('.') + 1);
      return holds(known, last) || holds(known, said);
    });
  };
  const bool experts = has_experts(source) && !source.around().model->experts->fused;
  const bool whole = names_any("all"), feed_forward = whole || names_any("feed_forward");
  std::string targets = "attention";
  if (feed_forward) targets = experts ? "all" : "linear";
  source.put("strategy.lora.targets", targets, words.modules_key);
  if (!whole) {
    // A trainer passes over names that the model does not have.
    const std::vector<std::string> usual{"q_proj", "v_proj"};
    const std::vector<std::string> there =
        modules_there(source, shared.root().table("same_matrices"), named.empty() ? usual : named);
    if (!there.empty())
      source.put("strategy.lora.modules", fmt::format("[{}]", fmt::join(there, ", ")),
                 words.modules_key,
                 named.empty() ? "queries and values alone are the usual ones" : "");
  }
  put_whole_modules(source, shared.root(), words.whole_key);
  put_kind_of_adapter(source, words);
  if (!words.format.empty()) source.put("strategy.lora.quantised", words.format, words.format_key);
}

std::string bitsandbytes_format(std::int64_t bits, const std::string& type, bool nested) {
  if (bits == 8) return "int8";
  if (bits != 4) return "";
  return (type == "fp4" ? "fp4" : "nf4") + std::string(nested ? "" : "_single");
}

}  // namespace stepsim
