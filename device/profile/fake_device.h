// A device for tests of measuring: runs nothing; the test gives every time. One thread at a time.
#pragma once

#include <cmath>
#include <functional>
#include <map>

#include "device/profile/profile.h"
#include "graph/text_form.h"

namespace ag {

// A device whose times come from the test.
class FakeDevice : public Device {
 public:
  using Times = std::function<double()>;  // Nanoseconds of the next run.

  // Flushes that each take `takes` by the clock.
  struct Flushes {
    FakeClock& clock;
    Nanos takes{0};
    int count = 0;
  };

  class FakeExecutable : public Executable {
   public:
    explicit FakeExecutable(Times times, Flushes* flushes = nullptr, int busy_cores = 0)
        : times_(std::move(times)), flushes_(flushes), busy_cores_(busy_cores) {}
    Status Run(std::span<const Tensor>, std::span<Tensor>) override { return OkStatus(); }
    StatusOr<Nanos> TimedRun(std::span<const Tensor>, std::span<Tensor>) override {
      ++runs;
      if (!fails.ok()) return fails;
      return Nanos(std::llround(times_()));
    }
    // Flushes, then runs once.
    StatusOr<double> ColdRunNs(std::span<const Tensor> inputs, std::span<Tensor> outputs) override {
      if (flushes_ == nullptr) return Executable::ColdRunNs(inputs, outputs);
      ++flushes_->count;
      flushes_->clock.Advance(flushes_->takes);
      return MeanRunNs(inputs, outputs, 1);
    }
    StatusOr<std::vector<TraceEvent>> TracedRun(std::span<const Tensor>,
                                                std::span<Tensor>) override {
      return std::vector<TraceEvent>{{.end = Nanos(std::llround(times_()))}};
    }
    int64_t device_bytes() const override { return 0; }
    int busy_cores(int) const override { return busy_cores_; }
    int runs = 0;
    Status fails;

   private:
    Times times_;
    Flushes* flushes_;  // Null: it cannot flush.
    int busy_cores_;
  };

  const DeviceSpec& spec() const override { return spec_; }
  const Environment& environment() const override { return environment_; }
  StatusOr<std::vector<std::string>> Kernels(const GroupProblem&) override {
    std::vector<std::string> names;
    for (const auto& [name, times] : kernels) names.push_back(name);
    return names;
  }
  StatusOr<std::unique_ptr<Executable>> Build(const Graph&, const Plan& plan,
                                              const WeightSource&) override {
    const std::string& name = plan.groups[0].kernel;
    for (const auto& [kernel, times] : kernels) {
      if (kernel != name || !times) continue;
      builds.push_back(plan);
      return std::make_unique<FakeExecutable>(times, flushes, busy_cores[name]);
    }
    return Err(StatusCode::kUnimplemented, "fake: no {}", name);
  }
  bool CoolCaches() override {
    coolings += cools ? 1 : 0;
    return cools;
  }
  StatusOr<Nanos> Canary() override {
    ++canaries;
    return Nanos(std::llround(canary()));
  }

  std::vector<std::pair<std::string, Times>> kernels;
  std::map<std::string, int> busy_cores;  // By kernel.
  std::vector<Plan> builds;               // The plans that were built.
  Times canary = [] { return 100'000.0; };
  int canaries = 0;
  bool cools = false;
  int coolings = 0;
  Flushes* flushes = nullptr;

 private:
  DeviceSpec spec_;
  Environment environment_ = "fake";
};

inline GroupProblem ReluProblem() {
  GroupProblem problem;
  problem.graph = *ParseGraph("input x f32[4]\noutput y = relu(x)");
  problem.pattern = "chain";
  problem.input_layouts = problem.output_layouts = {Layout::kPlain};
  return problem;
}

}  // namespace ag
