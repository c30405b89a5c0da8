// Models are found by name, from workloads/models, or from a path to a config.json.
#pragma once

#include <string>
#include <string_view>

#include "topology/catalog.hpp"
#include "workloads/model/model.hpp"

namespace stepsim {

inline constexpr Shelf model_shelf{"workloads/models", "model"};

// A word that ends in .json, holds a slash, or names a folder with a config.json in it.
bool is_config_path(std::string_view name_or_path);

// Returns what a name of Hugging Face, ORG/NAME or NAME, leads to: a model of the catalogue that is
// called like it or lists it under `also`, a config.json in the local cache, or a model of the
// catalogue that somebody else has a copy of under the same name. Everything else stays as it is.
std::string resolve_model(const Catalogue& data, const std::string& name);
// Says what there is to say of an id that leads nowhere.
std::string unknown_id_text(const Catalogue& data, const std::string& id);

// Returns the name that Hugging Face has for a model of the catalogue, as other programs want it;
// the name itself where nobody publishes it there.
std::string published_name(const Catalogue& data, const std::string& name);

// Throws UserError with the nearest name, or with every problem of the file. A catalogue file pins
// its number of parameters: one that its dimensions do not give is an error, too.
Model load_model(const Catalogue& data, const std::string& name_or_path);

}  // namespace stepsim
