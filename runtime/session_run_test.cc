// Many runs on many threads, as in a server.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <cstring>
#include <fstream>
#include <functional>
#include <thread>

#include "base/testing/counting_new.h"
#include "graph/onnx/testing/onnx_testing.h"
#include "runtime/autograph.h"
#include "runtime/session.h"

namespace ag {
namespace {

// Our own kernels; oneDNN allocates a small argument map in each execution.
constexpr std::string_view kElementwise =
    "g (float[64,300] x, float[300] s) => (float[64,300] y, float[64,1] m)"
    " { a = Add(x, s) b = Sigmoid(a) c = Mul(a, b) y = Softmax<axis = 1>(c)"
    "   m = ReduceMean<axes = [1]>(y) }";

std::unique_ptr<Session> Load(const std::string& model, const char* device = "cpu") {
  auto session = Session::Load(model, {.device = device});
  AG_CHECK(session.ok());
  return *std::move(session);
}

// The buffers of one caller; the inputs follow from the seed.
struct Caller {
  std::vector<Tensor> in, out;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;

  Caller(const Session& session, uint64_t seed) {
    for (const TensorInfo& info : session.inputs()) {
      in.push_back(RandomTensor(info.type, seed + in.size()));
      inputs.push_back(in.back().bytes().data());
    }
    for (const TensorInfo& info : session.outputs()) {
      out.push_back(Tensor::Zeros(info.type));
      outputs.push_back(out.back().Mutable<char>().data());
    }
  }
  // Returns all outputs one after the other.
  std::string Results() const {
    std::string bytes;
    for (const Tensor& tensor : out) bytes += tensor.bytes();
    return bytes;
  }
  Status Run(Session& session) { return session.RunInPlace(inputs, outputs).status(); }
};

std::string ResultOf(Session& session, uint64_t seed) {
  Caller caller(session, seed);
  EXPECT_EQ(ToString(caller.Run(session)), "OK");
  return caller.Results();
}

int64_t ResidentKib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  }
  return -1;
}

// Returns the bytes that malloc has given out. Resident memory alone would hide leaks that fit into
// memory that was freed before.
int64_t AllocatedBytes() {
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

TEST(SessionRun, InPlaceIsWhatRunGives) {
  for (const char* device : {"cpu", "sim:small"}) {
    const auto session = Load(testing::ConvModel(), device);
    Caller caller(*session, 5);
    const auto spent = session->RunInPlace(caller.inputs, caller.outputs);
    ASSERT_EQ(ToString(spent.status()), "OK") << device;
    EXPECT_GT(spent->count(), 0) << device;
    const auto outputs = session->Run(caller.in);
    ASSERT_EQ(outputs->size(), caller.out.size());
    for (size_t i = 0; i < outputs->size(); ++i) {
      EXPECT_EQ((*outputs)[i].bytes(), caller.out[i].bytes()) << device;
    }
  }
}

TEST(SessionRun, AllocatesNothing) {
  const auto session = Load(testing::ModelFromText(kElementwise));
  Caller caller(*session, 1);
  ASSERT_EQ(ToString(caller.Run(*session)), "OK");
  const int64_t before = allocations;
  for (int i = 0; i < 10; ++i) EXPECT_TRUE(caller.Run(*session).ok());
  EXPECT_EQ(allocations - before, 0);
}

TEST(SessionRun, AThousandRunsLeaveMemoryFlat) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
  const std::string model = testing::ConvModel();
  ag_session* session = nullptr;
  ASSERT_EQ(ag_session_create(model.data(), model.size(), nullptr, &session), AG_OK);
  std::vector<float> x(ag_session_input(session, 0)->bytes / sizeof(float), 0.5f);
  std::vector<float> y(ag_session_output(session, 0)->bytes / sizeof(float));
  const void* const inputs[] = {x.data()};
  void* const outputs[] = {y.data()};
  for (int i = 0; i < 100; ++i) ASSERT_EQ(ag_session_run(session, inputs, outputs), AG_OK);
  const int64_t before_kib = ResidentKib(), before_bytes = AllocatedBytes();
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(ag_session_run(session, inputs, outputs), AG_OK);
  const int64_t after_kib = ResidentKib(), after_bytes = AllocatedBytes();
  ag_session_destroy(session);
  ASSERT_GT(before_kib, 0);
  EXPECT_LT(after_kib - before_kib, 64) << before_kib << " -> " << after_kib;
  EXPECT_LT(after_bytes - before_bytes, 1000) << before_bytes << " -> " << after_bytes;
}

TEST(SessionRun, MakingAndFreeingSessionsLeavesMemoryFlat) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer keeps what was freed";
#endif
  const std::string model = testing::ConvModel();
  for (int i = 0; i < 100; ++i) Load(model);
  const int64_t before_kib = ResidentKib(), before_bytes = AllocatedBytes();
  for (int i = 0; i < 200; ++i) Load(model);
  const int64_t after_kib = ResidentKib(), after_bytes = AllocatedBytes();
  EXPECT_LT(after_kib - before_kib, 1024) << before_kib << " -> " << after_kib;
  // 80 bytes each: malloc counts the blocks in its caches as given out, and oneDNN's caches grow in
  // steps.
  EXPECT_LT(after_bytes - before_bytes, 16'000) << before_bytes << " -> " << after_bytes;
}

// Each thread has its own inputs, so that a mixture of two runs would be visible.
void RunFromTwoThreads(Session& first, Session& second) {
  const std::string expected[] = {ResultOf(first, 1), ResultOf(second, 2)};
  ASSERT_NE(expected[0], expected[1]);
  std::atomic<int> failed{0}, differ{0}, ready{0};
  const auto work = [&](int self) {
    Session& session = self == 0 ? first : second;
    Caller caller(session, 1 + self);
    ++ready;
    while (ready < 2) std::this_thread::yield();
    for (int i = 0; i < 100; ++i) {
      for (Tensor& out : caller.out) std::memset(out.Mutable<char>().data(), 0, out.bytes().size());
      failed += caller.Run(session).ok() ? 0 : 1;
      differ += caller.Results() == expected[self] ? 0 : 1;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(differ, 0);
}

TEST(SessionRun, TwoSessionsRunSideBySide) {
  for (const char* device : {"cpu", "cpu:1"}) {
    const std::string model = testing::ConvModel();
    const auto first = Load(model, device), second = Load(model, device);
    EXPECT_EQ(ResultOf(*first, 2), ResultOf(*second, 2)) << device;
    RunFromTwoThreads(*first, *second);
  }
}

TEST(SessionRun, TwoThreadsShareASession) {
  const auto session = Load(testing::ConvModel());
  RunFromTwoThreads(*session, *session);
  const auto streams = Session::Load(testing::ConvModel(), {.streams = 2});
  ASSERT_EQ(ToString(streams.status()), "OK");
  RunFromTwoThreads(**streams, **streams);
}

TEST(SessionRun, NamesThePointerThatDoesNotFit) {
  const auto session = Load(testing::ModelFromText(kElementwise), "sim:small");
  const auto with = [&](const std::function<void(Caller&)>& change) {
    Caller caller(*session, 1);
    change(caller);
    return ToString(caller.Run(*session));
  };
  const struct {
    const char* name;
    std::function<void(Caller&)> change;
    std::string status;
  } kCases[] = {
      {"right", [](Caller&) {}, "OK"},
      {"an input less", [](Caller& c) { c.inputs.pop_back(); },
       "INVALID_ARGUMENT: model: expected 2 inputs, got 1"},
      {"no outputs", [](Caller& c) { c.outputs.clear(); },
       "INVALID_ARGUMENT: model: expected 2 outputs, got 0"},
      {"NULL input", [](Caller& c) { c.inputs[1] = nullptr; },
       "INVALID_ARGUMENT: input \"s\": expected 1200 bytes of f32[300], got NULL"},
      {"NULL output", [](Caller& c) { c.outputs[1] = nullptr; },
       "INVALID_ARGUMENT: output \"m\": expected 256 bytes of f32[64,1], got NULL"},
      {"odd", [](Caller& c) { c.inputs[0] = static_cast<const char*>(c.inputs[0]) + 3; },
       "INVALID_ARGUMENT: input \"x\": f32[64,300] must be aligned to 4 bytes"},
  };
  for (const auto& c : kCases) EXPECT_EQ(with(c.change), c.status) << c.name;
}

// With an owner, the bytes are used in place; without, they may be freed.
TEST(SessionRun, NeedsNoModelAfterTheLoad) {
  auto bytes = std::make_shared<std::string>(testing::ConvModel());
  auto copy = std::make_unique<std::string>(*bytes);
  const auto borrowing = *Session::Load(*bytes, {.owner = bytes});
  const auto copying = *Session::Load(*copy, {});
  std::fill(copy->begin(), copy->end(), '!');
  copy.reset();
  bytes.reset();
  EXPECT_EQ(ResultOf(*borrowing, 3), ResultOf(*copying, 3));
}

TEST(SessionRun, GivesPagesBackWhileItLoads) {
  const auto bytes = std::make_shared<std::string>(testing::ConvModel());
  std::atomic<int> dropped = 0;
  const auto session =
      *Session::Load(*bytes, {.owner = bytes, .drop_pages = [&dropped] { ++dropped; }});
  EXPECT_GT(dropped, 0);
  dropped = 0;
  ResultOf(*session, 3);
  EXPECT_EQ(dropped, 0);
}

}  // namespace
}  // namespace ag
