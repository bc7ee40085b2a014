// Whether figures that came from elsewhere can have been measured at all. CheckMeasurement
// (plan/measurement.h) and CheckFileTimes (plan/file_times.h) belong to it. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "plan/measurement.h"

namespace ag {

// Whether a run may take so long: from a thousandth of a nanosecond to eleven days, so finite. A
// ratio of two such times is finite.
bool IsPossibleTime(double ns);

// Returns kInvalidArgument for a figure of a timing whose status is OK that nobody can have
// measured: a latency that is no time, a median outside its interval, a count below 0 or above what
// it is a part of, a verdict that is not that of its interval.
Status CheckPlanTiming(const PlanTiming& timing);

// Returns kInvalidArgument for an error that is below 0 or NaN, and unless the names are those of
// `outputs`, in this order.
Status CheckOutputErrors(const std::vector<OutputError>& errors,
                         const std::vector<std::string>& outputs);

}  // namespace ag
