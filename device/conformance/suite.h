// Checks that hold for every device. Each takes a graph in the form of cases.h, runs it on the
// device in `precision` (which the device offers) and compares with the reference; the status says
// which plan, group, kernel or layout went wrong. How far results may be off depends on the
// precision; under the 16-bit ones inputs are numbers that they have.
#pragma once

#include <string>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// Plans of one stream and of two, grouped and ungrouped: outputs as the reference's, two runs of
// one executable bit-identical, and every group that launches in the trace once.
Status CheckPlans(Device& device, std::string_view text, const std::string& precision = "fp32");

// A cold run of a plan takes a time, twice, and leaves what the next run computes as it is. Where
// the spec says that caches cannot be flushed it is kUnimplemented.
Status CheckColdRuns(Device& device, std::string_view text, const std::string& precision = "fp32");

// Each group of the grouped plan, built with every kernel that the device offers for it.
Status CheckKernels(Device& device, std::string_view text, const std::string& precision = "fp32");

// Each group in each layout of its pattern at all ports that can have it. A layout that no kernel
// takes is skipped; what the planner chooses by itself is CheckPlans' business and may not be
// refused.
Status CheckLayouts(Device& device, std::string_view text, const std::string& precision = "fp32");

// Each group of the grouped plan beside the one after it, as pairs are timed (plan/pair_problem.h):
// they share nothing, so each computes what it does alone. Nothing is checked on a device of one
// stream.
Status CheckPairs(Device& device, std::string_view text, const std::string& precision = "fp32");

}  // namespace ag
