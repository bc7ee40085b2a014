// The JSON report of a finished job (docs/report.md): what was done, measured and estimated, and
// why the job ended. Pure functions.
#pragma once

#include <string>

#include "server/job.h"

namespace ag {

inline constexpr int kReportVersion = 2;

// The kernels that were timed beside each other for one group of the output's plan.
struct GroupKernels {
  int group = 0;  // Its number in the plan.
  Measurement measurement;
};

struct ReportFacts {
  const JobRequest* request = nullptr;
  const JobResult* result = nullptr;  // Its fields report and output_bytes may be unset.
  std::string input_plan;             // FormatPlan's text; "" when there is none.
  std::string output_plan;
  std::vector<GroupKernels>
      output_kernels;  // Ascending; groups that were not measured are left out.
  int pairs = 0;       // Pairs of groups that were timed together,
  double overlap = 1;  // and the overlap that follows (plan/sharing.h).
  std::string rules_digest;
  int nodes_in = 0;
  int nodes_out = 0;
};
std::string WriteReport(const ReportFacts& facts);

}  // namespace ag
