#include "bench/models/load_model.h"

#include <utility>

#include "base/file.h"
#include "graph/onnx/import/import.h"
#include "graph/onnx/imported_model.h"
#include "runtime/model_weights.h"
#include "zoo/zoo.h"

namespace ag {

StatusOr<LoadedModel> LoadModel(const std::string& name) {
  if (!name.ends_with(".onnx")) {
    auto weights = std::make_unique<MemoryWeights>();
    AG_LET(Graph graph, BuildZooModel(name, {}, weights.get()));
    return LoadedModel{std::move(weights), std::move(graph)};
  }
  AG_LET(const auto file, MappedFile::Open(name));
  auto weights = std::make_unique<ModelWeights>(file->bytes(), file);
  AG_LET(ImportedModel imported, ImportOnnx(file->bytes(), {}, *weights));
  return LoadedModel{std::move(weights), std::move(imported.graph)};
}

}  // namespace ag
