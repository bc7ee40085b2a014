// Importers of control flow. The graph has none: the branch of a known condition is written in its
// place, of another condition both branches are, and a loop with a known count is unrolled.
#include <algorithm>

#include "absl/cleanup/cleanup.h"
#include "graph/onnx/import/node_import.h"

namespace ag {
namespace {

// Iterations that are written into the graph, and that are computed; the limit on nodes holds
// besides.
constexpr int64_t kUnrolledMax = 1024, kComputedMax = 1 << 24;

using Values = std::vector<ValueId>;

// Imports the subgraph in attribute `name` with these values as its inputs, in order. Returns the
// values of its outputs. It sees the names around the node.
StatusOr<Values> WriteOut(NodeImport& node, std::string_view name, const Values& inputs) {
  node.Ignore(name);
  Importer& importer = node.importer();
  LastingValues none;
  LastingValues* const lasting = importer.lasting_values();
  AG_LET(const std::shared_ptr<ParsedSubgraph> parsed,
         (lasting == nullptr ? none : *lasting)
             .SubgraphOf(node.node(), name, importer.limits(), lasting != nullptr));
  OnnxModel& body = parsed->model;
  if (body.inputs.size() != inputs.size()) {
    return Err(StatusCode::kInvalidArgument, "{}: the subgraph has {} inputs, the node gives {}",
               name, body.inputs.size(), inputs.size());
  }
  AG_TRY(importer.Enter(nullptr));
  const absl::Cleanup leave = [&] { importer.Leave(); };
  for (size_t i = 0; i < inputs.size(); ++i) {
    AG_TRY(importer.Define(body.inputs[i].name, inputs[i]), "{}", name);
  }
  for (const auto& [weight_name, weight] : parsed->weights) {
    AG_LET(const ValueId value, importer.AddLasting(weight));
    AG_TRY(importer.Define(weight_name, value), "{}", name);
  }
  if (lasting == nullptr) AG_TRY(AddWeights(body, importer), "{}", name);
  AG_TRY(ImportNodes(body.nodes, parsed->order, importer), "{}", name);
  Values outputs;
  for (const OnnxValueInfo& output : body.outputs) {
    outputs.push_back(importer.Find(output.name));
    if (outputs.back() == kNoValue) {
      return Err(StatusCode::kInvalidArgument, "{}: output {} is never computed", name,
                 Quoted(output.name));
    }
  }
  return outputs;
}

StatusOr<bool> ConditionOf(NodeImport& node, ValueId value) {
  const Tensor* known = node.Known(value);
  if (known == nullptr) return Err(StatusCode::kUnimplemented, "its condition is not known");
  if (known->type().dtype != DType::kBool || known->type().NumElements() != 1) {
    return Err(StatusCode::kInvalidArgument, "the condition is {}, not one bool",
               known->type().ToString());
  }
  return known->At(0) != 0;
}

// Writes out a branch that may not be taken, and so need not fit: kUnimplemented when it does not.
StatusOr<Values> WriteOutMaybeTaken(NodeImport& node, std::string_view name) {
  StatusOr<Values> values = WriteOut(node, name, {});
  if (values.status().code() != StatusCode::kInvalidArgument) return values;
  return Err(StatusCode::kUnimplemented, "its condition is not known, and {}",
             Message(values.status()));
}

// Nodes have no effects besides their results, so both branches are computed and one result is
// chosen. kUnimplemented: the branches give other types.
Status ChooseBranch(NodeImport& node) {
  AG_LET(const Values yes, WriteOutMaybeTaken(node, "then_branch"));
  AG_LET(const Values no, WriteOutMaybeTaken(node, "else_branch"));
  if (yes.size() != no.size()) {
    return Err(StatusCode::kInvalidArgument, "the branches have {} and {} outputs", yes.size(),
               no.size());
  }
  AG_LET(const ValueId condition, node.Reshape(node.In(0), Shape{}));
  Values chosen;
  for (size_t i = 0; i < yes.size(); ++i) {
    if (!node.IsTensor(yes[i]) || !node.IsTensor(no[i])) {
      return Err(StatusCode::kUnimplemented, "its condition is not known, and it gives {}",
                 KindName(node.importer().kind(node.IsTensor(yes[i]) ? no[i] : yes[i])));
    }
    if (node.Type(yes[i]).dtype != node.Type(no[i]).dtype) {
      return Err(StatusCode::kInvalidArgument,
                 "output {}: its branches give {} and {}, which must be of one element type", i,
                 node.Type(yes[i]).ToString(), node.Type(no[i]).ToString());
    }
    if (node.Type(yes[i]) != node.Type(no[i])) {
      return Err(StatusCode::kUnimplemented,
                 "its branches give {} and {}: bind what the condition depends on",
                 node.Type(yes[i]).ToString(), node.Type(no[i]).ToString());
    }
    AG_LET(const ValueId value, node.Emit(OpKind::kWhere, {condition, yes[i], no[i]}));
    chosen.push_back(value);
  }
  return node.OutAll(chosen);
}

Status ImportIf(NodeImport& node) {
  AG_TRY(node.CheckInputs(1, 1));
  const TensorType& type = node.Type(node.In(0));
  if (type.dtype != DType::kBool || type.NumElements() != 1) {
    return Err(StatusCode::kInvalidArgument, "the condition is {}, not one bool", type.ToString());
  }
  for (const std::string_view branch : {"then_branch", "else_branch"}) {
    AG_TRY(ParseSubgraph(node.node(), branch, node.importer().limits().nodes_max));
  }
  if (node.Known(node.In(0)) == nullptr) return ChooseBranch(node);
  AG_LET(const bool condition, ConditionOf(node, node.In(0)));
  node.Ignore(condition ? "else_branch" : "then_branch");
  AG_LET(const Values values, WriteOut(node, condition ? "then_branch" : "else_branch", {}));
  return node.OutAll(values);
}

int64_t IterationsMax(const NodeImport& node) {
  return node.importer().computes_all() ? kComputedMax : kUnrolledMax;
}

// The result of no iterations: no rows of the type that the subgraph states for its output. A size
// that it leaves open is 0.
StatusOr<ValueId> NoRows(NodeImport& node, size_t output, int64_t axis) {
  AG_LET(const OnnxModel body,
         ParseSubgraph(node.node(), "body", node.importer().limits().nodes_max));
  if (output >= body.outputs.size() || !body.outputs[output].has_shape) {
    return Err(StatusCode::kUnimplemented,
               "no iterations, and the shape of a result is not stated");
  }
  const OnnxValueInfo& info = body.outputs[output];
  TensorType type;
  AG_LET(type.dtype, DTypeFromOnnx(info.data_type));
  for (const OnnxDim& dim : info.dims) type.shape.push_back(std::max<int64_t>(dim.size, 0));
  AG_LET(const int64_t at, ResolveAxis(axis, static_cast<int64_t>(type.shape.size()) + 1));
  type.shape.insert(type.shape.begin() + at, 0);
  AG_TRY(CheckType(type));
  return node.Constant(Tensor::Zeros(type));
}

// Joins what the iterations gave along a new first axis, or along `axis`.
StatusOr<ValueId> Stacked(NodeImport& node, const Values& parts, int64_t axis, bool reversed,
                          size_t output) {
  if (parts.empty()) return NoRows(node, output, axis);
  Values rows;
  for (const ValueId part : parts) {
    if (!node.IsTensor(part)) {
      return Err(StatusCode::kInvalidArgument, "an iteration gives {}, not a tensor, for output {}",
                 KindName(node.importer().kind(part)), output);
    }
    Shape shape = node.ShapeOf(part);
    AG_LET(const int64_t at, ResolveAxis(axis, static_cast<int64_t>(shape.size()) + 1));
    shape.insert(shape.begin() + at, 1);
    AG_LET(const ValueId row, node.Reshape(part, shape));
    rows.push_back(row);
  }
  if (reversed) std::ranges::reverse(rows);
  AG_LET(const int64_t at, ResolveAxis(axis, node.Rank(rows[0])));
  AG_LET(const Values joined, node.EmitAll(OpKind::kConcat, rows, {{"axis", at}}));
  return joined[0];
}

// Frees what an iteration that was computed leaves, but what it carries on and its parts.
void ForgetOthers(NodeImport& node, ValueId first, Values& carried, std::vector<Values>& parts) {
  if (!node.importer().computes_all()) return;
  std::vector<Values*> listed = {&carried};
  for (Values& part : parts) listed.push_back(&part);
  node.importer().ForgetOthers(first, listed);
}

Status CheckUnrolled(int64_t count, const NodeImport& node) {
  if (count <= IterationsMax(node)) return OkStatus();
  const bool computes = node.importer().computes_all();
  return Err(computes ? StatusCode::kResourceExhausted : StatusCode::kUnimplemented,
             "{} iterations are more than the {} that are {}", count, IterationsMax(node),
             computes ? "run" : "unrolled");
}

// Loop(count, condition, carried...): the body takes (iteration, condition, carried...) and gives
// (condition, carried..., parts...).
Status ImportLoop(NodeImport& node) {
  if (node.size() < 2) return Err(StatusCode::kInvalidArgument, "expected 2 inputs or more");
  const int64_t most = IterationsMax(node) + 1;
  int64_t count = most;
  if (node.Has(0)) {
    AG_LET(const int64_t given, node.KnownInt(0));
    count = std::clamp<int64_t>(given, 0, most);
  }
  bool goes_on = true;
  if (node.Has(1)) {
    AG_LET(goes_on, ConditionOf(node, node.In(1)));
  }
  Values carried(node.inputs().begin() + 2, node.inputs().end());
  if (std::ranges::count(carried, kNoValue) > 0) {
    return Err(StatusCode::kInvalidArgument, "a carried value is missing");
  }
  std::vector<Values> parts(node.node().outputs.size() -
                            std::min(node.node().outputs.size(), carried.size()));
  const ValueId first = node.importer().next();
  for (int64_t i = 0; i < count && goes_on; ++i) {
    AG_TRY(CheckUnrolled(i + 1, node));
    AG_LET(const ValueId iteration, node.Constant(Tensor::FromInts({}, {&i, 1})));
    AG_LET(const ValueId condition, node.Filled({DType::kBool, {}}, 1));
    Values inputs = {iteration, condition};
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    AG_LET(const Values outputs, WriteOut(node, "body", inputs));
    if (outputs.size() < 1 + carried.size()) {
      return Err(StatusCode::kInvalidArgument, "the body gives {} values, {} are carried",
                 outputs.size(), carried.size());
    }
    AG_LET(goes_on, ConditionOf(node, outputs[0]));
    std::copy_n(outputs.begin() + 1, carried.size(), carried.begin());
    for (size_t p = 0; p < parts.size() && 1 + carried.size() + p < outputs.size(); ++p) {
      parts[p].push_back(outputs[1 + carried.size() + p]);
    }
    ForgetOthers(node, first, carried, parts);
  }
  node.Ignore("body");
  for (size_t i = 0; i < carried.size(); ++i) node.Out(i, carried[i]);
  for (size_t p = 0; p < parts.size(); ++p) {
    if (!node.Wants(carried.size() + p)) continue;
    AG_LET(const ValueId stacked, Stacked(node, parts[p], 0, false, 1 + carried.size() + p));
    node.Out(carried.size() + p, stacked);
  }
  return OkStatus();
}

// What a Scan says of one of its sequences.
struct ScanLists {
  int64_t sequences = 0;  // Operands that are walked; those before them are carried.
  Ints in_axes, in_directions, out_axes, out_directions;
};

StatusOr<ScanLists> ScanListsOf(NodeImport& node) {
  ScanLists lists{.sequences = node.Int("num_scan_inputs", 0)};
  const auto inputs = static_cast<int64_t>(node.size());
  const auto outputs = static_cast<int64_t>(node.node().outputs.size());
  const int64_t carried = inputs - std::clamp<int64_t>(lists.sequences, 0, inputs + 1);
  if (lists.sequences < 1 || carried < 0 || outputs < carried) {
    return Err(StatusCode::kInvalidArgument, "num_scan_inputs is {}, the node has {} operands",
               lists.sequences, inputs);
  }
  const auto in = static_cast<size_t>(lists.sequences),
             out = static_cast<size_t>(outputs - carried);
  const auto list = [&](std::string_view name, size_t size, Ints* to) -> Status {
    *to = node.IntList(name).value_or(Ints(size, 0));
    if (to->size() == size) return OkStatus();
    return Err(StatusCode::kInvalidArgument, "{}: expected {} values, got {}", name, size,
               to->size());
  };
  AG_TRY(list("scan_input_axes", in, &lists.in_axes));
  AG_TRY(list("scan_input_directions", in, &lists.in_directions));
  AG_TRY(list("scan_output_axes", out, &lists.out_axes));
  AG_TRY(list("scan_output_directions", out, &lists.out_directions));
  return lists;
}

// Returns element `at` of a sequence along `axis`, without the axis.
StatusOr<ValueId> ElementOf(NodeImport& node, ValueId sequence, int64_t axis, int64_t at) {
  Shape shape = node.ShapeOf(sequence);
  AG_LET(const ValueId part, node.Emit(OpKind::kSlice, {sequence},
                                       {{"axes", Ints{axis}},
                                        {"starts", Ints{at}},
                                        {"ends", Ints{at + 1}},
                                        {"steps", Ints{1}}}));
  shape.erase(shape.begin() + axis);
  return node.Reshape(part, shape);
}

// Scan of opset 8(lengths, carried..., sequences...): all have a batch in front, and the sequences
// lie along axis 1. The body runs for each element of the batch by itself.
Status ImportBatchedScan(NodeImport& node) {
  const int64_t walked = node.Int("num_scan_inputs", 0), size = static_cast<int64_t>(node.size());
  const int64_t outputs = static_cast<int64_t>(node.node().outputs.size());
  const int64_t carried = size - 1 - std::clamp<int64_t>(walked, 0, size);
  if (walked < 1 || carried < 0 || outputs < carried || node.Has(0)) {
    return Err(StatusCode::kUnimplemented, "a Scan of opset 8 with {} of {} operands, or lengths",
               walked, size);
  }
  for (int64_t i = 1; i < size; ++i) {
    if (node.Has(static_cast<size_t>(i))) continue;
    return Err(StatusCode::kInvalidArgument, "operand {} is missing", i);
  }
  const Ints directions = node.IntList("directions").value_or(Ints(walked, 0));
  const Shape& first = node.ShapeOf(node.In(static_cast<size_t>(size - walked)));
  if (first.size() < 2 || static_cast<int64_t>(directions.size()) != walked) {
    return Err(StatusCode::kInvalidArgument, "a sequence of {}", ShapeToString(first));
  }
  const int64_t batch = first[0], count = first[1];
  AG_TRY(CheckUnrolled(batch * std::max<int64_t>(count, 1), node));
  std::vector<Values> results(static_cast<size_t>(outputs));
  for (int64_t b = 0; b < batch; ++b) {
    Values state;
    for (int64_t i = 0; i < carried; ++i) {
      AG_LET(const ValueId own, ElementOf(node, node.In(static_cast<size_t>(1 + i)), 0, b));
      state.push_back(own);
    }
    std::vector<Values> parts(static_cast<size_t>(outputs - carried));
    for (int64_t t = 0; t < count; ++t) {
      Values inputs = state;
      for (int64_t s = 0; s < walked; ++s) {
        const ValueId sequence = node.In(static_cast<size_t>(size - walked + s));
        AG_LET(const ValueId own, ElementOf(node, sequence, 0, b));
        AG_LET(const ValueId element,
               ElementOf(node, own, 0, directions[s] == 0 ? t : count - 1 - t));
        inputs.push_back(element);
      }
      AG_LET(const Values given, WriteOut(node, "body", inputs));
      if (static_cast<int64_t>(given.size()) != outputs) {
        return Err(StatusCode::kInvalidArgument, "the body gives {} values, expected {}",
                   given.size(), outputs);
      }
      state.assign(given.begin(), given.begin() + carried);
      for (size_t p = 0; p < parts.size(); ++p) parts[p].push_back(given[carried + p]);
    }
    for (int64_t i = 0; i < carried; ++i) results[i].push_back(state[i]);
    for (size_t p = 0; p < parts.size(); ++p) {
      AG_LET(const ValueId stacked, Stacked(node, parts[p], 0, false, carried + p));
      results[carried + p].push_back(stacked);
    }
  }
  for (size_t i = 0; i < results.size(); ++i) {
    AG_LET(const ValueId stacked, Stacked(node, results[i], 0, false, i));
    node.Out(i, stacked);
  }
  return OkStatus();
}

// Scan of opset 9 and later: the body takes (carried..., elements...) and gives (carried...,
// parts...).
Status ImportScan(NodeImport& node) {
  if (node.opset() < 9) return ImportBatchedScan(node);
  AG_LET(ScanLists lists, ScanListsOf(node));
  AG_TRY(node.CheckInputs(node.size(), node.size()));
  const size_t carried_count = node.size() - static_cast<size_t>(lists.sequences);
  Values carried(node.inputs().begin(), node.inputs().begin() + carried_count);
  const Values sequences(node.inputs().begin() + carried_count, node.inputs().end());
  for (size_t s = 0; s < sequences.size(); ++s) {
    AG_LET(lists.in_axes[s], ResolveAxis(lists.in_axes[s], node.Rank(sequences[s])));
  }
  const int64_t count = node.ShapeOf(sequences[0])[lists.in_axes[0]];
  AG_TRY(CheckUnrolled(count, node));
  std::vector<Values> parts(lists.out_axes.size());
  const ValueId first = node.importer().next();
  for (int64_t i = 0; i < count; ++i) {
    Values inputs = carried;
    for (size_t s = 0; s < sequences.size(); ++s) {
      if (node.ShapeOf(sequences[s])[lists.in_axes[s]] != count) {
        return Err(StatusCode::kInvalidArgument, "the sequences have different lengths");
      }
      const int64_t at = lists.in_directions[s] == 0 ? i : count - 1 - i;
      AG_LET(const ValueId element, ElementOf(node, sequences[s], lists.in_axes[s], at));
      inputs.push_back(element);
    }
    AG_LET(const Values outputs, WriteOut(node, "body", inputs));
    if (outputs.size() != carried.size() + parts.size()) {
      return Err(StatusCode::kInvalidArgument, "the body gives {} values, expected {}",
                 outputs.size(), carried.size() + parts.size());
    }
    std::copy_n(outputs.begin(), carried.size(), carried.begin());
    for (size_t p = 0; p < parts.size(); ++p) parts[p].push_back(outputs[carried.size() + p]);
    ForgetOthers(node, first, carried, parts);
  }
  for (size_t i = 0; i < carried.size(); ++i) node.Out(i, carried[i]);
  for (size_t p = 0; p < parts.size(); ++p) {
    AG_LET(const ValueId stacked, Stacked(node, parts[p], lists.out_axes[p],
                                          lists.out_directions[p] != 0, carried.size() + p));
    node.Out(carried.size() + p, stacked);
  }
  return OkStatus();
}

// SequenceMap(sequence, others...): the body takes one item of the sequence, and of each other that
// is one; it gives one item of each result.
Status ImportSequenceMap(NodeImport& node) {
  const auto is_sequence = [&](size_t i) {
    return node.importer().kind(node.In(i)) == OnnxKind::kSequence;
  };
  AG_TRY(node.CheckInputs(node.size(), node.size()));
  if (!is_sequence(0)) return Err(StatusCode::kInvalidArgument, "input 0 is not a sequence");
  const size_t count = node.importer().items(node.In(0)).size();
  std::vector<Values> results(node.node().outputs.size());
  for (size_t at = 0; at < count; ++at) {
    AG_TRY(CheckUnrolled(static_cast<int64_t>(at) + 1, node));
    Values inputs;
    for (size_t i = 0; i < node.size(); ++i) {
      const Values items = is_sequence(i) ? node.importer().items(node.In(i)) : Values();
      if (is_sequence(i) && items.size() != count) {
        return Err(StatusCode::kInvalidArgument, "the sequences have different lengths");
      }
      inputs.push_back(is_sequence(i) ? items[at] : node.In(i));
    }
    AG_LET(const Values outputs, WriteOut(node, "body", inputs));
    if (outputs.size() != results.size()) {
      return Err(StatusCode::kInvalidArgument, "the body gives {} values, expected {}",
                 outputs.size(), results.size());
    }
    for (size_t r = 0; r < results.size(); ++r) results[r].push_back(outputs[r]);
  }
  node.Ignore("body");
  for (size_t r = 0; r < results.size(); ++r) {
    AG_LET(const ValueId sequence, node.Sequence(results[r]));
    node.Out(r, sequence);
  }
  return OkStatus();
}

}  // namespace

std::span<const NodeImporterRow> ControlImporters() {
  static constexpr NodeImporterRow kRows[] = {
      {"If", ImportIf},
      {"Loop", ImportLoop, 0, NodeImporterRow::kAnyInputs, true},
      {"Scan", ImportScan},
      {"SequenceMap", ImportSequenceMap, 1, NodeImporterRow::kAnyInputs, true}};
  return kRows;
}

}  // namespace ag
