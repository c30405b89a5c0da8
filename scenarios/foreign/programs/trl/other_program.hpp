// Programs that train something else than a language model: by the class that they load or train.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

class Catalogue;

// Returns "calls AutoModelForSequenceClassification in line 12: that is a classifier, ..."; empty:
// nothing that is known and not modelled is called. Throws UserError about what is no Python.
std::string other_training_in(const Catalogue& data, std::string_view text,
                              const std::string& file);

}  // namespace stepsim
