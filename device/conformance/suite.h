// Checks that hold for every device. Each takes a graph in the form of cases.h, runs it on the
// device and compares with the reference; the status says which plan, group, kernel or layout went
// wrong.
#pragma once

#include <string_view>

#include "device/api/device.h"

namespace ag {

// Plans of one stream and of two, grouped and ungrouped: outputs as the reference's, two runs of
// one executable bit-identical, and every group that launches in the trace once.
Status CheckPlans(Device& device, std::string_view text);

// Each group of the grouped plan, built with every kernel that the device offers for it.
Status CheckKernels(Device& device, std::string_view text);

// Each group in each layout of its pattern at all ports that can have it. A layout that no kernel
// takes is skipped; what the planner chooses by itself is CheckPlans' business and may not be
// refused.
Status CheckLayouts(Device& device, std::string_view text);

}  // namespace ag
