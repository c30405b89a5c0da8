// Letters without regard to their size, the same in every locale.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

std::string in_small_letters(std::string_view text);

}  // namespace stepsim
