// The verbs of the command line. Each prints everything and returns a process exit code (flags.h).
// One thread at a time.
#pragma once

#include "client/cli/context.h"
#include "client/cli/flags.h"
#include "rules/language/rule_set.h"

namespace ag {

int RunOptimize(Context& context, const OptimizeFlags& flags);

StatusOr<int> RunModel(Context& context, const RunFlags& flags);
StatusOr<int> RunVerify(Context& context, const VerifyFlags& flags);
StatusOr<int> RunBench(Context& context, const BenchFlags& flags);
StatusOr<int> RunPlanShow(Context& context, const PlanShowFlags& flags);

StatusOr<int> RunZoo(Context& context, const ZooFlags& flags);
StatusOr<int> RunRulesList(Context& context, const RulesFlags& flags);
StatusOr<int> RunRulesVerify(Context& context, const RulesFlags& flags);
// Returns the rules of a file; "": the built-in ones.
StatusOr<RuleSet> LoadRules(const std::string& file);
// Prints SERVING or NOT_SERVING; exit code 1 for the latter.
StatusOr<int> RunHealth(Context& context, const std::string& name);
StatusOr<int> RunDoctor(Context& context, const ModelFlags& flags);

StatusOr<int> RunJobsList(Context& context, const JobsFlags& flags);
StatusOr<int> RunJobsShow(Context& context, const JobsFlags& flags);
StatusOr<int> RunJobsWatch(Context& context, const JobsFlags& flags);
StatusOr<int> RunJobsCancel(Context& context, const JobsFlags& flags);
StatusOr<int> RunJobsFetch(Context& context, const JobsFlags& flags);
StatusOr<int> RunJobsDelete(Context& context, const JobsFlags& flags);
// Writes the job's model to `output`, and its report to `report` unless that is empty. A model
// above 2 GiB has its weights in `output`.data. Counter-examples go into folders beside it
// (client/cli/counter_examples.h). WrittenText returns the names of what was written.
Status TakeResult(Client& client, const autograph::v1::Job& job, const std::string& output,
                  const std::string& report);
std::string WrittenText(const autograph::v1::Job& job, const std::string& output);
// Returns the digest of a model that is given as a file or as its SHA-256.
StatusOr<Digest> DigestOfModel(const std::string& model);

StatusOr<int> RunCacheStats(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheList(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheGraphs(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheRegions(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheGet(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheExport(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheImport(Context& context, const CacheFlags& flags);
StatusOr<int> RunCacheForget(Context& context, const CacheFlags& flags);
StatusOr<int> RunWorkersList(Context& context);
StatusOr<int> RunWorkersAdmit(Context& context, const std::string& worker_id);
StatusOr<int> RunStoreBackup(Context& context, const StoreFlags& flags);
StatusOr<int> RunStoreVerify(Context& context, const StoreFlags& flags);
StatusOr<int> RunStoreRestore(Context& context, const StoreFlags& flags);

// Makes a token and adds its hash to the coordinator's file of tokens.
StatusOr<int> RunToken(Context& context, const TokenFlags& flags);

}  // namespace ag
