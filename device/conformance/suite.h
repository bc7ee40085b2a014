// Checks that hold for every device. Each takes a graph in the form of cases.h, runs it on the
// device in `precision`, which the device must offer, and compares the outputs with the reference.
// The status names the plan, group, kernel or layout that went wrong. The tolerance depends on the
// precision; 16-bit precisions get inputs that they can represent. One thread at a time for one
// device.
#pragma once

#include <string>
#include <string_view>

#include "device/api/device.h"

namespace ag {

// Checks plans of one and of two streams, grouped and ungrouped: the outputs equal the reference's,
// two runs of one executable are bit-identical, and the trace has every launched group once.
Status CheckPlans(Device& device, std::string_view text, const std::string& precision = "fp32");

// Checks that the grouped plan gives the expected values of one output, element by element. Values
// of `inputs` that a precision below f32 would round are not for this.
Status CheckValues(Device& device, std::string_view text,
                   const std::vector<std::vector<double>>& inputs,
                   const std::vector<double>& expected);

// Checks that cold runs of a plan return a time, twice, and do not change what the next run
// computes. On a device whose spec says that caches cannot be evicted, checks for kUnimplemented.
Status CheckColdRuns(Device& device, std::string_view text, const std::string& precision = "fp32");

// Checks each group of the grouped plan with every kernel that the device offers for it.
Status CheckKernels(Device& device, std::string_view text, const std::string& precision = "fp32");

// Checks each group in each layout of its pattern at all ports that can have it. Skips a layout
// that no kernel takes. CheckPlans covers the planner's own choices, which no kernel may refuse.
Status CheckLayouts(Device& device, std::string_view text, const std::string& precision = "fp32");

// Checks each group of the grouped plan beside the next one, as pairs are timed
// (plan/fusion/pair_problem.h): they share nothing, so each computes what it does alone. Checks
// nothing on a device of one stream.
Status CheckPairs(Device& device, std::string_view text, const std::string& precision = "fp32");

// Checks plans of several instances: in two parts and in as many as there are samples. The outputs
// equal the reference's, and are the bytes that the instance's plan gives on each part by itself.
// Checks nothing where the batch cannot be cut; returns the number of plans.
StatusOr<int> CheckInstances(Device& device, std::string_view text,
                             const std::string& precision = "fp32");

// Checks plans of two and three segments, cut at up to five places: sample by sample, then in parts
// that divide the batch, then the whole; every other plan has two runs beside each other and the
// same parts at last. The outputs equal the reference's, and are the bytes that the same plans give
// when each segment runs over the whole batch before the next. Checks nothing where the batch
// cannot be cut there, or the device runs no such plans; returns the number of plans.
StatusOr<int> CheckSegments(Device& device, std::string_view text,
                            const std::string& precision = "fp32");

}  // namespace ag
