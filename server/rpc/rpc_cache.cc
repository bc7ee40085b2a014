#include <grpcpp/grpcpp.h>

#include "autograph/v1/cache.grpc.pb.h"
#include "base/log.h"
#include "base/reason.h"
#include "search/region_store.h"
#include "server/rpc/rpc.h"
#include "server/workers/worker_wire.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

class CacheService final : public v1::Cache::Service {
 public:
  explicit CacheService(RpcCore& core) : core_(core) {}

  grpc::Status GetStats(grpc::ServerContext* context, const v1::GetCacheStatsRequest*,
                        v1::CacheStats* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kGetStats);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto stats = core_.cache->Stats();
    if (!stats.ok()) return ToGrpc(stats.status());
    response->set_measurements(stats->measurements);
    response->set_failures(stats->failures);
    response->set_models(stats->models);
    response->set_regions(stats->regions);
    response->set_hits(stats->hits);
    response->set_misses(stats->misses);
    response->set_bytes(stats->bytes);
    response->set_answers(stats->answers + core_.answers_given);
    for (const auto& [environment, count] : stats->environments) {
      v1::EnvironmentCount* entry = response->add_environments();
      entry->set_environment(environment);
      entry->set_measurements(count);
    }
    return grpc::Status::OK;
  }

  grpc::Status ListMeasurements(grpc::ServerContext* context,
                                const v1::ListMeasurementsRequest* request,
                                v1::ListMeasurementsResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kListMeasurements);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(List(*request, response));
  }

  grpc::Status ListGraphs(grpc::ServerContext* context, const v1::ListGraphsRequest* request,
                          v1::ListGraphsResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kListGraphs);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(ListAnswers(caller->tenant, *request, response));
  }

  grpc::Status ListRegions(grpc::ServerContext* context, const v1::ListRegionsRequest* request,
                           v1::ListRegionsResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kListRegions);
    if (!caller.ok()) return ToGrpc(caller.status());
    return ToGrpc(ListFound(*request, response));
  }

  grpc::Status Export(grpc::ServerContext* context, const v1::ExportCacheRequest* request,
                      grpc::ServerWriter<v1::CacheRecord>* writer) override {
    const auto caller = core_.access->Admit(*context, Rpc::kExport);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.transfers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    CacheStore::ListOptions options = {request->environment(), 0, kPageMax};
    while (true) {
      const auto page = core_.cache->List(options);
      if (!page.ok()) return ToGrpc(page.status());
      if (page->empty()) return grpc::Status::OK;
      for (const CacheStore::Listed& listed : *page) {
        v1::CacheRecord record;
        ToProto(listed.record, &record);
        if (!writer->Write(record)) return ToGrpc(Err(StatusCode::kCancelled, "the client left"));
        (*place)->Moved();
      }
      options.before_row = page->back().row;
    }
  }

  grpc::Status Import(grpc::ServerContext* context, grpc::ServerReader<v1::CacheRecord>* reader,
                      v1::ImportCacheResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kImport);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto place = core_.transfers->Enter(*context);
    if (!place.ok()) return ToGrpc(place.status());
    return ToGrpc(Take(*context, SourceOf(*context, *caller), **place, *reader, response));
  }

  grpc::Status Forget(grpc::ServerContext* context, const v1::ForgetCacheRequest* request,
                      v1::ForgetCacheResponse* response) override {
    const auto caller = core_.access->Admit(*context, Rpc::kForget);
    if (!caller.ok()) return ToGrpc(caller.status());
    const auto forgotten =
        core_.cache->Forget({request->environment(), request->worker(), request->import_id(),
                             request->kernel(), request->all()});
    if (!forgotten.ok()) return ToGrpc(forgotten.status());
    LogInfo("{} made the cache forget {} measurements, {} answers and {} regions",
            SourceOf(*context, *caller), forgotten->measurements, forgotten->models,
            forgotten->regions);
    response->set_measurements(forgotten->measurements);
    response->set_models(forgotten->models);
    response->set_regions(forgotten->regions);
    return grpc::Status::OK;
  }

 private:
  // All rows stay in memory until the last has come, so that nothing of a bad stream is stored.
  static constexpr size_t kImportBytesMax = size_t{64} << 20;

  // Who does it, for the log and the records: its token's name, or else its connection.
  static std::string SourceOf(const grpc::ServerContext& context, const Caller& caller) {
    return caller.tenant.name.empty() ? context.peer() : caller.tenant.name;
  }

  Status Take(const grpc::ServerContext& context, const std::string& source, Places::Place& place,
              grpc::ServerReader<v1::CacheRecord>& reader, v1::ImportCacheResponse* response) {
    std::vector<CacheRow> rows;
    size_t bytes = 0;
    v1::CacheRecord record;
    while (true) {
      const auto goes_on = ReadNext(reader, &record);
      AG_TRY(goes_on.status(), "record {}", rows.size());
      if (!*goes_on) break;
      place.Moved();
      auto row = FromProto(record);
      if (!row.ok()) {
        return Err(StatusCode::kInvalidArgument, "record {}: {}", rows.size(),
                   Message(row.status()));
      }
      bytes += record.ByteSizeLong();
      if (bytes > kImportBytesMax) {
        return Because(Reason::kTooLarge,
                       Err(StatusCode::kResourceExhausted,
                           "import: more than {} bytes; send it in parts", kImportBytesMax));
      }
      rows.push_back(*std::move(row));
    }
    if (context.IsCancelled()) return Err(StatusCode::kCancelled, "the client left");
    AG_LET(const CacheStore::Imported imported, core_.cache->Import(rows, source));
    response->set_added(imported.added);
    response->set_known(imported.known);
    response->set_import_id(imported.import);
    if (imported.added > 0) {
      LogInfo("import {}: {} measurements from {}", imported.import, imported.added, source);
    }
    return OkStatus();
  }

  Status List(const v1::ListMeasurementsRequest& request, v1::ListMeasurementsResponse* response) {
    AG_LET(const Page page, PageOf(request.page_size(), request.page_token()));
    AG_LET(const std::vector<CacheStore::Listed> rows,
           core_.cache->List({request.environment(), page.before, page.rows_max, request.key(),
                              request.group()}));
    size_t bytes = 0;
    for (const CacheStore::Listed& listed : rows) {
      v1::CacheRecord* record = response->add_records();
      ToProto(listed.record, record);
      bytes += record->ByteSizeLong();
      const bool is_full = bytes > kPageBytesMax || response->records_size() == page.rows_max;
      if (is_full) response->set_next_page_token(fmt::format("{}", listed.row));
      if (is_full) break;
    }
    return OkStatus();
  }

  Status ListAnswers(const Tenant& tenant, const v1::ListGraphsRequest& request,
                     v1::ListGraphsResponse* response) {
    AG_LET(const Page page, PageOf(request.page_size(), ""));
    CacheStore::AnswerFilter filter = {.key = request.key(),
                                       .model = request.model_digest(),
                                       .device = request.device(),
                                       .environment = request.environment(),
                                       .before = request.page_token(),
                                       .rows_max = page.rows_max};
    if (!tenant.sees_all) filter.tenant = tenant.name;
    AG_LET(const std::vector<CacheStore::ListedAnswer> rows, core_.cache->ListModels(filter));
    size_t bytes = 0;
    for (const CacheStore::ListedAnswer& row : rows) {
      const AnswerSubject& of = row.answer.of;
      v1::CachedGraph* graph = response->add_graphs();
      graph->set_key(row.key);
      graph->set_model_digest(of.model);
      graph->set_device(of.device);
      graph->set_environment(of.environment);
      graph->set_made_unix_seconds(static_cast<double>(row.made_unix_seconds));
      if (!graph->mutable_result()->ParseFromString(row.answer.result)) {
        return Err(StatusCode::kDataLoss, "answer {} does not decode", row.key);
      }
      if (request.key().empty()) {
        ClearLists(graph->mutable_result());
      } else {
        graph->set_depends_on(row.answer.key_text);
      }
      bytes += graph->ByteSizeLong();
      const bool is_full = bytes > kPageBytesMax || response->graphs_size() == page.rows_max;
      if (is_full) response->set_next_page_token(row.place);
      if (is_full) break;
    }
    return OkStatus();
  }

  Status ListFound(const v1::ListRegionsRequest& request, v1::ListRegionsResponse* response) {
    AG_LET(const Page page, PageOf(request.page_size(), request.page_token()));
    constexpr size_t kKeyDigits = 64;
    const bool is_key = request.key().size() <= kKeyDigits &&
                        request.key().find_first_not_of("0123456789abcdef") == std::string::npos;
    if (!is_key) {
      return Err(StatusCode::kInvalidArgument,
                 "key: expected up to {} hexadecimal digits (0-9, a-f), got {:.80}", kKeyDigits,
                 request.key());
    }
    AG_LET(const std::vector<CacheStore::ListedRegion> rows,
           core_.cache->ListRegions(
               {request.environment(), request.key(), page.before, page.rows_max}));
    size_t bytes = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const CacheStore::ListedRegion& listed = rows[i];
      const auto entry = DecodeRegionEntry(listed.record.entry);
      if (entry.ok()) {
        v1::CachedRegion* region = response->add_regions();
        *region = FoundOf(listed, *entry);
        if (!request.key().empty()) region->set_depends_on(listed.record.depends_on);
        bytes += region->ByteSizeLong();
      } else {
        LogWarn("cache: left out: {:.12}: {}", listed.key, Message(entry.status()));
      }
      const bool is_full = bytes > kPageBytesMax || i + 1 == static_cast<size_t>(page.rows_max);
      if (is_full) response->set_next_page_token(fmt::format("{}", listed.row));
      if (is_full) break;
    }
    return OkStatus();
  }

  static v1::CachedRegion FoundOf(const CacheStore::ListedRegion& listed,
                                  const RegionEntry& entry) {
    v1::CachedRegion region;
    region.set_key(listed.key);
    region.set_environment(listed.record.environment);
    region.set_operators(entry.operators);
    region.set_copies(listed.record.copies);
    region.set_models(listed.record.models);
    region.set_made_unix_seconds(static_cast<double>(listed.record.made_unix_seconds));
    region.set_estimate_ns(entry.estimate_ns);
    for (const RegionResult& result : entry.results) {
      v1::CachedRegionResult* added = region.add_results();
      added->set_estimate_ns(result.estimate_ns);
      for (const RegionStep& step : result.steps) {
        v1::CachedRegionStep* told = added->add_steps();
        told->set_rule(step.rule);
        told->set_gain_ns(step.gain_ns);
      }
    }
    return region;
  }

  RpcCore& core_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeCacheService(RpcCore& core) {
  return std::make_unique<CacheService>(core);
}

}  // namespace ag
