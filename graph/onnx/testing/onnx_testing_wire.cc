#include "base/blobs.h"
#include "base/file.h"
#include "graph/onnx/fields.h"
#include "graph/onnx/tensor_proto.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "graph/onnx/wire.h"
#include "onnx/defs/parser.h"

namespace ag::testing {

std::string ModelFromText(std::string_view text, int opset) {
  std::string whole(text);
  if (text[0] != '<') {
    whole = fmt::format("<ir_version: 8, opset_import: [\"\" : {}]>\n{}", opset, text);
  }
  onnx::ModelProto model;
  const auto status = onnx::OnnxParser::Parse(model, whole.c_str());
  if (!status.IsOK()) fmt::print(stderr, "{}\n", status.ErrorMessage());
  AG_CHECK(status.IsOK());
  return model.SerializeAsString();
}

namespace {

// Protobuf's limit on nested messages bounds the recursion.
void MakeSequences(onnx::GraphProto& graph, const std::multiset<std::string>& names) {
  const auto wrap = [&](onnx::ValueInfoProto& info) {
    for (size_t i = 0; i < names.count(info.name()); ++i) {
      onnx::TypeProto sequence;
      *sequence.mutable_sequence_type()->mutable_elem_type() = info.type();
      *info.mutable_type() = sequence;
    }
  };
  for (auto& info : *graph.mutable_input()) wrap(info);
  for (auto& info : *graph.mutable_output()) wrap(info);
  for (auto& node : *graph.mutable_node()) {
    for (auto& attribute : *node.mutable_attribute()) {
      if (attribute.has_g()) MakeSequences(*attribute.mutable_g(), names);
    }
  }
}

}  // namespace

std::string SequenceModelFromText(std::string_view text, const std::multiset<std::string>& names,
                                  int opset) {
  onnx::ModelProto model;
  AG_CHECK(model.ParseFromString(ModelFromText(text, opset)));
  MakeSequences(*model.mutable_graph(), names);
  return model.SerializeAsString();
}

std::string WithOptionals(std::string_view model, const std::set<std::string>& names) {
  onnx::ModelProto proto;
  AG_CHECK(proto.ParseFromArray(model.data(), static_cast<int>(model.size())));
  for (auto* infos :
       {proto.mutable_graph()->mutable_input(), proto.mutable_graph()->mutable_output()}) {
    for (auto& info : *infos) {
      if (!names.contains(info.name())) continue;
      onnx::TypeProto optional;
      *optional.mutable_optional_type()->mutable_elem_type() = info.type();
      *info.mutable_type() = optional;
    }
  }
  return proto.SerializeAsString();
}

std::string ConvModel() {
  std::string model = ModelFromText(R"(
    g (float[1,3,8,8] x) => (float[1,5] y)
      <float[4,3,3,3] w, float[4] b = {0.5, -0.5, 0.25, 1}, float[4,4,1,1] v, float[4,5] d> {
      p = Conv<pads = [1,1,1,1]>(x, w, b)
      q = Relu(p)
      r = MaxPool<kernel_shape = [2,2], strides = [2,2]>(q)
      s = Conv(r, v)
      t = GlobalAveragePool(s)
      u = Flatten(t)
      y = MatMul(u, d)
    })");
  onnx::ModelProto proto;
  AG_CHECK(proto.ParseFromString(model));
  proto.mutable_graph()->clear_value_info();
  float next = -1;
  for (const auto& [name, dims] : {std::pair<const char*, std::vector<int64_t>>{"w", {4, 3, 3, 3}},
                                   {"v", {4, 4, 1, 1}},
                                   {"d", {4, 5}}}) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : dims) tensor.add_dims(dim);
    for (int64_t i = 0; i < NumElements(dims); ++i) {
      next = next > 1 ? next - 1.9f : next + 0.17f;
      tensor.mutable_raw_data()->append(reinterpret_cast<const char*>(&next), sizeof(next));
    }
  }
  return proto.SerializeAsString();
}

std::string LargeWeightModel(size_t weight_bytes) {
  const auto count = static_cast<int64_t>(weight_bytes / sizeof(float));
  const std::string bytes(weight_bytes, '\1');
  OnnxModel model;
  model.origin.opsets = {{"", 17}};
  model.origin.graph_name = "large";
  model.inputs = {{.name = "x", .data_type = 1, .has_shape = true, .dims = {{1}, {count}}}};
  model.outputs = {{.name = "y", .data_type = 1, .has_shape = true, .dims = {{1}, {1}}}};
  model.initializers.push_back({.name = "w", .data_type = 1, .dims = {count, 1}, .bytes = bytes});
  model.nodes.push_back({.op_type = "MatMul", .inputs = {"x", "w"}, .outputs = {"y"}});
  StatusOr<std::string> serialized = SerializeModel(model);
  AG_CHECK(serialized.ok());
  return *std::move(serialized);
}

std::string ExpandingModel(int64_t constant_bytes, int constants) {
  std::string nodes;
  for (int i = 0; i < constants; ++i) nodes += fmt::format("c{} = ConstantOfShape(s)\n", i);
  return ModelFromText(
      fmt::format("g (float[1] x) => (float[1] y) <int64[1] s = {{{}}}> {{\n"
                  "{} y = Relu(x) }}",
                  constant_bytes / 4, nodes));
}

namespace {

// Returns a model y = x + w that lacks its weight.
onnx::ModelProto ModelWithoutWeight(const std::vector<int64_t>& dims, HeldBy held_by) {
  const std::string type = fmt::format("float[{}]", fmt::join(dims, ","));
  const std::string branch = fmt::format("b () => ({} z) {{ z = Add(x, w) }}", type);
  const std::string nodes =
      held_by == HeldBy::kInitializer ? "y = Add(x, w)"
      : held_by == HeldBy::kConstant
          ? "w = Constant() y = Add(x, w)"
          : fmt::format("y = If<then_branch = {0}, else_branch = {0}>(c)", branch);
  onnx::ModelProto model;
  AG_CHECK(model.ParseFromString(
      ModelFromText(fmt::format("g ({0} x, bool c) => ({0} y) {{ {1} }}", type, nodes))));
  return model;
}

// Returns the attribute of the node Constant.
onnx::AttributeProto& ConstantAttribute(onnx::ModelProto& model, std::string_view name,
                                        onnx::AttributeProto::AttributeType type) {
  onnx::AttributeProto& value = *model.mutable_graph()->mutable_node(0)->add_attribute();
  value.set_name(std::string(name));
  value.set_type(type);
  return value;
}

}  // namespace

std::string ExternalDataModel(const ExternalModelSpec& spec) {
  onnx::TensorProto weight;
  weight.set_name("w");
  weight.set_data_type(onnx::TensorProto::FLOAT);
  weight.mutable_dims()->Add(spec.dims.begin(), spec.dims.end());
  weight.set_data_location(onnx::TensorProto::EXTERNAL);
  for (const auto& [key, value] : {std::pair{"location", spec.location},
                                   {"offset", spec.offset},
                                   {"length", spec.length},
                                   {"checksum", "of no weight"}}) {
    if (value.empty() && key != std::string_view("location")) continue;
    auto& entry = *weight.add_external_data();
    entry.set_key(key);
    entry.set_value(value);
  }
  onnx::ModelProto model = ModelWithoutWeight(spec.dims, spec.held_by);
  onnx::GraphProto& graph = *model.mutable_graph();
  if (spec.held_by == HeldBy::kInitializer) *graph.add_initializer() = weight;
  if (spec.held_by == HeldBy::kConstant) {
    *ConstantAttribute(model, "value", onnx::AttributeProto::TENSOR).mutable_t() = weight;
  }
  if (spec.held_by == HeldBy::kBranch) {
    for (auto& attribute : *graph.mutable_node(0)->mutable_attribute()) {
      *attribute.mutable_g()->add_initializer() = weight;
    }
  }
  return model.SerializeAsString();
}

std::string SparseModel(const SparseModelSpec& spec) {
  onnx::SparseTensorProto sparse;
  sparse.mutable_dims()->Add(spec.dims.begin(), spec.dims.end());
  onnx::TensorProto& values = *sparse.mutable_values();
  values.set_name("w");
  values.set_data_type(onnx::TensorProto::FLOAT);
  values.add_dims(static_cast<int64_t>(spec.values.size()));
  values.mutable_float_data()->Add(spec.values.begin(), spec.values.end());
  onnx::TensorProto& indices = *sparse.mutable_indices();
  indices.set_data_type(onnx::TensorProto::INT64);
  indices.mutable_dims()->Add(spec.index_dims.begin(), spec.index_dims.end());
  indices.mutable_int64_data()->Add(spec.indices.begin(), spec.indices.end());
  onnx::ModelProto model = ModelWithoutWeight(spec.dims, spec.held_by);
  onnx::GraphProto& graph = *model.mutable_graph();
  if (spec.held_by == HeldBy::kInitializer) *graph.add_sparse_initializer() = sparse;
  if (spec.held_by == HeldBy::kConstant) {
    *ConstantAttribute(model, "sparse_value", onnx::AttributeProto::SPARSE_TENSOR)
         .mutable_sparse_tensor() = sparse;
  }
  if (spec.held_by == HeldBy::kBranch) {
    for (auto& attribute : *graph.mutable_node(0)->mutable_attribute()) {
      *attribute.mutable_g()->add_sparse_initializer() = sparse;
    }
  }
  return model.SerializeAsString();
}

std::shared_ptr<BlobDir> NewBlobs() {
  static std::vector<TempDir> folders;  // Removed at exit.
  StatusOr<TempDir> folder = TempDir::Make("onnx");
  AG_CHECK(folder.ok());
  folders.push_back(*std::move(folder));
  auto blobs = BlobDir::Open(folders.back().path());
  AG_CHECK(blobs.ok());
  return *std::move(blobs);
}

StatusOr<ModelValue> ReadValueFile(const std::string& path, OnnxKind kind) {
  AG_LET(const std::string bytes, ReadFile(path));
  return ParseValueProto(bytes, kind);
}

StatusOr<std::string> WithConstantInputs(std::string_view bytes, const std::vector<Tensor>& inputs,
                                         const std::vector<bool>& constant) {
  AG_LET(OnnxModel model, ParseModel(bytes, 1000));
  std::vector<OnnxValueInfo> kept;
  for (size_t i = 0; i < model.inputs.size(); ++i) {
    if (i < constant.size() && constant[i]) {
      model.initializers.push_back(FromTensor(model.inputs[i].name, inputs[i]));
    } else {
      kept.push_back(model.inputs[i]);
    }
  }
  model.inputs = std::move(kept);
  return SerializeModel(model);
}

}  // namespace ag::testing
