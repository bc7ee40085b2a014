// The choice of the family of a group.
#include "device/cuda/codegen/generate.h"

#include <algorithm>

#include "device/cuda/codegen/convolution.h"
#include "device/cuda/codegen/families.h"

namespace ag::cuda {
namespace {

StatusOr<const Family*> FamilyOf(const GroupContext& context) {
  if (context.group.pattern == kReorderPattern) return &kMovementFamily;
  if (context.group.nodes.empty()) {
    return Err(StatusCode::kInvalidArgument, "group {}: no nodes", context.group.pattern);
  }
  const OpKind op = context.node(0).op;
  if (op == OpKind::kBatchNorm || Has(op, kElementwise)) return &kChainFamily;
  if (op == OpKind::kConv) return IsSeparable(context) ? &kSeparableFamily : &kConvolutionFamily;
  if (op == OpKind::kMatMul) return &kDenseFamily;
  if (op == OpKind::kSoftmax) return &kSoftmaxFamily;
  if (op == OpKind::kLayerNorm || op == OpKind::kRmsNorm) return &kNormFamily;
  if (Has(op, kPooling)) return &kPoolFamily;
  if (Has(op, kResampling)) return &kResizeFamily;
  if (Has(op, kReduction)) return &kReduceFamily;
  if (op == OpKind::kGather) return &kGatherFamily;
  if (op == OpKind::kPad) return &kPadFamily;
  if (Has(op, kMovement)) return &kMovementFamily;
  return Err(StatusCode::kUnimplemented, "generated {}: no kernel", Info(op).name);
}

// Returns "Conv+Relu", "reorder".
std::string NameOf(const GroupContext& context) {
  std::vector<std::string_view> names;
  for (size_t i = 0; i < context.group.nodes.size(); ++i) {
    names.push_back(Info(context.node(i).op).name);
  }
  return names.empty() ? context.group.pattern : Join(names, "+");
}

// Returns the text's first line: the operators, the variant, the tensors.
std::string TitleOf(const GroupContext& context, const std::string& variant) {
  const auto types = [&](const std::vector<Port>& ports) {
    std::vector<std::string> names;
    for (const Port& port : ports) {
      names.push_back(context.graph.type(port.edge).ToString());
      if (port.layout != Layout::kPlain)
        names.back() += fmt::format(" {}", LayoutName(port.layout));
    }
    return Join(names, ", ");
  };
  return fmt::format("// {} by {}: {} -> {}\n", NameOf(context), variant,
                     types(context.group.inputs), types(context.group.outputs));
}

// Returns true when there is nothing to compute; then there is no kernel.
bool IsEmpty(const GroupContext& context) {
  return std::ranges::all_of(context.group.outputs, [&](const Port& port) {
    return context.graph.type(port.edge).NumElements() == 0;
  });
}

}  // namespace

StatusOr<std::vector<std::string>> GeneratedVariants(const GroupContext& context) {
  if (IsEmpty(context)) return std::vector<std::string>{"nothing"};
  AG_LET(const Family* family, FamilyOf(context));
  StatusOr<std::vector<std::string>> variants = family->variants(context);
  AG_TRY(variants, "generated {}", NameOf(context));
  return variants;
}

StatusOr<GeneratedGroup> GenerateGroup(const GroupContext& context, const std::string& variant) {
  AG_LET(const std::vector<std::string> variants, GeneratedVariants(context));
  if (std::ranges::count(variants, variant) == 0) {
    return Err(StatusCode::kInvalidArgument, "generated {}: no variant '{}'; it has {}",
               NameOf(context), variant, Join(variants, ", "));
  }
  if (IsEmpty(context)) return GeneratedGroup();
  AG_LET(const Family* family, FamilyOf(context));
  StatusOr<GeneratedGroup> group = family->generate(context, variant);
  AG_TRY(group, "generated {} by {}", NameOf(context), variant);
  group->source = TitleOf(context, variant) + group->source;
  return group;
}

}  // namespace ag::cuda
