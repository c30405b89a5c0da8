#include "scenarios/foreign/table/other_models.hpp"

#include "sim/base/config.hpp"
#include "sim/base/letters.hpp"
#include "topology/catalog.hpp"

namespace stepsim {

std::string why_not_modelled(const Catalogue& data, std::string_view name) {
  const Document document = read_document(data.file("scenarios/foreign/table/other_models.yaml"));
  const std::string small = in_small_letters(name);
  for (const Table& family : document.root().tables("families"))
    for (const std::string& word : family.texts("words"))
      if (small.find(word) != std::string::npos) return family.text("say");
  return "";
}

}  // namespace stepsim
