// The ONNX form of each IR operator, by opset: attributes that became inputs, composites that an
// older opset lacks.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "graph/onnx/export/exporter.h"
#include "graph/resize.h"
#include "graph/text_form.h"

namespace ag {
namespace {

// One node during export.
struct Out {
  Exporter& to;
  const NodeId id;
  const Node& node;
  std::vector<std::string> in;   // Names of the operands.
  std::vector<std::string> out;  // Names of the results.

  DType dtype() const { return node.outputs[0].dtype; }
  const Shape& InShape(size_t i) const { return to.graph().type(node.inputs[i]).shape; }
  std::string Scalar(double value) const { return to.ScalarName(dtype(), value); }
  // Step adds an inner node; Last adds the node that gives the results.
  std::string Step(std::string_view op, std::vector<std::string> inputs,
                   std::vector<OnnxAttribute> attributes = {}) const {
    return to.Append(op, std::move(inputs), std::move(attributes));
  }
  Status Last(std::string_view op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {}) const {
    to.Append(op, std::move(inputs), std::move(attributes), out);
    return OkStatus();
  }
};

OnnxAttribute Translate(const AttributeSchema& schema, const Attributes& attributes) {
  switch (schema.kind) {
    case 'i':
      return IntAttribute(schema.name, attributes.Int(schema.name));
    case 'f':
      return FloatAttribute(schema.name, attributes.Float(schema.name));
    case 's':
      return StringAttribute(schema.name, attributes.String(schema.name));
    default:
      return IntsAttribute(schema.name, attributes.IntList(schema.name));
  }
}

// Writes an operator that ONNX has under its own name, with the table's attributes except
// `left_out`. Returns the name of the result.
std::string AppendPlain(const Out& out, std::string_view left_out = "") {
  const OpInfo& info = Info(out.node.op);
  std::vector<OnnxAttribute> attributes;
  for (const AttributeSchema& schema : info.attributes) {
    if (schema.name == left_out) continue;
    attributes.push_back(Translate(schema, *out.node.attributes));
  }
  return out.to.Append(info.onnx_name, out.in, std::move(attributes), out.out);
}

Status WritePlain(const Out& out, std::string_view left_out = "") {
  AppendPlain(out, left_out);
  return OkStatus();
}

StatusOr<bool> IsZero(const Out& out, size_t operand) {
  AG_LET(const Tensor* tensor, out.to.ConstantOf(out.node.inputs[operand]));
  return tensor != nullptr &&
         std::all_of(tensor->bytes().begin(), tensor->bytes().end(), [](char c) { return c == 0; });
}

// Returns the node's names without a bias of zeros, which in the IR means no bias.
StatusOr<Out> WithoutZeroBias(Exporter& exporter, NodeId id) {
  const Node& node = exporter.graph().node(id);
  Out out{exporter, id, node, {}, {}};
  AG_LET(const bool zero, IsZero(out, 2));
  for (size_t i = 0; i < (zero ? 2u : 3u); ++i) {
    AG_LET(std::string name, exporter.NameOf(node.inputs[i]));
    out.in.push_back(std::move(name));
  }
  out.out = exporter.OutputNames(id);
  return out;
}

Status WriteConv(const Out& out) {
  const Shape& weight = out.InShape(1);
  return out.Last("Conv", out.in,
                  {IntsAttribute("kernel_shape", Ints(weight.begin() + 2, weight.end())),
                   IntsAttribute("strides", out.node.IntList("strides")),
                   IntsAttribute("pads", out.node.IntList("pads")),
                   IntsAttribute("dilations", out.node.IntList("dilations")),
                   IntAttribute("group", out.node.Int("group"))});
}

Status WriteAveragePool(const Out& out) {
  if (out.to.opset() >= 19) return WritePlain(out);
  const Ints& dilations = out.node.IntList("dilations");
  if (std::any_of(dilations.begin(), dilations.end(), [](int64_t d) { return d != 1; })) {
    return Err(StatusCode::kUnimplemented, "opset {} has no dilated AveragePool", out.to.opset());
  }
  return WritePlain(out, "dilations");
}

// What a reduction needs besides its operand: the axes, which later opsets have as an input.
struct ReduceForm {
  std::vector<std::string> inputs;
  std::vector<OnnxAttribute> attributes;
};
ReduceForm ReduceFormOf(const Out& out, std::string_view op, const std::string& x, const Ints& axes,
                        bool keep) {
  ReduceForm form{{x}, {}};
  if (out.to.opset() >= 18 || (op == "ReduceSum" && out.to.opset() >= 13)) {
    form.inputs.push_back(out.to.IntsName(axes));
  } else {
    form.attributes.push_back(IntsAttribute("axes", axes));
  }
  form.attributes.push_back(IntAttribute("keepdims", keep ? 1 : 0));
  return form;
}
std::string Mean(const Out& out, const std::string& x, const Ints& axes) {
  ReduceForm form = ReduceFormOf(out, "ReduceMean", x, axes, true);
  return out.Step("ReduceMean", std::move(form.inputs), std::move(form.attributes));
}

Status WriteReduce(const Out& out) {
  const Ints& axes = out.node.IntList("axes");
  const Shape& x = out.InShape(0);
  const bool keep = out.node.Int("keepdims") != 0;
  if (axes.empty()) return out.Last("Identity", out.in);  // In ONNX an empty list means all axes.
  if (out.node.op == OpKind::kReduceMean && axes == Ints{2, 3} && x.size() == 4 && keep &&
      IsFloat(out.dtype())) {
    return out.Last("GlobalAveragePool", out.in);
  }
  const std::string& op = Info(out.node.op).onnx_name;
  ReduceForm form = ReduceFormOf(out, op, out.in[0], axes, keep);
  return out.Last(op, std::move(form.inputs), std::move(form.attributes));
}

// Writes sizes, or scales when they say more. Before opset 13, omitted inputs are empty tensors.
Status WriteResize(const Out& out) {
  const Resize resize = ResizeOf(*out.node.attributes, out.InShape(0));
  const std::string& places = out.node.attributes->String("coordinate_transformation_mode");
  if (resize.places == Resize::Places::kHalfPixelSymmetric && out.to.opset() < 19) {
    return Err(StatusCode::kUnimplemented, "opset {} has no {}", out.to.opset(), places);
  }
  const std::string nothing = out.to.opset() < 13 ? out.to.FloatsName({}) : "";
  std::vector<std::string> inputs = {out.in[0], nothing};
  if (out.node.IntList("scales").empty()) {
    AG_LET(std::string sizes, out.to.SizesName(out.id, "sizes"));
    inputs.insert(inputs.end(), {nothing, std::move(sizes)});
  } else {
    std::vector<float> scales;
    for (const ResizeAxis& axis : resize.axes) scales.push_back(axis.scale);
    inputs.push_back(out.to.FloatsName(scales));
  }
  std::vector<OnnxAttribute> attributes = {
      StringAttribute("coordinate_transformation_mode", places),
      StringAttribute("mode", out.node.attributes->String("mode"))};
  if (resize.mode == Resize::Mode::kNearest) {
    attributes.push_back(
        StringAttribute("nearest_mode", out.node.attributes->String("nearest_mode")));
  } else if (resize.mode == Resize::Mode::kCubic) {
    attributes.push_back(FloatAttribute("cubic_coeff_a", resize.cubic_coeff_a));
    attributes.push_back(IntAttribute("exclude_outside", resize.exclude_outside ? 1 : 0));
  }
  return out.Last("Resize", std::move(inputs), std::move(attributes));
}

// Before opset 13 softmax works on all axes from `axis` on, so only the last axis can be written.
Status WriteSoftmax(const Out& out) {
  const int64_t axis = out.node.Int("axis");
  const auto last = static_cast<int64_t>(out.InShape(0).size()) - 1;
  if (out.to.opset() >= 13 || axis == last) return WritePlain(out);
  Ints swap(last + 1);
  std::iota(swap.begin(), swap.end(), 0);
  std::swap(swap[axis], swap[last]);
  std::string x = out.Step("Transpose", out.in, {IntsAttribute("perm", swap)});
  x = out.Step("Softmax", {x}, {IntAttribute("axis", last)});
  return out.Last("Transpose", {x}, {IntsAttribute("perm", swap)});
}

Status WriteLayerNorm(const Out& out) {
  Ints axes;
  for (int64_t i = out.node.Int("axis"); i < static_cast<int64_t>(out.InShape(0).size()); ++i)
    axes.push_back(i);
  const std::string mean = Mean(out, out.in[0], axes);
  const std::string centred = out.Step("Sub", {out.in[0], mean});
  std::string x = out.Step("Pow", {centred, out.Scalar(2)});
  x = Mean(out, x, axes);
  x = out.Step("Add", {x, out.Scalar(out.node.Float("epsilon"))});
  x = out.Step("Sqrt", {x});
  x = out.Step("Div", {centred, x});
  x = out.Step("Mul", {x, out.in[1]});
  return out.Last("Add", {x, out.in[2]});
}

Status WriteRmsNorm(const Out& out) {
  Ints axes;
  const auto rank = static_cast<int64_t>(out.InShape(0).size());
  for (int64_t i = out.node.Int("axis"); i < rank; ++i) axes.push_back(i);
  std::string x = out.Step("Pow", {out.in[0], out.Scalar(2)});
  x = Mean(out, x, axes);
  x = out.Step("Add", {x, out.Scalar(out.node.Float("epsilon"))});
  x = out.Step("Sqrt", {x});
  x = out.Step("Div", {out.in[0], x});
  return out.Last("Mul", {x, out.in[1]});
}

// Writes gelu as exporters do: x * (erf(x / sqrt(2)) + 1) * 0.5, or with the tanh approximation.
Status WriteGelu(const Out& out) {
  const std::string& x = out.in[0];
  std::string y;
  if (out.node.attributes->String("approximate") == "tanh") {
    y = out.Step("Pow", {x, out.Scalar(3)});
    y = out.Step("Mul", {y, out.Scalar(0.044715)});
    y = out.Step("Add", {x, y});
    y = out.Step("Mul", {y, out.Scalar(std::sqrt(2 / std::numbers::pi))});
    y = out.Step("Tanh", {y});
  } else {
    y = out.Step("Div", {x, out.Scalar(std::numbers::sqrt2)});
    y = out.Step("Erf", {y});
  }
  y = out.Step("Add", {y, out.Scalar(1)});
  y = out.Step("Mul", {x, y});
  return out.Last("Mul", {y, out.Scalar(0.5)});
}

Status CheckNumbers(const Out& out) {
  if (out.to.opset() >= 12 || IsFloat(out.dtype())) return OkStatus();
  return Err(StatusCode::kUnimplemented, "opset {} has it for floating point only", out.to.opset());
}

Status WriteClip(const Out& out) {
  AG_TRY(CheckNumbers(out));
  const double low = out.node.Float("min"), high = out.node.Float("max");
  std::vector<std::string> inputs = {out.in[0], std::isinf(low) && low < 0 ? "" : out.Scalar(low)};
  if (!std::isinf(high) || high < 0) inputs.push_back(out.Scalar(high));
  while (inputs.back().empty()) inputs.pop_back();
  return out.Last("Clip", std::move(inputs));
}

Status WriteMinMax(const Out& out) {
  AG_TRY(CheckNumbers(out));
  return WritePlain(out);
}

Status WriteCast(const Out& out) {
  return out.Last("Cast", out.in, {IntAttribute("to", DTypeToOnnx(out.dtype()))});
}

Status WriteSplit(const Out& out) {
  const OnnxAttribute axis = IntAttribute("axis", out.node.Int("axis"));
  const Ints& sizes = out.node.IntList("sizes");
  if (out.to.opset() >= 13) {
    AG_LET(std::string name, out.to.SizesName(out.id, "sizes"));
    return out.Last("Split", {out.in[0], std::move(name)}, {axis});
  }
  if (out.to.open().List(out.id, "sizes")) {
    return Err(StatusCode::kFailedPrecondition, "opset {} splits into fixed sizes only",
               out.to.opset());
  }
  return out.Last("Split", out.in, {axis, IntsAttribute("split", sizes)});
}

Status WriteSlice(const Out& out) {
  std::vector<std::string> inputs = out.in;
  for (const std::string_view list : {"starts", "ends", "axes", "steps"}) {
    AG_LET(std::string name, out.to.SizesName(out.id, list));
    inputs.push_back(std::move(name));
  }
  return out.Last("Slice", std::move(inputs));
}

// In ONNX a size of 0 means "as in the operand" without allowzero.
Status WriteReshape(const Out& out) {
  const Ints& shape = out.node.IntList("shape");
  std::vector<OnnxAttribute> attributes;
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) {
    if (out.to.opset() < 14) {
      return Err(StatusCode::kUnimplemented, "opset {} cannot reshape to {}", out.to.opset(),
                 ShapeToString(shape));
    }
    attributes.push_back(IntAttribute("allowzero", 1));
  }
  AG_LET(std::string name, out.to.SizesName(out.id, "shape"));
  return out.Last("Reshape", {out.in[0], std::move(name)}, std::move(attributes));
}

Status WriteExpand(const Out& out) {
  AG_LET(std::string name, out.to.SizesName(out.id, "shape"));
  return out.Last("Expand", {out.in[0], std::move(name)});
}

Status WritePad(const Out& out) {
  AG_LET(std::string pads, out.to.SizesName(out.id, "pads"));
  std::vector<std::string> inputs = {out.in[0], std::move(pads)};
  const std::string& mode = out.node.attributes->String("mode");
  if (mode == "constant") inputs.push_back(out.Scalar(out.node.Float("value")));
  return out.Last("Pad", std::move(inputs), {StringAttribute("mode", mode)});
}

// Gives TopK its operand k, which was an attribute until opset 9.
Status ModernizeTopK(const Out& out, OnnxNode& kept) {
  const auto k = std::ranges::find(kept.attributes, "k", &OnnxAttribute::name);
  if (k == kept.attributes.end()) {
    return Err(StatusCode::kInvalidArgument, "TopK has no attribute \"k\"");
  }
  kept.inputs.push_back(out.to.IntsName({k->i}));
  kept.attributes.erase(k);
  return OkStatus();
}

// Turns Upsample, which ended with opset 9, into Resize. Scales were an attribute until opset 8.
Status ModernizeUpsample(const Out& out, OnnxNode& kept) {
  const auto scales = std::ranges::find(kept.attributes, "scales", &OnnxAttribute::name);
  if (scales != kept.attributes.end()) {
    kept.inputs.push_back(out.to.FloatsName(scales->floats));
    kept.attributes.erase(scales);
  }
  kept.op_type = "Resize";
  kept.inputs.insert(kept.inputs.begin() + 1, out.to.opset() < 13 ? out.to.FloatsName({}) : "");
  kept.attributes.push_back(StringAttribute("coordinate_transformation_mode", "asymmetric"));
  kept.attributes.push_back(StringAttribute("nearest_mode", "floor"));
  return OkStatus();
}

// Gives a kept node of `opset` the form of the opset that is written. kUnimplemented: it has
// another form there.
Status Modernize(const Out& out, int64_t opset, OnnxNode& kept) {
  const int64_t written = out.to.opset();
  if (!kept.domain.empty() || opset == 0) return OkStatus();
  if (opset < 11 && written >= 11) {
    const auto of = [&](std::string_view name) { return kept.op_type == name; };
    if (of("TopK") && opset == 10) return OkStatus();
    if (of("Scatter") || of("TopK") || of("Upsample")) {
      kept.proto = {};
      if (of("TopK")) return ModernizeTopK(out, kept);
      if (of("Upsample")) return ModernizeUpsample(out, kept);
      kept.op_type = "ScatterElements";  // Its name since opset 11.
      return OkStatus();
    }
  }
  if (MeansTheSame(kept.op_type, opset, written)) return OkStatus();
  return Err(StatusCode::kUnimplemented, "operator {} has another form in opset {} than in {}",
             kept.op_type, written, opset);
}

// Writes the kept node with its present names.
Status WriteOpaque(const Out& out) {
  AG_LET(OnnxNode kept, ParseNode(out.node.attributes->String("onnx_node")));
  size_t in = 0, result = 0;
  for (std::string& name : kept.inputs) {
    if (!name.empty() && in < out.in.size()) name = out.in[in++];
  }
  for (std::string& name : kept.outputs) {
    if (!name.empty() && result < out.out.size()) name = out.out[result++];
  }
  if (in != out.in.size() || result != out.out.size()) {
    return Err(StatusCode::kInvalidArgument,
               "the kept node has {} inputs and {} outputs, not {} "
               "and {}",
               in, result, out.in.size(), out.out.size());
  }
  AG_TRY(Modernize(out, out.node.Int("opset"), kept));
  out.to.AppendKept(std::move(kept));
  return OkStatus();
}

// What an older opset has instead of an operator, as the operator table says it.
Status WriteExpression(const Out& out, const std::string& expression) {
  const Edge x = out.node.inputs[0];
  AG_LET(const Graph graph, ParseGraph(fmt::format("input x {}\noutput y = {}",
                                                   out.to.graph().type(x).ToString(), expression),
                                       nullptr));
  std::vector<std::string> names(graph.size(), out.in[0]);
  for (NodeId id = 0; id < graph.size(); ++id) {
    const Node& node = graph.node(id);
    if (node.inputs.empty()) continue;
    Out step{out.to, id, node, {}, {}};
    for (const Edge operand : node.inputs) step.in.push_back(names[operand.node]);
    if (id == graph.outputs()[0].edge.node) step.out = out.out;
    names[id] = AppendPlain(step);
  }
  return OkStatus();
}

// The operators whose form in ONNX is not the table's.
constexpr std::pair<OpKind, Status (*)(const Out&)> kWriters[] = {
    {OpKind::kOpaque, WriteOpaque},
    {OpKind::kMin, WriteMinMax},
    {OpKind::kMax, WriteMinMax},
    {OpKind::kClip, WriteClip},
    {OpKind::kCast, WriteCast},
    {OpKind::kConv, WriteConv},
    {OpKind::kAveragePool, WriteAveragePool},
    {OpKind::kReduceMean, WriteReduce},
    {OpKind::kReduceSum, WriteReduce},
    {OpKind::kReduceMax, WriteReduce},
    {OpKind::kResize, WriteResize},
    {OpKind::kSoftmax, WriteSoftmax},
    {OpKind::kSplit, WriteSplit},
    {OpKind::kSlice, WriteSlice},
    {OpKind::kReshape, WriteReshape},
    {OpKind::kExpand, WriteExpand},
    {OpKind::kPad, WritePad},
    // Composites, for opsets that lack them.
    {OpKind::kGelu, WriteGelu},
    {OpKind::kLayerNorm, WriteLayerNorm},
    {OpKind::kRmsNorm, WriteRmsNorm},
};

Status Write(const Out& out) {
  const OpInfo& info = Info(out.node.op);
  if (Has(info.kind, kLeaf)) return OkStatus();
  const bool has = !info.onnx_name.empty() && out.to.opset() >= info.onnx_since;
  if (has && Has(info.kind, kComposite)) return WritePlain(out);
  for (const auto& [op, write] : kWriters) {
    if (op == info.kind) return write(out);
  }
  if (has) return WritePlain(out);
  if (!info.onnx_else.empty()) return WriteExpression(out, info.onnx_else);
  return Err(StatusCode::kUnimplemented, "opset {} has no {}", out.to.opset(), info.onnx_name);
}

}  // namespace

Status WriteNode(NodeId id, Exporter& exporter) {
  const Node& node = exporter.graph().node(id);
  if (node.op == OpKind::kConv) {
    AG_LET(const Out conv, WithoutZeroBias(exporter, id));
    return Write(conv);
  }
  Out out{exporter, id, node, {}, {}};
  for (const Edge operand : node.inputs) {
    AG_LET(std::string name, exporter.NameOf(operand));
    out.in.push_back(std::move(name));
  }
  out.out = exporter.OutputNames(id);
  return Write(out);
}

}  // namespace ag
