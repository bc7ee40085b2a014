#include "device/api/instances.h"

#include "graph/batch/part_of_batch.h"

namespace ag {
namespace {

class InstancesExecutable : public Executable {
 public:
  InstancesExecutable(const Graph& whole, const Graph& part, int32_t instances,
                      std::unique_ptr<Executable> instance)
      : types_(whole), instances_(instances), instance_(std::move(instance)) {
    for (const NodeId id : part.inputs()) inputs_.types.push_back(part.node(id).outputs[0]);
    for (const GraphOutput& output : part.outputs()) {
      outputs_.types.push_back(part.type(output.edge));
    }
    inputs_.tensors.resize(inputs_.types.size());
    outputs_.tensors.resize(outputs_.types.size());
  }

  StatusOr<Nanos> Run(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
    AG_TRY(types_.Check(inputs, outputs));
    Nanos total{0};
    for (int32_t i = 0; i < instances_; ++i) {
      inputs_.Cut(inputs, i);
      outputs_.Cut(outputs, i);
      AG_LET(const Nanos time, instance_->Run(inputs_.tensors, outputs_.tensors));
      total += time;
    }
    return total;
  }

  StatusOr<double> Time(const TimeRequest& request) override {
    AG_TRY(types_.Check(request.inputs, request.outputs));
    double total = 0;
    if (request.trace != nullptr) request.trace->clear();
    for (int run = 0; run < request.runs; ++run) {
      for (int32_t i = 0; i < instances_; ++i) {
        AG_LET(const double ns, TimeInstance(request, i, total));
        total += ns;
      }
    }
    return total / request.runs;
  }

 private:
  // Views of one part of several tensors. They are kept, so that a run allocates nothing.
  struct Parts {
    std::vector<TensorType> types;  // Of a part.
    std::vector<Tensor> tensors;

    void Cut(std::span<const Tensor> whole, int32_t part) {
      for (size_t i = 0; i < whole.size(); ++i) {
        const auto size = static_cast<size_t>(types[i].Bytes());
        const std::string_view bytes = whole[i].bytes().substr(size * part, size);
        tensors[i] = Tensor::View(types[i], bytes, nullptr);
      }
    }
  };

  // `begin_ns`: when the instance begins in the trace.
  StatusOr<double> TimeInstance(const TimeRequest& request, int32_t i, double begin_ns) {
    inputs_.Cut(request.inputs, i);
    outputs_.Cut(request.outputs, i);
    std::vector<TraceEvent> trace;
    AG_LET(const double ns,
           instance_->Time({.inputs = inputs_.tensors,
                            .outputs = outputs_.tensors,
                            .caches = i == 0 ? request.caches : Caches::kAsLeft,
                            .trace = request.trace == nullptr ? nullptr : &trace}));
    const Nanos begin(static_cast<int64_t>(begin_ns));
    for (TraceEvent& event : trace) {
      event.begin += begin;
      event.end += begin;
      request.trace->push_back(event);
    }
    return ns;
  }

  RunTypes types_;
  int32_t instances_;
  std::unique_ptr<Executable> instance_;
  Parts inputs_, outputs_;
};

}  // namespace

StatusOr<std::unique_ptr<Executable>> BuildInstances(Device& device, const BuildRequest& request) {
  const int32_t instances = request.plan.instances;
  AG_LET(const Graph part, PartOfBatch(request.graph, instances));
  const Plan plan = InstanceOf(request.plan, part);
  AG_LET(std::unique_ptr<Executable> instance,
         device.Build({.graph = part,
                       .plan = plan,
                       .weights = request.weights,
                       .prefers_held_weights = request.prefers_held_weights}));
  return std::make_unique<InstancesExecutable>(request.graph, part, instances, std::move(instance));
}

}  // namespace ag
