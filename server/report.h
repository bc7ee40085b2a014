// The JSON report of a finished job (docs/report.md): what was done, measured, estimated, and why
// it ended.
#pragma once

#include <string>

#include "server/job.h"

namespace ag {

inline constexpr int kReportVersion = 2;

// The kernels that one group of the output's plan was timed with, beside each other.
struct GroupKernels {
  int group = 0;  // Its number in the plan.
  Measurement measurement;
};

struct ReportFacts {
  const JobRequest* request = nullptr;
  const JobResult* result = nullptr;  // report and output_bytes may be unset.
  std::string input_plan;             // FormatPlan's text; "" when there is none.
  std::string output_plan;
  std::vector<GroupKernels>
      output_kernels;  // Ascending; groups that were not measured are left out.
  int pairs = 0;       // Pairs of groups that were timed together,
  double overlap = 1;  // and what they say (plan/sharing.h).
  std::string rules_digest;
  int nodes_in = 0;
  int nodes_out = 0;
};
std::string WriteReport(const ReportFacts& facts);

}  // namespace ag
