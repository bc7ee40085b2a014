// The interface to oneDNN 2.6: descriptors for our layouts, errors as Status, and Call, which runs
// one primitive on the ports of a group with the reorders that it needs. The functions are
// thread-safe; a Call is used by one thread at a time.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>
#include <string_view>
#include <vector>

#include "device/cpu/kernel.h"

namespace ag::cpu {

// Returns the process's only CPU engine.
const dnnl::engine& Engine();

// Returns e.g. "2.6.3".
std::string OneDnnVersion();

using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;

// REQUIRES: dtype is f32, bf16, i32, i8 or u8.
Desc DescOf(const TensorType& type, Layout layout);
Desc PlainDesc(const Dims& dims, DType dtype = DType::kFloat32);  // Row-major.
Desc AnyDesc(const Dims& dims, DType dtype = DType::kFloat32);    // oneDNN chooses the layout.
Dims ToDims(std::span<const int64_t> values);

// Returns how the bytes of `edge` lie that `desc` describes, but for their type: f32 those of a
// constant.
Desc GivenDesc(const GroupContext& context, Edge edge, const Desc& desc);

// Returns the attributes of every primitive here: the caller gives the scratch memory.
dnnl::primitive_attr UserScratchpad();

Status FromDnnl(const dnnl::error& error, std::string_view what);

// Calls body() and returns oneDNN's exceptions as a status.
template <class Body>
Status Guarded(std::string_view what, const Body& body) {
  try {
    return body();
  } catch (const dnnl::error& error) {
    return FromDnnl(error, what);
  }
}

// Returns the forms in which the device holds the constant `edge` ready by now, made from the form
// `given`, of those that have the sizes `dims`: as `given` for oneDNN, others for forms of our own.
// None unless the group prefers such weights: what a kernel does then hangs on what was built
// before it.
std::vector<Desc> HeldForms(const GroupContext& context, Edge edge, const Desc& given,
                            const Dims& dims);
inline std::vector<Desc> HeldForms(const GroupContext& context, Edge edge, const Desc& given) {
  return HeldForms(context, edge, given, given.dims());
}

// Returns true for an implementation that is as good as `best`, the one that oneDNN chose with
// weights of any form, as far as names tell: neither its reference nor, unless `best` is one, a
// matrix product over unfolded patches.
bool IsAsGood(const std::string& impl, const std::string& best);
inline bool IsSlow(const std::string& impl) { return impl.empty() || impl.starts_with("ref"); }

// Whether oneDNN's (2.6) convolutions may be used for results of this type with so many channels.
// On bf16 with channels that fill no vectors, sums were wrong now and then where another thread
// wrote beside them, as if places behind the last channels were read and written back.
inline bool MayConvolve(DType dtype, int64_t channels) {
  return dtype != DType::kBFloat16 || channels % 16 == 0;
}

// One primitive with its arguments bound to ports and constants. Where the primitive needs another
// layout than the port has, constants are reordered once and ports by a reorder before or after.
class Call {
 public:
  // Bind the arguments and finish the call. Constants are GroupContext::FloatConstants. A reorder
  // that oneDNN does not have fails. Call them inside Guarded; Finish comes last.
  Status Constant(const GroupContext& context, Edge edge, int arg, const Desc& wanted,
                  const Desc& given);
  // Binds values of our own, which `given` describes. They are copied.
  Status Hold(int arg, const Desc& wanted, const Desc& given, const void* values);
  // `offset`: where the argument begins in the port's bytes.
  void Input(int arg, const Desc& wanted, const Desc& given, int port, size_t offset = 0);
  // Binds `edge`, a port of the group or a constant.
  Status Operand(const GroupContext& context, Edge edge, int arg, const Desc& wanted,
                 const Desc& given);
  void Output(int arg, const Desc& wanted, const Desc& given, int port, size_t offset = 0);
  void Finish(dnnl::primitive primitive, const Desc& scratchpad);

  Status Run(const RunContext& context, Inputs inputs, Outputs outputs);
  size_t scratch_bytes() const { return scratch_bytes_; }

 private:
  enum class Source { kInput, kOutput, kScratch };
  struct Binding {
    dnnl::memory memory;
    Source source;
    size_t place;       // The port; 0 of scratch.
    size_t offset = 0;  // In its bytes.
    const void* bound = nullptr;
  };
  struct Step {
    dnnl::primitive primitive;
    std::vector<dnnl_exec_arg_t> args;
  };
  dnnl::memory Bind(const Desc& desc, Source source, size_t place, size_t offset);
  dnnl::memory Temporary(const Desc& desc);
  Step Reorder(const dnnl::memory& from, const dnnl::memory& to);
  static Status Execute(const Step& step, dnnl_stream* stream);

  std::vector<Binding> bindings_;
  std::vector<Step> before_, after_;
  std::vector<Step> steps_;
  std::vector<dnnl_exec_arg_t> args_;
  std::vector<dnnl::memory> held_;
  std::vector<std::shared_ptr<const AlignedBuffer>> packed_;
  size_t temporaries_bytes_ = 0;
  size_t scratchpad_bytes_ = 0;
  size_t scratch_bytes_ = 0;
};

// A kernel that is one call. A derived class has a Prepare that binds and finishes `call_`.
class CallKernel : public Kernel {
 public:
  Status Run(const RunContext& context, Inputs inputs, Outputs outputs) final {
    return call_.Run(context, inputs, outputs);
  }
  size_t scratch_bytes() const final { return call_.scratch_bytes(); }

 protected:
  Call call_;
};

// Returns a kernel of class K after its Prepare(arguments...).
template <class K, class... Arguments>
StatusOr<std::unique_ptr<Kernel>> Prepared(std::string_view what, const Arguments&... arguments) {
  auto kernel = std::make_unique<K>();
  AG_TRY(Guarded(what, [&] { return kernel->Prepare(arguments...); }));
  return kernel;
}

}  // namespace ag::cpu
