// The fuzz targets without libFuzzer: every seed whole, cut short, and changed by the mutators. A
// broken promise ends the program.
#include "tests/fuzz/targets.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "graph/codec.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "graph/onnx/testing/mutate.h"
#include "plan/format/plan_codec.h"
#include "tests/fuzz/mutate_graph.h"
#include "tests/fuzz/seeds.h"

namespace ag {
namespace {

class DigestOnly : public WeightSink {
 public:
  StatusOr<Digest> Put(std::string_view bytes) override { return Sha256(bytes); }
};

// AG_SEED=n repeats a run with seed n.
uint64_t Seed() {
  const char* const given = std::getenv("AG_SEED");
  const uint64_t seed = given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
  fmt::print("AG_SEED={}\n", seed);
  return seed;
}

// The graphs of the seeds of import.
std::vector<std::string> GraphSeeds() {
  std::vector<std::string> graphs;
  for (const std::string& model : ImportSeeds()) {
    DigestOnly sink;
    const StatusOr<ImportedModel> imported = ImportOnnx(model, {}, sink);
    if (imported.ok()) graphs.push_back(EncodeGraph(imported->graph));
  }
  return graphs;
}

TEST(FuzzTargets, SeedsAreTaken) {
  int refused = 0;
  for (const std::string& model : ImportSeeds()) refused += FuzzImport(model) ? 0 : 1;
  EXPECT_LE(refused, 3);  // Their weights are in another file.
  for (const std::string& graph : GraphSeeds()) EXPECT_TRUE(FuzzGraph(graph));
  for (const Plan& plan : SeedsOfPlans().plans) EXPECT_TRUE(FuzzPlan(EncodePlan(plan)));
}

TEST(FuzzTargets, CutSeeds) {
  for (const std::string& model : ImportSeeds()) {
    for (size_t size = 0; size < model.size(); ++size) FuzzImport(model.substr(0, size));
  }
  for (const Plan& plan : SeedsOfPlans().plans) {
    const std::string bytes = EncodePlan(plan);
    for (size_t size = 0; size < bytes.size(); ++size) {
      EXPECT_FALSE(FuzzPlan(bytes.substr(0, size))) << size;
    }
  }
}

TEST(FuzzTargets, ChangedModels) {
  const std::vector<std::string> seeds = ImportSeeds();
  Random random(Seed());
  int taken = 0;
  for (int round = 0; round < 2000; ++round) {
    const std::string &model = seeds[random.Below(seeds.size())],
                      &donor = seeds[random.Below(seeds.size())];
    taken += FuzzImport(testing::MutatedModel(model, donor, random)) ? 1 : 0;
  }
  EXPECT_GT(taken, 20);
}

TEST(FuzzTargets, ChangedGraphs) {
  const std::vector<std::string> seeds = GraphSeeds();
  Random random(Seed());
  int taken = 0;
  for (int round = 0; round < 5000; ++round) {
    const std::string changed = MutatedGraph(seeds[random.Below(seeds.size())], random);
    ASSERT_NE(changed, "");
    taken += FuzzGraph(changed) ? 1 : 0;
  }
  EXPECT_GT(taken, 20);
}

}  // namespace
}  // namespace ag
