// The attributes of one ONNX node, for an importer or a kernel of its operator. It remembers which
// were asked for, so that an attribute that nobody reads is found. One thread at a time.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "graph/attributes.h"
#include "graph/onnx/wire.h"

namespace ag {

class NodeAttributes {
 public:
  // The node must outlive the object.
  explicit NodeAttributes(const OnnxNode& node) : node_(node) {}

  const OnnxNode& node() const { return node_; }

  // Getters return `otherwise` for an absent attribute and for one of another type, which
  // CheckAttributes reports later.
  bool HasAttribute(std::string_view name) { return Find(name) != nullptr; }
  int64_t Int(std::string_view name, int64_t otherwise);
  double Float(std::string_view name, double otherwise);
  std::string String(std::string_view name, std::string_view otherwise);
  std::optional<Ints> IntList(std::string_view name);
  std::optional<std::vector<float>> FloatList(std::string_view name);
  std::optional<std::vector<std::string>> StringList(std::string_view name);
  const OnnxAttribute* Find(std::string_view name);  // Null when absent.
  void Ignore(std::string_view name) { (void)Find(name); }

  // Returns the first attribute of a wrong type (kInvalidArgument), or one that was never read
  // (kUnimplemented).
  Status CheckAttributes() const;

 private:
  const OnnxAttribute* FindTyped(std::string_view name, OnnxAttributeType type);

  const OnnxNode& node_;
  std::set<std::string, std::less<>> asked_;
  Status attribute_error_;
};

// Returns `axis` of a tensor of `rank`; a negative one counts from the end. kInvalidArgument:
// outside.
StatusOr<int64_t> ResolveAxis(int64_t axis, int64_t rank);
StatusOr<Ints> ResolveAxes(Ints axes, int64_t rank);

// Returns the elements of a tensor of i64 or i32. kInvalidArgument: another type.
StatusOr<Ints> IntsOf(const Tensor& tensor);

}  // namespace ag
