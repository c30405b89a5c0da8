// These write the head of an answer: what it is, what was taken, what is missing from it, and what
// it hangs on.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analysis/report/page.hpp"
#include "analysis/studies/outcome/next_steps.hpp"
#include "analysis/studies/outcome/open_values.hpp"
#include "analysis/studies/predict/footprint.hpp"
#include "scenarios/scenario.hpp"
#include "sim/base/record.hpp"
#include "sim/base/table.hpp"

namespace stepsim {

// Text of answers is no wider.
inline constexpr std::size_t answer_width = 100;

// Returns what `make` writes with lists of at most six entries each, or of fewer, so that it fits
// a screen below a head of so many lines.
std::string on_one_screen(const std::function<std::string(std::size_t most)>& make,
                          std::size_t head_lines = 4);

// Writes the name in front, and what is not told by it: model, machine, stack.
std::string title_line(const Scenario& scenario);

// Writes the time and the verdict in a sentence. A verdict that hangs on what no file says is said
// to.
std::string answer_sentence(const Scenario& scenario, const Footprint& memory,
                            const std::string& time, const std::vector<OtherVerdict>& others);
// Writes the one change that helps most; "" where none is known.
std::string first_change(const std::optional<FasterSteps>& faster,
                         const std::optional<FittingSteps>& fitting);
// Writes for each other verdict what was taken, and what holds otherwise.
std::string others_text(const Footprint& memory, const std::vector<OtherVerdict>& others);

// Writes what was taken, and what the constants are anchored on, in a paragraph with a margin.
std::string taken_paragraph(const Scenario& scenario);
// Writes what the answer is without, with its effect; "" where nothing is missing.
std::string not_modelled_paragraph(const Scenario& scenario);
// Writes at most so many of the values that were assumed, and how many more there are.
std::string open_values_table(const std::vector<OpenValue>& values, std::size_t most);

// Writes the table within the width of an answer, long words and all.
std::string within_screen(const TextTable& table);

// Writes "  label   text", wrapped, further lines below the text.
std::string labelled(std::string_view label, const std::string& text);

// Returns the same for machines.
Record taken_record(const Scenario& scenario);
Record not_modelled_record(const Scenario& scenario);
Record others_record(const std::vector<OtherVerdict>& others);

// Puts the same into the head of a page.
void add_taken(const Scenario& scenario, PageStep& step);

// Returns what the driver's own tool is called: nvidia-smi, or that of another vendor.
std::string_view device_tool(const Scenario& scenario);

}  // namespace stepsim
