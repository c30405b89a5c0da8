// A scenario calls entries by name, which are found in the catalogue: model, machine, stack.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/read/constants.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/config.hpp"

namespace stepsim {

// A file beside the scenario, sweep or claims that name it goes before one where the program was
// started.
std::string beside(const std::string& file, const std::string& path);

struct Names {
  std::string model, stack;  // model: empty when the scenario holds a config.json itself
  ClusterChoice cluster;
};
Names read_names(const Catalogue& data, const Table& root, const Table& cluster,
                 const std::string& scenario_file);

// A name that the catalogue does not have is noted with the others; an absent one is noted already.
bool known(const Table& table, std::string_view key, std::string_view what, const std::string& name,
           const Catalogue& data, std::initializer_list<Shelf> shelves);

struct Found {
  bool model = false, cluster = false, stack = false;
};
Found find_entries(const Catalogue& data, const Table& root, const Table& cluster,
                   const Names& names);

// Readings say how the constants are read: as stated, drawn, or as the scenario says.
struct Readings {
  const MaybeDraw& draw;
  std::vector<GivenConstant> given;
  std::span<const Setting> stack;  // changes of the stack's file
};
// An entry whose constants are drawn or given; `scope` goes before their names.
Document under(Document document, const Readings& readings, std::string_view scope);
// Keeps what a scenario rests on: the constants that were read from an entry.
void keep_constants(const Document& document, std::string_view scope, Scenario& scenario);

// Loads what engines do with layers without attention: rates and operators as learners' stacks have
// them.
void load_mixers(const Catalogue& data, const MaybeDraw& draw, EngineStack& engine);

// GPUs and links that are slower than their files say, if the scenario has any.
void load_faults(const Catalogue& data, const Table& cluster, const Readings& readings,
                 Scenario& scenario);
// The files of overlays of the catalogue that a scenario's entries were read from.
std::vector<std::string> overlay_files(const Catalogue& data, const Names& names,
                                       const Found& found, const Scenario& scenario);
// The optimizer that the strategy names, with what `optimizer_kernels` says of it, or leaves out.
void load_optimizer(const Catalogue& data, const Table& strategy, const Readings& readings,
                    Scenario& scenario);
// Loads what adapters are, and how the matrices beside them are stored.
void load_adapters(const Catalogue& data, const Table& strategy, const Readings& readings,
                   Scenario& scenario);
// Loads how the strategy's products run. If `machine`, the machine was found, and has to have units
// for them.
void load_precision(const Catalogue& data, const Table& strategy, const Readings& readings,
                    bool machine, Scenario& scenario);
// Loads what was found; the rest of the scenario stays as it is.
void load_entries(const Catalogue& data, const Names& names, const Found& found,
                  const Readings& readings, Scenario& scenario);

}  // namespace stepsim
