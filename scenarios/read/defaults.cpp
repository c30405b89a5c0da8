#include "scenarios/read/defaults.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>

#include "scenarios/foreign/deepspeed/deepspeed.hpp"
#include "scenarios/read/entries.hpp"
#include "scenarios/read/releases.hpp"
#include "sim/base/error.hpp"
#include "sim/base/lists.hpp"
#include "workloads/model/hf_config.hpp"
#include "workloads/model/model_catalog.hpp"

namespace stepsim {
namespace {

// Returns the experts of a model by name, by path, or written in the scenario; nothing for a dense
// one, and for one that cannot be read, which the reading of the scenario says.
std::optional<std::string> experts_of(const Catalogue& data, const Document& scenario) {
  const std::string name = resolve_model(data, scenario.peek("model").value_or(""));
  if (name.empty()) return experts_said(scenario, "model");
  if (const std::string path = beside(scenario.file(), name); is_config_path(path)) {
    try {
      const Model model = load_model(data, path);
      if (model.experts) return fmt::format("{}", model.experts->count);
    } catch (const UserError&) {
    }
    return {};
  }
  if (!is_on(data, model_shelf, name)) return {};
  return experts_said(open_entry(data, model_shelf, name), "config");
}

std::optional<std::string> gpus_of(const Catalogue& data, const Document& scenario) {
  try {
    Document own = parse_document(scenario.canonical(), scenario.file());
    const Table root = own.root();
    const Names names = read_names(data, root, root.table("cluster"), scenario.file());
    return fmt::format("{}", load_cluster(data, names.cluster).ranks());
  } catch (const UserError&) {
    return {};
  }
}

// DeepSpeed's own file wins over keys of the scenario, but for those that were set over it.
std::map<std::string, std::string> told_by_deepspeed(const Catalogue& data,
                                                     const Document& scenario) {
  const std::string name = scenario.peek("strategy.deepspeed").value_or("");
  if (name.empty()) return {};
  std::map<std::string, std::string> told = deepspeed_words(data, beside(scenario.file(), name));
  for (const std::string& key : scenario.root().table("strategy").texts_or(deepspeed_except))
    std::erase_if(told, [&](const auto& each) { return each.first == key; });
  return told;
}

}  // namespace

std::vector<std::string> read_recipe_names(const Catalogue& data, const Table& root) {
  std::vector<std::string> names;
  if (root.has("recipe")) names = root.values("recipe");
  for (const std::string& name : names) known(root, "recipe", "recipe", name, data, {recipe_shelf});
  return names;
}

void check_offers(const Catalogue& data, const Document& scenario) {
  if (!scenario.peek("recipe")) return;
  for (const std::string& name : scenario.root().values("recipe")) {
    if (!is_on(data, recipe_shelf, name)) continue;
    const Document file = open_entry(data, recipe_shelf, name);
    const Recipe recipe = read_recipe(file.root());
    for (const auto& [path, offered] : recipe.offers) {
      const std::string said = scenario.peek(path).value_or("");
      if (said.empty() || holds(offered, said)) continue;
      const std::size_t dot = path.find('.');
      scenario.root()
          .table(path.substr(0, dot))
          .problem(path.substr(dot + 1), fmt::format("{} is not in {}, which has {}", said,
                                                     recipe.title, fmt::join(offered, ", ")));
    }
  }
}

void lay_defaults(const Catalogue& data, Document& scenario) {
  std::vector<Document> files;
  std::vector<Default> defaults;
  const auto add = [&](const Shelf& shelf, const std::string& name) {
    if (!is_on(data, shelf, name)) return;
    const Document& file = files.emplace_back(open_entry(data, shelf, name));
    if (shelf.folder == recipe_shelf.folder) read_recipe(file.root());
    append(defaults, read_defaults(file.root(), fmt::format("{} {}", shelf.singular, name)));
    if (shelf.folder == recipe_shelf.folder) file.finish();  // a stack is read once more, as one
  };
  if (scenario.peek("recipe"))
    for (const std::string& name : scenario.root().values("recipe")) add(recipe_shelf, name);
  // A release goes before the stack, which says what all do, and what the newest does.
  const std::string stack = scenario.peek("stack").value_or("");
  std::vector<std::string> programs;
  if (is_on(data, stack_shelf, stack))
    programs = open_entry(data, stack_shelf, stack).root().texts_or("releases");
  for (const Default& each : defaults)  // of recipes, which may say a release
    if (each.when.empty() && each.set.is_mapping(releases_block))
      scenario.underlay(each.set, each.origin);
  std::vector<Document> releases;
  append(defaults, release_defaults(data, scenario, programs, releases));
  add(stack_shelf, stack);
  const std::map<std::string, std::string> told = told_by_deepspeed(data, scenario);
  lay_under(scenario, std::move(defaults), [&](std::string_view fact) {
    if (fact == gpus_fact) return gpus_of(data, scenario);
    if (fact == experts_fact) return experts_of(data, scenario);
    const auto theirs = told.find(std::string(fact));
    return theirs == told.end() ? scenario.peek(fact) : std::optional(theirs->second);
  });
}

Recipe read_recipe(const Table& file) {
  Recipe recipe{file.text("name"), file.text("title"), {}};
  file.text_or("note", "");
  if (const auto offers = file.table_if("offers"))
    for (const std::string& key : offers->keys())
      recipe.offers.emplace_back(key, offers->values(key));
  return recipe;
}

}  // namespace stepsim
