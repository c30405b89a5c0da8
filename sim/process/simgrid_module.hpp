// SimGrid is in a module of its own, which is loaded where somebody needs it, and nowhere else.
#pragma once

namespace stepsim {

// Returns a function of the module by its name. The module stays loaded in this process. Throws
// MachineError that says why it cannot be loaded.
void* simgrid_function(const char* name);

}  // namespace stepsim
