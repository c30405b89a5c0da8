// This reads the elements of an XML file with their lines: as much as it takes to say where a
// mistake is.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stepsim {

struct XmlElement {
  std::string name{};
  int line = 0;
  std::size_t at = 0;  // where its "<" stands in the text
  std::vector<std::pair<std::string, std::string>> attributes{};
  std::string inside{};  // the name of the one that holds it

  // Returns "" where the element has no attribute of that name.
  std::string_view attribute(std::string_view key) const;
};

// Returns the elements in their order, those that hold others before them. Throws UserError where
// elements, attributes or comments do not begin and end as they should; `file` is a name for
// messages.
std::vector<XmlElement> xml_elements(std::string_view text, const std::string& file);

}  // namespace stepsim
