#include "scenarios/read/recipes.hpp"

namespace stepsim {

Recipe read_recipe(const Table& file) {
  Recipe recipe{file.text("name"), file.text("title"), {}};
  file.text_or("note", "");
  if (const auto offers = file.table_if("offers"))
    for (const std::string& key : offers->keys())
      recipe.offers.emplace_back(key, offers->values(key));
  return recipe;
}

}  // namespace stepsim
