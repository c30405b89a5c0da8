#include "scenarios/rows/row_catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>

#include "scenarios/rows/step_row.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/error.hpp"
#include "sim/base/letters.hpp"
#include "workloads/model/model_catalog.hpp"
#include "workloads/strategy/defaults.hpp"

namespace stepsim {
namespace {

std::size_t longest_word(const std::vector<std::string>& words, const std::string& text) {
  std::size_t longest = 0;
  for (const std::string& word : words)
    if (contains(text, in_small_letters(word))) longest = std::max(longest, word.size());
  return longest;
}

// Returns letters and digits alone: "Llama-2-7B" and "Llama2-7B" are one, "3.1" and "31" too.
// Between two numbers a line stays, so that "Qwen2-57B" is not "Qwen2.5-7B".
std::string bare(std::string_view name) {
  std::string result;
  bool apart = false;
  for (const char c : in_small_letters(name)) {
    if ((c >= 'a' && c <= 'z') || is_digit(c)) {
      if (apart && is_digit(c) && !result.empty() && is_digit(result.back())) result += '-';
      result += c;
      apart = false;
    } else {
      apart = apart || c != '.';
    }
  }
  return result;
}

std::size_t digits_at(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

// Returns how many characters at the beginning are what people add to a name without meaning
// another model: how it was tuned, a version ("v0.1"), its size ("671B", "A12B", "16E"), a month
// ("2507").
std::size_t ending_at(std::string_view rest) {
  if (rest.starts_with('-')) return 1;
  for (const std::string_view word :
       {"instruct", "thinking", "base", "chat", "hf", "it", "fp8", "bf16", "32k"})
    if (rest.starts_with(word)) return word.size();
  const std::size_t letters = rest.starts_with('v') || rest.starts_with('a') ? 1 : 0;
  const std::size_t digits = digits_at(rest.substr(letters));
  const std::size_t end = letters + digits;
  if (digits > 0 && rest.starts_with('v')) return end;
  if (digits > 0 && end < rest.size() && (rest[end] == 'b' || rest[end] == 'e')) return end + 1;
  return digits == 4 ? end : 0;
}

bool ends_a_name(std::string_view rest) {
  while (!rest.empty()) {
    const std::size_t length = ending_at(rest);
    if (length == 0) return false;
    rest.remove_prefix(length);
  }
  return true;
}

double first_of(const Table& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys)
    if (config.has(key)) return config.number(key, 0, 1e9);
  return 0;
}

RowCatalog::ModelSize size_in(const Table& model) {
  const auto outer = model.table_if("config");
  if (!outer) return {};
  const auto inner = outer->table_if("text_config");
  const Table& config = inner ? *inner : *outer;
  return {.layers = first_of(config, {"num_hidden_layers", "n_layers", "n_layer"}),
          .hidden = first_of(config, {"hidden_size", "d_model", "n_embd"}),
          .experts = first_of(config, {"num_experts", "num_local_experts", "n_routed_experts"})};
}

Recipe row_recipe(const Document& file) {
  const Table root = file.root();
  Recipe recipe = read_recipe(root);
  const auto check = [&](std::string_view key, const CellWords& words) {
    for (const auto& [column, wanted] : words)
      if (!is_column(column))
        root.problem(key, fmt::format("\"{}\" is no column of a table of steps{}", column,
                                      did_you_mean(column, step_columns())));
  };
  for (const CellWords& words : recipe.of) check("of", words);
  check("not_of", recipe.not_of);
  for (const auto& [column, text] : recipe.cells) check("cells", {{column, {text}}});
  for (const auto& [column, text] : recipe.corrects) check("corrects", {{column, {text}}});
  read_defaults(root, "");
  file.finish();
  return recipe;
}

}  // namespace

const RowCatalog::NodeSize* RowCatalog::node(std::string_view name) const {
  const auto place = std::ranges::find(nodes, name, &NodeSize::name);
  return place == nodes.end() ? nullptr : &*place;
}

const RowCatalog::EngineName* RowCatalog::engine(std::string_view name) const {
  const auto place = std::ranges::find(engines, name, &EngineName::name);
  return place == engines.end() ? nullptr : &*place;
}

RowCatalog row_catalog(const std::string& data) {
  RowCatalog catalog;
  catalog.data = data;
  catalog.machines = machine_words(data);
  for (const std::string& name : names_on(data, gpu_shelf)) {
    const Gpu gpu = read_gpu(open_entry(data, gpu_shelf, name).root());
    catalog.vendors[name] = gpu.vendor;
    catalog.gpus[name] = gpu;
  }
  for (const std::string& name : names_on(data, engine_shelf)) {
    const Document document = open_entry(data, engine_shelf, name);
    EngineStack stack = read_engine_stack(document.root());
    catalog.engines.push_back({name, stack.title, std::move(stack)});
  }
  for (const std::string& name : names_on(data, node_shelf)) {
    const Document document = open_entry(data, node_shelf, name);
    const Table root = document.root();
    const std::string gpu = root.text_or("gpu", "");
    catalog.nodes.push_back(
        {name, gpu, static_cast<std::uint32_t>(root.table("parts").integer_or("gpu", 1, 1, 1024)),
         catalog.gpus[gpu].peak.bf16.number()});
  }
  for (const std::string& name : names_on(data, stack_shelf)) {
    const Document document = open_entry(data, stack_shelf, name);
    const RowVocabulary words = read_row_vocabulary(document.root());
    catalog.vocabularies[name] = words;
    catalog.titles[name] = document.root().text_or("title", name);
    catalog.vendors[name] = document.root().text_or("vendor", "");
    catalog.stacks.emplace_back(name, words.measured_as);
    catalog.learners.emplace_back(name, words.learners_named);
  }
  for (const std::string& name : names_on(data, precision_shelf)) {
    const Precision precision = read_precision(open_entry(data, precision_shelf, name).root());
    catalog.precisions.emplace_back(name, precision.measured_as);
    // A library gathers what it keeps cast as its recipes say.
    if (precision.gathers && !precision.once) catalog.gathered.push_back(name);
  }
  for (const std::string& name : names_on(data, model_shelf)) {
    const Document document = open_entry(data, model_shelf, name);
    catalog.models[name] = size_in(document.root());
    for (const std::string& also : document.root().texts_or("also"))
      catalog.aliases.emplace_back(also, name);
  }
  for (const std::string& name : names_on(data, recipe_shelf))
    catalog.recipes.push_back(row_recipe(open_entry(data, recipe_shelf, name)));
  return catalog;
}

std::string best_name(const std::vector<MachineWords::Entry>& entries, std::string_view text) {
  const std::string low = in_small_letters(text);
  std::string best;
  std::size_t length = 0;
  for (const auto& [name, words] : entries)
    if (const std::size_t found = longest_word(words, low); found > length) {
      best = name;
      length = found;
    }
  return best;
}

std::string first_name(const std::vector<MachineWords::Entry>& entries, std::string_view text) {
  const std::string low = in_small_letters(text);
  std::string first;
  std::size_t begin = std::string::npos, length = 0;
  for (const auto& [name, words] : entries)
    for (const std::string& word : words) {
      const std::size_t place = low.find(in_small_letters(word));
      if (place == std::string::npos || place > begin || (place == begin && word.size() <= length))
        continue;
      first = name;
      begin = place;
      length = word.size();
    }
  return first;
}

std::string same_model(const RowCatalog& catalog, std::string_view name) {
  // The name goes without who published it, and without a remark behind it, unless that is of
  // another size.
  const auto own = [](std::string_view text) { return text.substr(text.rfind('/') + 1); };
  const std::string_view remark = name.substr(std::min(name.size(), name.find(" (")));
  const bool sized =
      std::ranges::any_of(remark, is_digit) || contains(in_small_letters(remark), "truncated");
  std::string said(own(sized ? name : name.substr(0, name.size() - remark.size())));
  // "Llama-2 class 7B" is of that size.
  constexpr std::string_view filler = " class ";
  if (const std::size_t place = said.find(filler); place != std::string::npos)
    said.replace(place, filler.size(), "-");
  const std::string wanted = bare(said);
  std::string best;
  std::size_t length = 0;  // of the longest name that it begins with
  const auto consider = [&](std::string_view called, const std::string& known) {
    const std::string begin = bare(own(called));
    if (begin.size() <= length || !wanted.starts_with(begin)) return;
    if (!ends_a_name(std::string_view(wanted).substr(begin.size()))) return;
    best = known;
    length = begin.size();
  };
  for (const auto& [known, size] : catalog.models) consider(known, known);
  for (const auto& [also, known] : catalog.aliases) consider(also, known);
  return best;
}

}  // namespace stepsim
