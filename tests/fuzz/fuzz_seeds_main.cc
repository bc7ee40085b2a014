// Writes inputs to begin with into OUT/fuzz_import, OUT/fuzz_graph, OUT/fuzz_plan: ours, and what
// the *.onnx below FOLDER give. A model of ONNX's test data comes also with its inputs as
// constants. usage: fuzz_seeds OUT FOLDER...
#include <filesystem>

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

Status Run(int argc, char** argv) {
  Seeds seeds(argv[1]);
  for (const std::string& model : ImportSeeds()) AG_TRY(seeds.PutModel(model));
  for (const Plan& plan : SeedsOfPlans().plans) AG_TRY(seeds.Put("fuzz_plan", EncodePlan(plan)));
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
