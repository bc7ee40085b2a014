// The choice of the family that runs a group, and the element-wise pass over the nodes that the
// family leaves.
#include <algorithm>

#include "device/cpu/chain.h"
#include "device/cpu/kernel.h"
#include "device/cpu/wide.h"

namespace ag::cpu {
namespace {

Status CheckLayouts(const Group& group) {
  for (const auto* ports : {&group.inputs, &group.outputs}) {
    for (const Port& port : *ports) {
      if (port.layout != Layout::kChannelsLast8) continue;
      return Err(StatusCode::kUnimplemented, "cpu: layout {}", LayoutName(port.layout));
    }
  }
  return OkStatus();
}

// What runs a group whose results have no elements, such as those of a batch of 0.
class NoWork : public Kernel {
 public:
  Status Run(const RunContext&, Inputs, Outputs) override { return OkStatus(); }
};

StatusOr<std::vector<std::string>> NoWorkNames(const GroupContext&) {
  return std::vector<std::string>{"no_work"};
}

StatusOr<std::unique_ptr<Kernel>> MakeNoWork(const GroupContext& context, const std::string&,
                                             size_t* done) {
  *done = context.group.nodes.size();
  return std::make_unique<NoWork>();
}

constexpr Family kNoWorkFamily = {NoWorkNames, MakeNoWork, true};

bool HasNoWork(const GroupContext& context) {
  return std::ranges::all_of(context.group.outputs, [&](const Port& port) {
    return context.graph.type(port.edge).NumElements() == 0;
  });
}

bool HasOp(const GroupContext& context, OpKind op, size_t from = 0) {
  const auto is_op = [&](NodeId id) { return context.graph.node(id).op == op; };
  return std::any_of(context.group.nodes.begin() + from, context.group.nodes.end(), is_op);
}

// Returns the family of a group in which one of these operators is with others; null: in none.
const Family* FamilyOfSeveral(const GroupContext& context) {
  if (context.group.nodes.size() < 2) return nullptr;
  if (HasOp(context, OpKind::kSoftmax)) return &kAttentionFamily;
  if (HasOp(context, OpKind::kConcat)) return &kRotaryFamily;
  if (!HasOp(context, OpKind::kConv, 1)) return nullptr;
  return context.node(0).op == OpKind::kConv ? &kExpansionFamily : &kScaledFamily;
}

bool IsLayerNorm(OpKind op) { return op == OpKind::kLayerNorm || op == OpKind::kRmsNorm; }

// True for a norm behind element-wise operators.
bool IsNormOfChain(const GroupContext& context) {
  return Has(context.node(0).op, kElementwise) &&
         IsLayerNorm(context.graph.node(context.group.nodes.back()).op);
}

StatusOr<const Family*> FamilyOf(const GroupContext& context) {
  AG_TRY(CheckLayouts(context.group));
  if (HasNoWork(context)) return &kNoWorkFamily;
  if (context.group.pattern == kReorderPattern) return &kReorderFamily;
  if (context.group.nodes.empty()) {
    return Err(StatusCode::kInvalidArgument, "group {}: no nodes", context.group.pattern);
  }
  if (const Family* several = FamilyOfSeveral(context)) return several;
  const OpKind op = context.node(0).op;
  const OpInfo& info = Info(op);
  if (op == OpKind::kConv) return &kConvolutionFamily;
  if (op == OpKind::kMatMul) return &kDenseFamily;
  if (op == OpKind::kSoftmax) return &kSoftmaxFamily;
  if (IsLayerNorm(op) || IsNormOfChain(context)) return &kLayerNormFamily;
  if (op == OpKind::kBatchNorm || Has(op, kElementwise)) return &kChainFamily;
  if (Has(op, kPooling)) return &kPoolFamily;
  if (Has(op, kResampling)) return &kResizeFamily;
  if (Has(op, kReduction)) return &kReduceFamily;
  if (op == OpKind::kGather) return &kGatherFamily;
  if (Has(op, kBarrier)) return &kKeptFamily;
  if (Has(op, kMovement)) return &kMovementFamily;
  return Err(StatusCode::kUnimplemented, "cpu: no kernel for {}", info.name);
}

// A family and the kernels of it that can run the group: the first `own` of them the group itself,
// the others the same group in f32.
struct Choice {
  const Family* family = nullptr;
  std::vector<std::string> names;
  size_t own = 0;
};

bool HasFloatPort(const GroupContext& context) {
  if (context.floats == nullptr) return false;
  const auto is_set = [](bool is_float) { return is_float; };
  return std::ranges::any_of(context.floats->inputs, is_set) ||
         std::ranges::any_of(context.floats->outputs, is_set);
}

// Under precision bf16: the family's kernels on bf16, then those in f32 that it has besides. The
// reference kernels and those of operators in ONNX's own form compute in f32: what they do hangs on
// the types that the model states.
StatusOr<Choice> ChooseStored(const GroupContext& context) {
  AG_LET(const Family* family, FamilyOf(context));
  Choice choice{family};
  if (family != &kKeptFamily) {
    StatusOr<std::vector<std::string>> names = family->names(context);
    if (!names.ok() && names.status().code() != StatusCode::kUnimplemented) return names.status();
    if (names.ok()) choice.names = *std::move(names);
    choice.own = choice.names.size();
  }
  const Widened widened(context);
  StatusOr<std::vector<std::string>> wide = family->names(widened.context());
  if (!wide.ok() && choice.own == 0) {
    StatusOr<std::vector<std::string>> reference = kReferenceFamily.names(widened.context());
    if (reference.ok()) return Choice{&kReferenceFamily, *std::move(reference)};
    return wide.status();
  }
  if (!wide.ok()) return choice;
  for (std::string& name : *wide) {
    if (std::ranges::count(choice.names, name) == 0) choice.names.push_back(std::move(name));
  }
  return choice;
}

// `wanted`: a kernel that shall be among the names where there is one; "": any.
StatusOr<Choice> Choose(const GroupContext& context, const std::string& wanted) {
  if (context.stores_bf16) return ChooseStored(context);
  AG_LET(const Family* family, FamilyOf(context));
  StatusOr<std::vector<std::string>> names = family->names(context);
  const bool is_refused = names.status().code() == StatusCode::kUnimplemented;
  const auto has_wanted = [&](const std::vector<std::string>& all) {
    return wanted.empty() || std::ranges::count(all, wanted) > 0;
  };
  const bool prefers_wide =
      is_refused || (names.ok() && names->front() == kReferenceName) || HasFloatPort(context);
  if (prefers_wide && CanWiden(context)) {
    const Widened widened(context);
    StatusOr<std::vector<std::string>> wide = family->names(widened.context());
    if (wide.ok()) std::erase(*wide, kReferenceName);
    if (wide.ok() && !wide->empty() && (is_refused || has_wanted(*wide))) {
      return Choice{family, *std::move(wide)};
    }
  }
  if (is_refused) {
    StatusOr<std::vector<std::string>> reference = kReferenceFamily.names(context);
    if (reference.ok()) {
      const size_t own = reference->size();
      return Choice{&kReferenceFamily, *std::move(reference), own};
    }
  }
  AG_TRY(names.status());
  const size_t own = names->size();
  return Choice{family, *std::move(names), own};
}

// A kernel for the first nodes, which writes `middle`, then an element-wise pass for the rest.
class StagedKernel : public Kernel {
 public:
  // `middle_bytes` > 0: the first kernel's result does not fit the output and is kept in scratch.
  StagedKernel(std::unique_ptr<Kernel> first, std::unique_ptr<Kernel> rest, size_t middle_bytes,
               size_t inputs)
      : first_(std::move(first)),
        rest_(std::move(rest)),
        middle_bytes_(AlignUp(middle_bytes)),
        inputs_(inputs + 1) {}

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) override {
    void* middle[1] = {middle_bytes_ > 0 ? context.scratch : outputs[0]};
    const RunContext inner{context.stream, context.scratch + middle_bytes_};
    AG_TRY(first_->Run(inner, inputs, middle));
    std::copy(inputs.begin(), inputs.end(), inputs_.begin());
    inputs_.back() = middle[0];
    return rest_->Run(inner, inputs_, outputs);
  }

  size_t scratch_bytes() const override {
    return middle_bytes_ + std::max(first_->scratch_bytes(), rest_->scratch_bytes());
  }
  bool rounds() const override { return rest_->rounds(); }

 private:
  std::unique_ptr<Kernel> first_, rest_;
  size_t middle_bytes_;
  std::vector<const void*> inputs_;
};

// Returns the group cut after its first `count` nodes, whose last value is the only output.
Group Head(const GroupContext& context, size_t count) {
  Group head = context.group;
  head.nodes.resize(count);
  head.outputs = {{{head.nodes.back(), 0}, context.group.outputs[0].layout}};
  return head;
}

// Makes a family's kernel and a pass for the rest. A family that computes part of the group writes
// it in the layout of outputs[0]. For a middle of another shape there are two kernels from the
// start: the head alone, then the rest.
StatusOr<std::unique_ptr<Kernel>> MakeStaged(const GroupContext& context, const Family& family,
                                             const std::string& name) {
  size_t done = 0;
  const Group head = Head(context, 1);
  const TensorType& anchor = context.node(0).outputs[0];
  const Edge last = context.group.outputs[0].edge;
  const bool alike = context.graph.type(last) == anchor && context.group.outputs.size() == 1;
  std::unique_ptr<Kernel> kernel;
  if (alike) {
    AG_LET(kernel, family.make(context, name, &done));
    if (done == context.group.nodes.size()) return kernel;
  } else {
    const GroupContext alone{.graph = context.graph,
                             .group = head,
                             .cores = context.cores,
                             .constants = context.constants,
                             .packed = context.packed,
                             .wide = context.wide,
                             .prefers_held_weights = context.prefers_held_weights,
                             .stores_bf16 = context.stores_bf16};
    AG_LET(kernel, family.make(alone, name, &done));
  }
  const Port middle{{context.group.nodes[done - 1], 0}, head.outputs[0].layout};
  const int slot = static_cast<int>(context.group.inputs.size());
  const ChainSource source{middle, slot};
  AG_LET(std::unique_ptr<Kernel> rest, MakeChain(context, done, {&source, 1}));
  const size_t bytes = alike ? 0 : LayoutBytes(anchor, middle.layout);
  return std::make_unique<StagedKernel>(std::move(kernel), std::move(rest), bytes, slot);
}

// Makes the family's kernel for all of the group.
StatusOr<std::unique_ptr<Kernel>> MakeWhole(const GroupContext& context, const Family& family,
                                            const std::string& name) {
  const bool takes_all =
      family.takes_all || (&family == &kLayerNormFamily && IsNormOfChain(context));
  if (!takes_all && context.group.nodes.size() > 1) return MakeStaged(context, family, name);
  size_t done = 0;
  return family.make(context, name, &done);
}

}  // namespace

bool ArePlain(const Group& group) {
  const auto is_plain = [](const Port& port) { return port.layout == Layout::kPlain; };
  return std::ranges::all_of(group.inputs, is_plain) &&
         std::ranges::all_of(group.outputs, is_plain);
}

int GroupContext::InputOf(Edge edge) const {
  for (size_t i = 0; i < group.inputs.size(); ++i) {
    if (group.inputs[i].edge == edge) return static_cast<int>(i);
  }
  return -1;
}

StatusOr<int> GroupContext::InputPort(size_t i, size_t index) const {
  const int port = InputOf(node(i).inputs[index]);
  if (port >= 0) return port;
  return Err(StatusCode::kUnimplemented, "{}: operand {} is constant or made inside the group",
             Info(node(i).op).name, index);
}

bool GroupContext::IsInside(NodeId id) const {
  return std::binary_search(group.nodes.begin(), group.nodes.end(), id);
}

Constants* GroupContext::FloatConstants() const {
  return stores_bf16 ? wide->constants() : constants;
}

StatusOr<std::vector<std::string>> KernelNames(const GroupContext& context) {
  AG_LET(Choice choice, Choose(context, ""));
  return std::move(choice.names);
}

StatusOr<std::unique_ptr<Kernel>> MakeKernel(const GroupContext& context, const std::string& name) {
  AG_LET(const Choice choice, Choose(context, name));
  const auto& [family, names, own] = choice;
  const auto at = name.empty() ? names.begin() : std::ranges::find(names, name);
  if (at == names.end()) {
    return Err(StatusCode::kInvalidArgument, "group {}: no kernel {}", context.group.pattern, name);
  }
  const std::string& chosen = *at;
  const bool is_wide = at - names.begin() >= static_cast<std::ptrdiff_t>(own);
  std::unique_ptr<Kernel> kernel;
  if (is_wide) {
    AG_LET(kernel, MakeWhole(Widened(context).context(), *family, chosen));
  } else {
    AG_LET(kernel, MakeWhole(context, *family, chosen));
  }
  if (!is_wide && !HasFloatPort(context)) return kernel;
  return WithConversions(context, std::move(kernel), is_wide);
}

}  // namespace ag::cpu
