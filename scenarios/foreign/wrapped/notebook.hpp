// This reads a Jupyter notebook: its code cells are one program, and lines that begin with ! or %
// are a script beside it. Nothing of it is run.
#pragma once

#include <cstddef>
#include <string>

#include "scenarios/foreign/wrapped/wrapped_source.hpp"

namespace stepsim {

class Catalogue;

// `number`: which of the trainings, from 1 on; a notebook may load a model and train it, and then
// do the same with another one. Throws UserError about what is no notebook, and about several
// trainings of different models where `number` is 0.
WrappedSource read_notebook(const Catalogue& data, const std::string& file, std::size_t number);

}  // namespace stepsim
