// A figure that says where it comes from.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.hpp"

namespace stepsim {

// A grade says how far a figure can be trusted; the best comes first.
enum class Grade { measured, fitted, derived, vendor, datasheet, guess, given };

struct GradeName {
  Grade grade;
  std::string_view name, meaning;
};
inline constexpr std::array grade_names{
    GradeName{Grade::measured, "measured", "somebody measured it and published the figure"},
    GradeName{Grade::fitted, "fitted", "chosen so that a model meets measured tables"},
    GradeName{Grade::derived, "derived", "arithmetic on measured figures"},
    GradeName{Grade::vendor, "vendor", "stated or guaranteed by the vendor"},
    GradeName{Grade::datasheet, "datasheet", "nominal peak"},
    GradeName{Grade::guess, "guess", "no source; the range is wide on purpose"},
    GradeName{Grade::given, "given", "set in the scenario or on the command line"},
};
std::string_view to_text(Grade grade);

template <class Q>
struct Constant {
  Q value, low, high;
  Grade grade = Grade::guess;
  std::string source;

  double number() const { return value.value; }  // as stated, drawn or given, in SI units

  friend bool operator==(const Constant&, const Constant&) = default;
};

// This is the same constant, named and with its unit as data: so a trace and a report keep it.
struct NamedConstant {
  std::string name;  // "gpu.memory.stream"
  Dimension dimension{};
  double value{}, low{}, high{};
  Grade grade = Grade::guess;
  std::string source;
  bool whole = false;                // counts something
  std::vector<std::string> words{};  // one of these: value, low and high are places among them
};
// Writes a value of the constant as a person reads it.
std::string value_text(const NamedConstant& constant, double value);

// The user put this value in the place of the catalogue's, by the constant's full name.
struct GivenConstant {
  std::string name;
  double value{};
};

}  // namespace stepsim
