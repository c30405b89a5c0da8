// The one place that knows which test library and which major version of it we use.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>  // IWYU pragma: export

// These name what version 3 has as version 2 does, which Debian 12 brings.
using Catch::Approx;
namespace Catch {
using Matchers::EndsWith, Matchers::Equals, Matchers::StartsWith;
using Matchers::WithinAbs, Matchers::WithinRel;
inline auto Contains(const std::string& text) {
  return Matchers::ContainsSubstring(text);
}
}  // namespace Catch
#else
#include <catch2/catch.hpp>  // IWYU pragma: export
#endif
