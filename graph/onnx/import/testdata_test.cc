// ONNX's own test data (package libonnx-testdata). Every model of our opsets is imported. Models
// of which every operator has a kernel run on the reference kernels, before and after an export,
// and their outputs are compared with the stored ones.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <map>

#include "base/blobs.h"
#include "base/file.h"
#include "graph/onnx/export/export.h"
#include "graph/onnx/import/dynamic_program.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/operators/operators.h"
#include "graph/onnx/testing/known_cases.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"

namespace ag {
namespace {

constexpr char kRoot[] = "/usr/share/libonnx-testdata/data";

struct Sample {
  std::string model;
  std::vector<ModelValue> inputs, outputs;
};

StatusOr<std::vector<ModelValue>> ReadValues(const std::string& folder, std::string_view what,
                                             const std::vector<OnnxValueInfo>& infos) {
  std::vector<ModelValue> values;
  while (true) {
    const std::string path = fmt::format("{}/{}_{}.pb", folder, what, values.size());
    if (!FileExists(path)) return values;
    const OnnxKind kind =
        values.size() < infos.size() ? infos[values.size()].kind : OnnxKind::kTensor;
    AG_LET(ModelValue value, testing::ReadValueFile(path, kind));
    values.push_back(std::move(value));
  }
}

// The program that wrote the data had no bfloat16: it stored the same bits as u16.
void RestoreBFloat16(std::vector<ModelValue>& values) {
  for (ModelValue& value : values) {
    Tensor& tensor = value.tensor;
    if (tensor.type().dtype != DType::kUInt16) continue;
    tensor = Tensor::FromBytes({DType::kBFloat16, tensor.type().shape}, tensor.bytes());
  }
}

StatusOr<Sample> ReadSample(const std::string& folder) {
  Sample sample;
  AG_LET(sample.model, ReadFile(folder + "/model.onnx"));
  AG_LET(const OnnxModel parsed, ParseModel(sample.model, 1000));
  AG_LET(sample.inputs, ReadValues(folder + "/test_data_set_0", "input", parsed.inputs));
  AG_LET(sample.outputs, ReadValues(folder + "/test_data_set_0", "output", parsed.outputs));
  if (folder.find("BFLOAT16") != std::string::npos) {
    RestoreBFloat16(sample.inputs);
    RestoreBFloat16(sample.outputs);
  }
  return sample;
}

// Whether no kernel computes some node.
bool HasOpaque(const Graph& graph) {
  return std::ranges::any_of(graph.nodes(), [](const Node& node) {
    return node.op == OpKind::kOpaque && !KeptOperator::Of(node).ok();
  });
}

// Returns the number of elements that differ by more than `dtype` allows; -1: the types differ.
int64_t Differences(const Tensor& a, const Tensor& b) {
  if (a.type() != b.type()) return -1;
  const bool coarse = a.type().dtype == DType::kFloat16 || a.type().dtype == DType::kBFloat16;
  const double tolerance = !IsFloat(a.type().dtype) ? 0 : coarse ? 2e-2 : 1e-4;
  int64_t count = 0;
  for (int64_t i = 0; i < a.type().NumElements(); ++i) {
    const double x = a.At(i), y = b.At(i);
    const bool same = x == y || (std::isnan(x) && std::isnan(y)) ||
                      std::fabs(x - y) <= tolerance * std::max(1.0, std::fabs(y));
    count += same ? 0 : 1;
  }
  return count;
}

// The same for any value; -1 also for another kind or length.
int64_t Differences(const ModelValue& a, const ModelValue& b) {
  if (a.kind != b.kind || a.items.size() != b.items.size()) return -1;
  if (a.kind == OnnxKind::kTensor && a.tensor.type().dtype == DType::kString) {
    const bool same = a.tensor.type() == b.tensor.type() && a.tensor.bytes() == b.tensor.bytes();
    return same ? 0 : -1;
  }
  if (a.kind == OnnxKind::kTensor) return Differences(a.tensor, b.tensor);
  int64_t count = 0;
  for (size_t i = 0; i < a.items.size(); ++i) {
    const int64_t differences = Differences(a.items[i], b.items[i]);
    if (differences < 0) return differences;
    count += differences;
  }
  return count;
}

std::string TextOf(const ModelValue& value) {
  if (value.kind == OnnxKind::kTensor) return value.tensor.type().ToString();
  return fmt::format("{} of {}", KindName(value.kind), value.items.size());
}

struct Imported {
  ImportedModel model;
  std::vector<ModelValue> inputs;  // The remaining ones.
};

// The inputs after the first one that exporters write as constants: none; integers and booleans
// (shapes, axes); or all of them (scales).
enum class Constants { kNone, kIntegers, kAll };

// Imports with the shapes of the data.
StatusOr<Imported> Import(const Sample& sample, Constants constant, BlobDir& blobs) {
  AG_LET(const OnnxModel parsed, ParseModel(sample.model, 1000));
  Imported imported;
  ImportOptions options;
  std::vector<bool> constants;
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < std::min(sample.inputs.size(), parsed.inputs.size()); ++i) {
    tensors.push_back(sample.inputs[i].tensor);
    const bool is_tensor = sample.inputs[i].kind == OnnxKind::kTensor;
    const TensorType& type = tensors.back().type();
    const bool is_float = IsFloat(type.dtype);
    constants.push_back(
        is_tensor && i > 0 &&
        (constant == Constants::kAll || (constant == Constants::kIntegers && !is_float)));
    if (constants.back()) continue;
    imported.inputs.push_back(sample.inputs[i]);
    if (is_tensor) options.shapes[parsed.inputs[i].name] = type.shape;
  }
  AG_LET(const std::string bytes, testing::WithConstantInputs(sample.model, tensors, constants));
  AG_LET(imported.model, ImportOnnx(bytes, options, blobs));
  return imported;
}

Status Compare(const ImportedModel& model, const Imported& imported, const Sample& sample,
               const WeightSource& weights) {
  AG_LET(const std::vector<ModelValue> outputs,
         EvaluateModel(model.graph, model.origin, imported.inputs, weights));
  for (size_t i = 0; i < std::min(outputs.size(), sample.outputs.size()); ++i) {
    const int64_t differences = Differences(outputs[i], sample.outputs[i]);
    if (differences == 0) continue;
    return Err(StatusCode::kInternal, "output {}: {} of {} elements differ from {}", i, differences,
               TextOf(outputs[i]), TextOf(sample.outputs[i]));
  }
  return OkStatus();
}

// The model from the export computes the same values.
Status CompareExported(const Imported& imported, const Sample& sample,
                       const std::shared_ptr<BlobDir>& blobs) {
  const BlobWeights weights(blobs);
  const StatusOr<std::string> bytes =
      ExportOnnx(imported.model.graph, imported.model.origin, weights);
  AG_TRY(bytes, "export");
  StatusOr<ImportedModel> again = ImportOnnx(*bytes, {}, *blobs);
  AG_TRY(again, "import of the export");
  return Within(Compare(*again, imported, sample, weights), "after export");
}

enum class Outcome { kUnreadable, kOutOfRange, kRefused, kOpaque, kPassed, kFailed };

struct Verdict {
  Outcome outcome;
  std::string why;
};

Verdict Try(const std::string& folder, const std::shared_ptr<BlobDir>& blobs) {
  const StatusOr<Sample> sample = ReadSample(folder);
  if (!sample.ok()) return {Outcome::kUnreadable, Message(sample.status())};
  StatusOr<Imported> imported = Import(*sample, Constants::kNone, *blobs);
  for (const Constants constant : {Constants::kIntegers, Constants::kAll}) {
    if (imported.ok() && !HasOpaque(imported->model.graph)) break;
    StatusOr<Imported> next = Import(*sample, constant, *blobs);
    if (next.ok()) imported = std::move(next);
  }
  if (!imported.ok()) {
    const std::string why = Message(imported.status());
    const bool out_of_range = why.find("opset") == 0;
    return {out_of_range ? Outcome::kOutOfRange : Outcome::kRefused, why};
  }
  if (HasOpaque(imported->model.graph)) return {Outcome::kOpaque, ""};
  Status status = Compare(imported->model, *imported, *sample, BlobWeights(blobs));
  if (status.ok()) status = CompareExported(*imported, *sample, blobs);
  return {status.ok() ? Outcome::kPassed : Outcome::kFailed, ToString(status)};
}

// Whether a test may end so: known_cases.h says why those do that do not pass.
bool IsExpected(Outcome outcome, std::string_view test) {
  if (outcome == Outcome::kPassed) return true;
  const bool failed = outcome == Outcome::kFailed;
  return testing::FindCase(failed ? testing::DifferentCases() : testing::RefusedCases(), test) !=
         nullptr;
}

// Returns the number of tests of the default domain that are not left out: training, random numbers
// and pictures.
int Counting(const std::vector<std::string>& names) {
  static constexpr std::string_view kLeftOut[] = {"train", "domain", "random", "image"};
  return static_cast<int>(std::ranges::count_if(names, [](const std::string& name) {
    const testing::KnownCase* known = testing::FindCase(testing::RefusedCases(), name);
    return known == nullptr || std::ranges::none_of(kLeftOut, [&](std::string_view word) {
             return known->why.starts_with(word);
           });
  }));
}

std::string Counted(std::map<Outcome, int>& counts) {
  return fmt::format("passed {}, failed {}, opaque {}, refused {}, out of range {}, unreadable {}",
                     counts[Outcome::kPassed], counts[Outcome::kFailed], counts[Outcome::kOpaque],
                     counts[Outcome::kRefused], counts[Outcome::kOutOfRange],
                     counts[Outcome::kUnreadable]);
}

TEST(TestDataTest, Coverage) {
  if (!FileExists(kRoot)) GTEST_SKIP() << kRoot << " is absent (package libonnx-testdata)";
  const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  const bool verbose = std::getenv("AG_VERBOSE") != nullptr;
  std::map<Outcome, int> counts;
  for (const std::string kind : {"node", "simple", "pytorch-converted", "pytorch-operator"}) {
    const auto names = ListDir(fmt::format("{}/{}", kRoot, kind));
    ASSERT_TRUE(names.ok());
    for (const std::string& name : *names) {
      const Verdict verdict = Try(fmt::format("{}/{}/{}", kRoot, kind, name), blobs);
      ++counts[verdict.outcome];
      if (verbose) fmt::print("{} {} {}\n", static_cast<int>(verdict.outcome), name, verdict.why);
      EXPECT_TRUE(IsExpected(verdict.outcome, name)) << name << ": " << verdict.why;
    }
  }
  fmt::print("{}\n", Counted(counts));
  EXPECT_GE(counts[Outcome::kPassed], 1050);
}

// Samples from another source (tests/long/resize.sh; tests/long/onnx_node_tests.sh: the node tests
// of another version of ONNX): all of them must pass but those of known_cases.h. With AG_VERBOSE
// each is named with its outcome, as above.
TEST(TestDataTest, Samples) {
  const char* folder = std::getenv("AG_ONNX_SAMPLES");
  if (folder == nullptr) GTEST_SKIP() << "AG_ONNX_SAMPLES names no folder of samples";
  const auto names = ListDir(fmt::format("{}/node", folder));
  ASSERT_TRUE(names.ok()) << ToString(names.status());
  EXPECT_FALSE(names->empty());
  const std::shared_ptr<BlobDir> blobs = testing::NewBlobs();
  const bool verbose = std::getenv("AG_VERBOSE") != nullptr;
  std::map<Outcome, int> counts;
  for (const std::string& name : *names) {
    const Verdict verdict = Try(fmt::format("{}/node/{}", folder, name), blobs);
    ++counts[verdict.outcome];
    if (verbose) fmt::print("{} {} {}\n", static_cast<int>(verdict.outcome), name, verdict.why);
    EXPECT_TRUE(IsExpected(verdict.outcome, name)) << name << ": " << verdict.why;
  }
  const int counting = Counting(*names), passed = counts[Outcome::kPassed];
  fmt::print("samples {}: {}\n", names->size(), Counted(counts));
  fmt::print("of the default domain without training, random numbers and pictures {}: {:.2f} %\n",
             counting, 100.0 * passed / counting);
}

}  // namespace
}  // namespace ag
