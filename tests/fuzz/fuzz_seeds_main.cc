// Writes inputs to begin with into OUT/fuzz_import, OUT/fuzz_graph, OUT/fuzz_plan, OUT/fuzz_rpc:
// ours, and what the *.onnx below FOLDER give. A model of ONNX's test data comes also with its
// inputs as constants. usage: fuzz_seeds OUT FOLDER...
#include <filesystem>
#include <initializer_list>

#include "autograph/v1/blobs.pb.h"
#include "autograph/v1/cache.pb.h"
#include "autograph/v1/optimizer.pb.h"
#include "autograph/v1/worker.pb.h"
#include "base/file.h"
#include "graph/codec.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "plan/format/plan_codec.h"
#include "tests/fuzz/seeds.h"

namespace ag {
namespace {

namespace fs = std::filesystem;

constexpr size_t kSeedBytesMax = 16 << 10;  // Larger ones are changed too rarely where it matters.

class Seeds {
 public:
  explicit Seeds(std::string out) : out_(std::move(out)) {}

  Status Put(const char* target, const std::string& bytes) {
    if (bytes.size() > kSeedBytesMax) return OkStatus();
    ++count_;
    const std::string folder = fmt::format("{}/{}", out_, target);
    AG_TRY(MakeDirs(folder));
    return WriteFileAtomically(fmt::format("{}/{}", folder, Sha256(bytes).Short()), bytes);
  }

  // The model, and the graph that import makes of it.
  Status PutModel(const std::string& bytes) {
    AG_TRY(Put("fuzz_import", bytes));
    DigestSink sink;
    const StatusOr<ImportedModel> imported = ImportOnnx(bytes, {}, sink);
    return imported.ok() ? Put("fuzz_graph", EncodeGraph(imported->graph)) : OkStatus();
  }

  int count() const { return count_; }

 private:
  class DigestSink : public WeightSink {
   public:
    StatusOr<Digest> Put(std::string_view bytes) override { return Sha256(bytes); }
  };

  std::string out_;
  int count_ = 0;
};

// Returns the model with the inputs of its first data set as constants.
StatusOr<std::string> WithItsInputs(const fs::path& path, const std::string& bytes) {
  std::vector<Tensor> inputs;
  for (int i = 0;; ++i) {
    const std::string file =
        fmt::format("{}/test_data_set_0/input_{}.pb", path.parent_path().string(), i);
    if (!FileExists(file)) break;
    AG_LET(const ModelValue value, testing::ReadValueFile(file, OnnxKind::kTensor));
    inputs.push_back(value.tensor);
  }
  if (inputs.empty()) return Err(StatusCode::kNotFound, "no inputs");
  return testing::WithConstantInputs(bytes, inputs, std::vector<bool>(inputs.size(), true));
}

// A call of each method with an empty message, and of some with one that means something, whatever
// the methods' order.
std::vector<std::string> SeedsOfCalls() {
  namespace v1 = autograph::v1;
  constexpr char kMethods = 32;
  v1::OptimizeRequest optimize;
  optimize.set_request_id("r");
  optimize.set_model_digest(Sha256("model").Hex());
  optimize.set_device("cpu");
  optimize.add_shapes()->set_input("x");
  optimize.mutable_shapes(0)->add_dims(3);
  optimize.mutable_policy()->set_precision("fp16");
  optimize.mutable_budget()->set_rounds(1);
  optimize.add_disabled_rules("relu-relu");
  v1::UploadRequest upload;
  upload.set_digest(Sha256("model").Hex());
  upload.set_size_bytes(5);
  upload.set_data("model");
  upload.set_last(true);
  v1::WorkerState worker;
  worker.set_worker_id("w");
  worker.set_device("cpu");
  worker.set_device_spec(FormatDeviceSpec(SeedsOfPlans().spec));
  worker.set_environment("e");
  worker.set_health(v1::WorkerState::SERVING);
  worker.add_results()->set_sequence(1);
  v1::CacheRecord record;
  record.set_problem("p");
  record.set_environment("e");
  record.mutable_measurement()->mutable_latency()->set_median_ns(1);
  v1::GetJobRequest job;
  job.set_name("jobs/1");
  std::vector<std::string> calls;
  for (char method = 0; method < kMethods; ++method) {
    for (const google::protobuf::Message* message :
         std::initializer_list<const google::protobuf::Message*>{&optimize, &upload, &worker,
                                                                 &record, &job}) {
      calls.push_back(method + message->SerializeAsString());
    }
    calls.emplace_back(1, method);
  }
  return calls;
}

Status Run(int argc, char** argv) {
  Seeds seeds(argv[1]);
  for (const std::string& model : ImportSeeds()) AG_TRY(seeds.PutModel(model));
  for (const Plan& plan : SeedsOfPlans().plans) AG_TRY(seeds.Put("fuzz_plan", EncodePlan(plan)));
  for (const std::string& call : SeedsOfCalls()) AG_TRY(seeds.Put("fuzz_rpc", call));
  for (int i = 2; i < argc; ++i) {
    for (const auto& entry : fs::recursive_directory_iterator(argv[i])) {
      if (entry.path().extension() != ".onnx") continue;
      AG_LET(const std::string bytes, ReadFile(entry.path().string()));
      if (bytes.size() > kSeedBytesMax) continue;
      AG_TRY(seeds.PutModel(bytes));
      const StatusOr<std::string> constant = WithItsInputs(entry.path(), bytes);
      if (constant.ok()) AG_TRY(seeds.PutModel(*constant));
    }
  }
  fmt::print("{} seeds\n", seeds.count());
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: fuzz_seeds OUT FOLDER...\n");
    return 2;
  }
  const ag::Status status = ag::Run(argc, argv);
  if (!status.ok()) fmt::print(stderr, "fuzz_seeds: {}\n", ag::ToString(status));
  return status.ok() ? 0 : 1;
}
