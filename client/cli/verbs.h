// The verbs of the command line. Each prints everything and returns a process exit code (flags.h).
// One thread at a time.
#pragma once

#include "client/cli/context.h"
#include "client/cli/flags.h"
#include "rules/language/rule_set.h"

namespace ag {

int RunOptimize(Context& context, const OptimizeFlags& flags);

int RunModel(Context& context, const RunFlags& flags);
int RunVerify(Context& context, const VerifyFlags& flags);
int RunBench(Context& context, const BenchFlags& flags);
int RunPlanShow(Context& context, const PlanShowFlags& flags);

int RunZoo(Context& context, const ZooFlags& flags);
int RunRulesList(Context& context, const RulesFlags& flags);
int RunRulesVerify(Context& context, const RulesFlags& flags);
// Returns the rules of a file; "": the built-in ones.
StatusOr<RuleSet> LoadRules(const std::string& file);
int RunDoctor(Context& context, const ModelFlags& flags);

int RunJobsList(Context& context, const JobsFlags& flags);
int RunJobsShow(Context& context, const JobsFlags& flags);
int RunJobsWatch(Context& context, const JobsFlags& flags);
int RunJobsCancel(Context& context, const JobsFlags& flags);
int RunJobsFetch(Context& context, const JobsFlags& flags);
// Writes the job's model to `output`, and its report to `report` unless that is empty.
Status TakeResult(Client& client, const autograph::v1::Job& job, const std::string& output,
                  const std::string& report);

int RunCacheStats(Context& context, const CacheFlags& flags);
int RunCacheList(Context& context, const CacheFlags& flags);
int RunCacheExport(Context& context, const CacheFlags& flags);
int RunCacheImport(Context& context, const CacheFlags& flags);
int RunWorkersList(Context& context);

}  // namespace ag
