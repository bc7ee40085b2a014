#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "client/cli/verbs.h"
#include "server/jobs/backup.h"

namespace ag {
namespace {

// Prints what a store or a backup holds; returns kExitFailed where something is wrong with it.
int PrintFacts(Context& context, const std::string& folder, const StoreFacts& facts) {
  if (context.flags().json) {
    context.Print(nlohmann::ordered_json{{"folder", folder},
                                         {"jobs", facts.jobs},
                                         {"unfinished", facts.unfinished},
                                         {"measurements", facts.measurements},
                                         {"answers", facts.answers},
                                         {"blobs", facts.blobs},
                                         {"bytes", facts.bytes},
                                         {"problems", facts.problems}}
                      .dump(2));
  } else {
    context.Print(fmt::format(
        "{}: {} jobs ({} unfinished), {} measurements, {} answers, {} blobs of {} bytes", folder,
        facts.jobs, facts.unfinished, facts.measurements, facts.answers, facts.blobs, facts.bytes));
    for (const std::string& problem : facts.problems) context.Print("  " + problem);
  }
  return facts.problems.empty() ? kExitOk : kExitFailed;
}

}  // namespace

StatusOr<int> RunStoreBackup(Context& context, const StoreFlags& flags) {
  if (context.flags().server.empty()) {
    return Err(StatusCode::kInvalidArgument,
               "store backup: of which server? name it with --server HOST:PORT; a store that no "
               "process uses is a backup as it is");
  }
  AG_LET(Client* const client, context.Connect(""));
  AG_LET(const Client::BackupFacts facts, client->Backup(flags.folder));
  context.Print(context.flags().json
                    ? nlohmann::ordered_json{{"folder", flags.folder},
                                             {"blobs", facts.blobs},
                                             {"fetched", facts.fetched},
                                             {"bytes", facts.bytes}}
                          .dump(2)
                    : fmt::format("{}: {} blobs, {} of them new; {} bytes came", flags.folder,
                                  facts.blobs, facts.fetched, facts.bytes));
  return kExitOk;
}

StatusOr<int> RunStoreVerify(Context& context, const StoreFlags& flags) {
  AG_LET(const StoreFacts facts, CheckStore(flags.folder, RealClock()));
  return PrintFacts(context, flags.folder, facts);
}

StatusOr<int> RunStoreRestore(Context& context, const StoreFlags& flags) {
  AG_LET(const StoreFacts facts, RestoreStore(flags.folder, flags.target, RealClock()));
  return PrintFacts(context, flags.target, facts);
}

}  // namespace ag
