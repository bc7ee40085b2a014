#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "graph/onnx/testing/mutate.h"
#include "onnx/defs/schema.h"
#include "onnx/onnx_pb.h"

namespace ag::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// A field of a message in a model.
struct FieldPlace {
  Message* message;
  const FieldDescriptor* field;
};

// Adds all messages in `message`, itself first. Protobuf's limit on nested messages bounds the
// recursion.
void AddMessages(Message& message, std::vector<Message*>& all) {
  all.push_back(&message);
  const Reflection& reflection = *message.GetReflection();
  std::vector<const FieldDescriptor*> set;
  reflection.ListFields(message, &set);
  for (const FieldDescriptor* field : set) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      AddMessages(*reflection.MutableMessage(&message, field), all);
      continue;
    }
    for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
      AddMessages(*reflection.MutableRepeatedMessage(&message, field, i), all);
    }
  }
}

const std::vector<onnx::OpSchema>& Schemas() {
  static const std::vector<onnx::OpSchema> schemas = [] {
    std::vector<onnx::OpSchema> found;
    for (const onnx::OpSchema& schema : onnx::OpSchemaRegistry::get_all_schemas_with_history()) {
      if (schema.domain().empty()) found.push_back(schema);
    }
    return found;
  }();
  return schemas;
}

// One change of a model after another.
class Mutator {
 public:
  Mutator(onnx::ModelProto& model, onnx::ModelProto& donor, Random& random)
      : model_(model), random_(random) {
    AddMessages(donor, donors_);
  }

  void Change() {
    messages_.clear();
    AddMessages(model_, messages_);
    AddNames();
    switch (random_.Below(6)) {
      case 0:
        return AddNode();
      case 1:
        return ChangeTensor();
      case 2:
        return ChangeOperand();
      default:
        return ChangeField();
    }
  }

 private:
  bool OneIn(uint64_t n) { return random_.Below(n) == 0; }
  const auto& AnyOf(const auto& list) { return list[random_.Below(list.size())]; }

  template <class T>
  std::vector<T*> All() const {
    std::vector<T*> found;
    for (Message* message : messages_) {
      if (auto* typed = dynamic_cast<T*>(message)) found.push_back(typed);
    }
    return found;
  }

  // Collects the names of values.
  void AddNames() {
    names_ = {""};
    for (const auto* node : All<onnx::NodeProto>()) {
      names_.insert(names_.end(), node->input().begin(), node->input().end());
      names_.insert(names_.end(), node->output().begin(), node->output().end());
    }
    for (const auto* info : All<onnx::ValueInfoProto>()) names_.push_back(info->name());
    for (const auto* tensor : All<onnx::TensorProto>()) names_.push_back(tensor->name());
  }

  int64_t AnyInt() {
    static constexpr int64_t kEdges[] = {0,
                                         1,
                                         -1,
                                         2,
                                         -2,
                                         std::numeric_limits<int64_t>::max(),
                                         std::numeric_limits<int64_t>::min(),
                                         std::numeric_limits<int64_t>::max() - 1,
                                         std::numeric_limits<int32_t>::max(),
                                         std::numeric_limits<int32_t>::min(),
                                         int64_t{1} << 32,
                                         int64_t{1} << 40,
                                         int64_t{1} << 62,
                                         255,
                                         65536};
    if (OneIn(3)) return kEdges[random_.Below(std::size(kEdges))];
    return random_.Between(-4, OneIn(4) ? 300 : 9);
  }

  double AnyNumber() {
    static constexpr double kEdges[] = {
        0,    -0.0,  1, -1, 0.5, 1e30, 1e-9, -1e30, 3e38, std::numeric_limits<double>::max(),
        1e19, 9.3e18};
    if (OneIn(8)) return std::numeric_limits<double>::quiet_NaN();
    if (OneIn(8)) return OneIn(2) ? HUGE_VAL : -HUGE_VAL;
    return OneIn(2) ? kEdges[random_.Below(std::size(kEdges))] : random_.Normal() * 4;
  }

  std::string ChangedText(std::string text) {
    const size_t at = random_.Below(text.size() + 1);
    switch (random_.Below(4)) {
      case 0:
        return text.substr(0, at);
      case 1:
        return text + text.substr(at);
      case 2:
        text.insert(at, 1, static_cast<char>(random_.Next()));
        return text;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random_.Next());
        return text;
    }
  }

  std::string AnyText(const FieldDescriptor& field, const std::string& old) {
    static constexpr std::string_view kWords[] = {
        "",           "ai.onnx",    "com.microsoft", "linear",   "nearest",    "cubic",
        "SAME_UPPER", "SAME_LOWER", "VALID",         "reflect",  "edge",       "wrap",
        "mean",       "forward",    "bidirectional", "location", "offset",     "length",
        "Tanh",       "Sigmoid",    "i,j->ij",       "...ij,jk", "half_pixel", "align_corners",
        "N",          "?",          "axis",          "to"};
    if (OneIn(4)) return ChangedText(old);
    if (field.name() == "op_type") return AnyOf(Schemas()).Name();
    if (OneIn(4)) return std::string(kWords[random_.Below(std::size(kWords))]);
    const onnx::OpSchema& schema = AnyOf(Schemas());
    const auto& attributes = schema.attributes();
    if (OneIn(3) && !attributes.empty()) {
      return std::next(attributes.begin(),
                       static_cast<std::ptrdiff_t>(random_.Below(attributes.size())))
          ->first;
    }
    return AnyOf(names_);
  }

  // Sets a field that is no message, or adds to it where it is repeated.
  void SetScalar(const FieldPlace& place, int index) {
    Message* const m = place.message;
    const FieldDescriptor* const f = place.field;
    const Reflection& r = *m->GetReflection();
    const bool adds = f->is_repeated() && index < 0;
    const auto set = [&](auto value, auto one, auto at, auto add) {
      if (!f->is_repeated()) return (r.*one)(m, f, value);
      return adds ? (r.*add)(m, f, value) : (r.*at)(m, f, index, value);
    };
    using R = Reflection;
    switch (f->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        return set(static_cast<int32_t>(AnyInt()), &R::SetInt32, &R::SetRepeatedInt32,
                   &R::AddInt32);
      case FieldDescriptor::CPPTYPE_INT64:
        return set(AnyInt(), &R::SetInt64, &R::SetRepeatedInt64, &R::AddInt64);
      case FieldDescriptor::CPPTYPE_UINT64:
        return set(static_cast<uint64_t>(AnyInt()), &R::SetUInt64, &R::SetRepeatedUInt64,
                   &R::AddUInt64);
      case FieldDescriptor::CPPTYPE_FLOAT:
        return set(static_cast<float>(std::min(AnyNumber(), 3e38)), &R::SetFloat,
                   &R::SetRepeatedFloat, &R::AddFloat);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return set(AnyNumber(), &R::SetDouble, &R::SetRepeatedDouble, &R::AddDouble);
      case FieldDescriptor::CPPTYPE_ENUM:
        return set(static_cast<int>(random_.Between(0, 24)), &R::SetEnumValue,
                   &R::SetRepeatedEnumValue, &R::AddEnumValue);
      case FieldDescriptor::CPPTYPE_STRING: {
        std::string old;
        if (!f->is_repeated()) old = r.GetString(*m, f);
        if (f->is_repeated() && index >= 0) old = r.GetRepeatedString(*m, f, index);
        return set(AnyText(*f, old), &R::SetString, &R::SetRepeatedString, &R::AddString);
      }
      default:
        return;
    }
  }

  // Returns a message of this type from the model or the donor, else null.
  const Message* AnyLike(const FieldDescriptor& field) {
    const std::vector<Message*>& from = OneIn(2) ? donors_ : messages_;
    std::vector<const Message*> fitting;
    for (const Message* message : from) {
      if (message->GetDescriptor() == field.message_type()) fitting.push_back(message);
    }
    return fitting.empty() ? nullptr : AnyOf(fitting);
  }

  // Sets a message, or adds one, as a copy of another or empty.
  void SetMessage(const FieldPlace& place) {
    const Reflection& r = *place.message->GetReflection();
    const Message* const like = AnyLike(*place.field);
    // The copy first: it may be around the place.
    const std::string bytes = like == nullptr ? "" : like->SerializePartialAsString();
    Message* const target = place.field->is_repeated()
                                ? r.AddMessage(place.message, place.field)
                                : r.MutableMessage(place.message, place.field);
    (void)target->ParsePartialFromString(bytes);
  }

  void ChangeRepeated(const FieldPlace& place, int size) {
    const Reflection& r = *place.message->GetReflection();
    const auto i = static_cast<int>(random_.Below(static_cast<uint64_t>(size)));
    const auto j = static_cast<int>(random_.Below(static_cast<uint64_t>(size)));
    r.SwapElements(place.message, place.field, i, j);
    if (OneIn(2)) r.RemoveLast(place.message, place.field);
  }

  void ChangeField() {
    Message* const message = AnyOf(messages_);
    const auto& descriptor = *message->GetDescriptor();
    const Reflection& r = *message->GetReflection();
    std::vector<const FieldDescriptor*> set;
    r.ListFields(*message, &set);
    const auto any = static_cast<int>(
        random_.Below(static_cast<uint64_t>(std::max(1, descriptor.field_count()))));
    if (descriptor.field_count() == 0) return;
    const FieldDescriptor* const field =
        set.empty() || OneIn(4) ? descriptor.field(any) : AnyOf(set);
    const FieldPlace place{message, field};
    const int size = field->is_repeated() ? r.FieldSize(*message, field) : 0;
    if (size > 0 && OneIn(3)) return ChangeRepeated(place, size);
    if (OneIn(8)) return r.ClearField(message, field);
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) return SetMessage(place);
    const bool adds = size == 0 || OneIn(3);
    SetScalar(place, adds ? -1 : static_cast<int>(random_.Below(static_cast<uint64_t>(size))));
  }

  void ChangeOperand() {
    const std::vector<onnx::NodeProto*> nodes = All<onnx::NodeProto>();
    if (nodes.empty()) return AddNode();
    onnx::NodeProto& node = *AnyOf(nodes);
    if (node.input_size() == 0 || OneIn(4)) {
      node.add_input(AnyOf(names_));
    } else {
      const auto i = random_.Below(static_cast<uint64_t>(node.input_size()));
      node.set_input(static_cast<int>(i), AnyOf(names_));
    }
  }

  // Makes a tensor whose data fit its type and sizes, most of them small integers.
  void ChangeTensor() {
    const std::vector<onnx::TensorProto*> tensors = All<onnx::TensorProto>();
    if (tensors.empty()) {
      onnx::TensorProto& made = *model_.mutable_graph()->add_initializer();
      made.set_name(AnyOf(names_));
      return FillTensor(made);
    }
    FillTensor(*AnyOf(tensors));
  }

  void FillTensor(onnx::TensorProto& tensor) {
    using P = onnx::TensorProto;
    static constexpr int kTypes[] = {P::INT64,   P::INT64,    P::FLOAT, P::INT32,
                                     P::BOOL,    P::DOUBLE,   P::INT8,  P::UINT8,
                                     P::FLOAT16, P::BFLOAT16, P::STRING};
    const std::string name = tensor.name();
    const int old_type = tensor.data_type();
    tensor.Clear();
    tensor.set_name(name);
    tensor.set_data_type(OneIn(2) && old_type != 0 ? old_type
                                                   : kTypes[random_.Below(std::size(kTypes))]);
    int64_t count = 1;
    for (uint64_t rank = random_.Below(OneIn(4) ? 6 : 3); rank > 0; --rank) {
      tensor.add_dims(random_.Between(OneIn(8) ? 0 : 1, 4));
      count *= tensor.dims(tensor.dims_size() - 1);
    }
    for (int64_t i = 0; i < count; ++i) AddElement(tensor);
  }

  void AddElement(onnx::TensorProto& tensor) {
    using P = onnx::TensorProto;
    switch (tensor.data_type()) {
      case P::FLOAT:
        return tensor.add_float_data(static_cast<float>(std::min(AnyNumber(), 3e38)));
      case P::DOUBLE:
        return tensor.add_double_data(AnyNumber());
      case P::INT64:
        return tensor.add_int64_data(AnyInt());
      case P::BOOL:
        return tensor.add_int32_data(static_cast<int32_t>(random_.Below(2)));
      case P::UINT32:
      case P::UINT64:
        return tensor.add_uint64_data(static_cast<uint64_t>(AnyInt()));
      case P::STRING:
        return tensor.add_string_data(AnyOf(names_));
      default:
        return tensor.add_int32_data(static_cast<int32_t>(AnyInt()));
    }
  }

  void AddAttribute(const std::string& name, onnx::AttributeProto::AttributeType type,
                    onnx::NodeProto& node) {
    using A = onnx::AttributeProto;
    A& attribute = *node.add_attribute();
    attribute.set_name(name);
    attribute.set_type(type);
    const FieldDescriptor& text = *A::descriptor()->FindFieldByName("s");
    const auto count = random_.Below(5);
    if (type == A::INT) attribute.set_i(AnyInt());
    if (type == A::FLOAT) attribute.set_f(static_cast<float>(std::min(AnyNumber(), 3e38)));
    if (type == A::STRING) attribute.set_s(AnyText(text, ""));
    if (type == A::TENSOR) FillTensor(*attribute.mutable_t());
    for (uint64_t i = 0; i < count; ++i) {
      if (type == A::INTS) attribute.add_ints(AnyInt());
      if (type == A::FLOATS) attribute.add_floats(static_cast<float>(random_.Normal()));
      if (type == A::STRINGS) attribute.add_strings(AnyText(text, ""));
    }
    const FieldDescriptor* const graph = A::descriptor()->FindFieldByName("g");
    if (type == A::GRAPH) SetMessage({&attribute, graph});
  }

  // Adds a node that reads values of the model; its first output may be one that others read.
  void AddNode() {
    const std::vector<onnx::GraphProto*> graphs = All<onnx::GraphProto>();
    onnx::GraphProto& graph = graphs.empty() ? *model_.mutable_graph() : *AnyOf(graphs);
    const onnx::OpSchema& schema = AnyOf(Schemas());
    onnx::NodeProto node;
    node.set_op_type(schema.Name());
    const int most = std::min(schema.max_input(), schema.min_input() + 3);
    const auto inputs = random_.Between(schema.min_input(), std::max(schema.min_input(), most));
    for (int64_t i = 0; i < inputs; ++i) node.add_input(AnyOf(names_));
    for (int i = 0; i < std::max(1, std::min(schema.min_output(), 4)); ++i) {
      node.add_output("m" + std::to_string(random_.Below(1000)));
    }
    for (const auto& [name, attribute] : schema.attributes()) {
      if (attribute.required || OneIn(2)) AddAttribute(name, attribute.type, node);
    }
    const std::string made = node.output(0);
    if (OneIn(2)) {
      ReadInstead(graph, made);
    } else if (graph.output_size() > 0) {
      onnx::ValueInfoProto& output = *graph.add_output();
      output.set_name(made);
      output.mutable_type()->mutable_tensor_type()->set_elem_type(1);
    }
    *graph.add_node() = node;
    const auto at = random_.Below(static_cast<uint64_t>(graph.node_size()));
    if (OneIn(4)) graph.mutable_node()->SwapElements(graph.node_size() - 1, static_cast<int>(at));
  }

  // Makes a node of the graph read `name` in place of one of its operands.
  void ReadInstead(onnx::GraphProto& graph, const std::string& name) {
    if (graph.node_size() == 0) return;
    const auto at = random_.Below(static_cast<uint64_t>(graph.node_size()));
    onnx::NodeProto& reader = *graph.mutable_node(static_cast<int>(at));
    if (reader.input_size() == 0) return reader.add_input(name);
    const auto i = random_.Below(static_cast<uint64_t>(reader.input_size()));
    reader.set_input(static_cast<int>(i), name);
  }

  onnx::ModelProto& model_;
  Random& random_;
  std::vector<Message*> messages_, donors_;
  std::vector<std::string> names_;
};

}  // namespace

std::string MutatedModel(std::string_view model, std::string_view donor, Random& random) {
  onnx::ModelProto proto, other;
  (void)proto.ParsePartialFromArray(model.data(), static_cast<int>(model.size()));
  (void)other.ParsePartialFromArray(donor.data(), static_cast<int>(donor.size()));
  Mutator mutator(proto, other, random);
  for (uint64_t changes = 1 + random.Below(4); changes > 0; --changes) mutator.Change();
  return proto.SerializePartialAsString();
}

}  // namespace ag::testing
