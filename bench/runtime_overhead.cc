// The runtime's overhead for a model: the time to make a session, and whole runs through the C
// interface minus the device's time in them. The two times of one run are subtracted before the
// median is taken, so that a machine that slows down has no effect. The limit is 20 us.
//   runtime_overhead MODEL.onnx [RUNS] [DEVICE]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "runtime/autograph.h"

namespace {

using Clock = std::chrono::steady_clock;

int64_t Since(Clock::time_point begin) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
}

double Median(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? static_cast<double>(values[half])
                                : static_cast<double>(values[half - 1] + values[half]) / 2;
}

void Check(ag_status status) {
  if (status == AG_OK) return;
  std::fprintf(stderr, "runtime_overhead: %d: %s\n", status, ag_last_error());
  std::exit(1);
}

ag_session* Open(const char* path, const char* device) {
  ag_session_options options = {};
  options.size = sizeof(options);
  options.device = device;
  ag_session* session = nullptr;
  Check(ag_session_create_from_file(path, &options, &session));
  return session;
}

// Returns the median of three; the first has a cold page cache and cold libraries.
double CreateNs(const char* path, const char* device, double* first_ns) {
  std::vector<int64_t> spent;
  for (int i = 0; i < 3; ++i) {
    const Clock::time_point begin = Clock::now();
    ag_session* const session = Open(path, device);
    spent.push_back(Since(begin));
    ag_session_destroy(session);
  }
  *first_ns = static_cast<double>(spent[0]);
  return Median(spent);
}

// Memory for all inputs or outputs, filled with zeros or, for floats, small numbers.
class Buffers {
 public:
  void Add(const ag_tensor_info& info) {
    memory_.emplace_back((info.bytes + 7) / 8);
    if (info.dtype == AG_FLOAT32) {
      auto* const values = reinterpret_cast<float*>(memory_.back().data());
      for (size_t i = 0; i < info.bytes / sizeof(float); ++i) {
        values[i] = 0.01f * static_cast<float>(i % 101) - 0.5f;
      }
    }
    pointers_.push_back(memory_.back().data());
  }
  void* const* pointers() { return pointers_.data(); }

 private:
  std::vector<std::vector<uint64_t>> memory_;
  std::vector<void*> pointers_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: runtime_overhead MODEL.onnx [RUNS] [DEVICE]\n");
    return 2;
  }
  const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 200;
  const char* const device = argc > 3 ? argv[3] : "cpu";
  double first_ns = 0;
  const double create_ns = CreateNs(argv[1], device, &first_ns);
  std::printf("create: first %.1f ms, median of 3 %.1f ms\n", first_ns / 1e6, create_ns / 1e6);

  ag_session* const session = Open(argv[1], device);
  Buffers in, out;
  for (size_t i = 0; i < ag_session_input_count(session); ++i)
    in.Add(*ag_session_input(session, i));
  for (size_t i = 0; i < ag_session_output_count(session); ++i) {
    out.Add(*ag_session_output(session, i));
  }
  std::vector<int64_t> whole, inside, around;
  for (int i = -10; i < runs; ++i) {  // Ten to warm up.
    int64_t device_ns = 0;
    const Clock::time_point begin = Clock::now();
    Check(ag_session_run_timed(session, in.pointers(), out.pointers(), &device_ns));
    const int64_t spent = Since(begin);
    if (i < 0) continue;
    whole.push_back(spent);
    inside.push_back(device_ns);
    around.push_back(spent - device_ns);
  }
  ag_session_destroy(session);
  std::printf("run: median of %d: whole %.1f us, device %.1f us, overhead %.2f us\n", runs,
              Median(whole) / 1e3, Median(inside) / 1e3, Median(around) / 1e3);
  return 0;
}
