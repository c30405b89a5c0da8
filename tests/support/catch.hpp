// The one place that knows which test library and which major version of it we use.
#pragma once

#include <catch2/catch.hpp>  // IWYU pragma: export
