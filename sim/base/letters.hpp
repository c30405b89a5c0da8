// Letters without regard to their size, the same in every locale.
#pragma once

#include <string>
#include <string_view>

namespace stepsim {

std::string in_small_letters(std::string_view text);

// Names of files may be any bytes: what is no UTF-8 becomes U+FFFD.
std::string as_utf8(std::string_view text);

}  // namespace stepsim
