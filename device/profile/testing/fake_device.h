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

  // Evictions that each take `takes` by the clock.
  struct Evictions {
    FakeClock& clock;
    Nanos takes{0};
    int count = 0;
  };

  class FakeExecutable : public Executable {
   public:
    explicit FakeExecutable(Times times, Evictions* evictions = nullptr)
        : times_(std::move(times)), evictions_(evictions) {}
    FakeExecutable(Times times, FakeDevice& device, int active_cores)
        : times_(std::move(times)), evictions_(device.evictions), coolings_(&device.coolings) {
      active_cores_ = {active_cores};
    }

    StatusOr<Nanos> Run(std::span<const Tensor>, std::span<Tensor>) override {
      ++runs;
      if (!fails.ok()) return fails;
      return Nanos(std::llround(times_()));
    }
    StatusOr<double> Time(const TimeRequest& request) override {
      if (request.caches == Caches::kInputs) ++*coolings_;
      if (request.caches == Caches::kEvicted) {
        if (evictions_ == nullptr) return Err(StatusCode::kUnimplemented, "fake: cannot evict");
        ++evictions_->count;
        evictions_->clock.Advance(evictions_->takes);
      }
      AG_LET(const double ns, MeanNs(request.runs, [this] { return Run({}, {}); }));
      if (request.trace != nullptr) *request.trace = {{.end = Nanos(std::llround(ns))}};
      return ns;
    }

    int runs = 0;
    Status fails;

   private:
    Times times_;
    Evictions* evictions_;  // Null: it cannot evict.
    int* coolings_ = nullptr;
  };

  FakeDevice() : Device({.environment = "fake"}) {}
  void CoolCaches() { description_.cools_caches = true; }
  StatusOr<std::vector<std::string>> Kernels(const GroupProblem&) override {
    std::vector<std::string> names;
    for (const auto& [name, times] : kernels) names.push_back(name);
    return names;
  }
  StatusOr<std::unique_ptr<Executable>> Build(const BuildRequest& request) override {
    const std::string& name = request.plan.groups[0].kernel;
    for (const auto& [kernel, times] : kernels) {
      if (kernel != name || !times) continue;
      builds.push_back(request.plan);
      return std::make_unique<FakeExecutable>(times, *this, active_cores[name]);
    }
    return Err(StatusCode::kUnimplemented, "fake: no {}", name);
  }
  StatusOr<Nanos> Canary() override {
    ++canaries;
    return Nanos(std::llround(canary()));
  }

  std::vector<std::pair<std::string, Times>> kernels;
  std::map<std::string, int> active_cores;  // By kernel.
  std::vector<Plan> builds;                 // The plans that were built.
  Times canary = [] { return 100'000.0; };
  int canaries = 0;
  int coolings = 0;
  Evictions* evictions = nullptr;
};

inline GroupProblem ReluProblem() {
  GroupProblem problem;
  problem.graph = *ParseGraph("input x f32[4]\noutput y = relu(x)");
  problem.pattern = "chain";
  problem.input_layouts = problem.output_layouts = {Layout::kPlain};
  return problem;
}

}  // namespace ag
