// What a new size costs in an open session: the time of its first run beyond the median of later
// runs, through the C interface. The session opens with the first sizes; each ROUND opens it anew.
//   new_shapes [--rounds N] MODEL.onnx INPUT=1x3x224x224[,INPUT=...] SIZES...
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/autograph.h"

namespace {

using Clock = std::chrono::steady_clock;

// The sizes of one input.
struct Sizes {
  std::string input;
  std::vector<int64_t> shape;
};

// The three times of one set of sizes, in ms, one of each kind for each round.
struct Times {
  std::vector<double> first, later, beyond;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void Check(ag_status status) {
  if (status == AG_OK) return;
  std::fprintf(stderr, "new_shapes: %d: %s\n", status, ag_last_error());
  std::exit(1);
}

std::vector<std::string> Parts(std::string_view text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

std::vector<Sizes> ParseSizes(std::string_view text) {
  std::vector<Sizes> all;
  for (const std::string& part : Parts(text, ',')) {
    const std::vector<std::string> sides = Parts(part, '=');
    if (sides.size() != 2) {
      std::fprintf(stderr, "new_shapes: expected INPUT=SIZES, got %s\n", part.c_str());
      std::exit(2);
    }
    all.push_back({sides[0], {}});
    for (const std::string& size : Parts(sides[1], 'x')) {
      all.back().shape.push_back(std::atoll(size.c_str()));
    }
  }
  return all;
}

ag_session* Open(const char* path, const std::vector<Sizes>& sizes) {
  std::vector<ag_input_shape> shapes;
  for (const Sizes& one : sizes) {
    shapes.push_back({one.input.c_str(), static_cast<int32_t>(one.shape.size()), one.shape.data()});
  }
  ag_session_options options = {};
  options.size = sizeof(options);
  options.shapes = shapes.data();
  options.shapes_count = shapes.size();
  ag_session* session = nullptr;
  Check(ag_session_create_from_file(path, &options, &session));
  return session;
}

// Returns the sizes' elements, of at most eight bytes each: small numbers where they are floats,
// else zeros.
std::vector<uint64_t> Values(const Sizes& sizes, ag_dtype dtype) {
  int64_t elements = 1;
  for (const int64_t size : sizes.shape) elements *= size;
  std::vector<uint64_t> values(static_cast<size_t>(elements));
  if (dtype != AG_FLOAT32) return values;
  auto* const floats = reinterpret_cast<float*>(values.data());
  for (int64_t i = 0; i < elements; ++i) floats[i] = 0.01F * static_cast<float>(i % 101) - 0.5F;
  return values;
}

// Runs the session once with these sizes and returns the milliseconds.
double RunMs(ag_session* session, const std::vector<Sizes>& sizes) {
  std::vector<std::vector<uint64_t>> values;
  std::vector<ag_tensor> tensors;
  for (size_t i = 0; i < ag_session_input_count(session); ++i) {
    const ag_tensor_info& info = *ag_session_input(session, i);
    const auto names_it = [&](const Sizes& one) { return one.input == info.name; };
    const auto found = std::find_if(sizes.begin(), sizes.end(), names_it);
    if (found == sizes.end()) {
      std::fprintf(stderr, "new_shapes: no sizes for input %s\n", info.name);
      std::exit(2);
    }
    values.push_back(Values(*found, info.dtype));
    tensors.push_back({info.dtype, static_cast<int32_t>(found->shape.size()), found->shape.data(),
                       values.back().data()});
  }
  ag_results* results = nullptr;
  const Clock::time_point begin = Clock::now();
  Check(ag_session_run_any(session, tensors.data(), tensors.size(), &results));
  const std::chrono::duration<double, std::milli> spent = Clock::now() - begin;
  ag_results_destroy(results);
  return spent.count();
}

void AddRound(const char* path, const std::vector<std::vector<Sizes>>& all,
              std::vector<Times>* times) {
  constexpr int kLaterRuns = 5;
  ag_session* const session = Open(path, all.front());
  for (size_t i = 0; i < all.size(); ++i) {
    const double first = RunMs(session, all[i]);
    std::vector<double> later;
    for (int run = 0; run < kLaterRuns; ++run) later.push_back(RunMs(session, all[i]));
    (*times)[i].first.push_back(first);
    (*times)[i].later.push_back(Median(later));
    (*times)[i].beyond.push_back(first - Median(later));
  }
  ag_session_destroy(session);
}

}  // namespace

int main(int argc, char** argv) {
  int rounds = 3, next = 1;
  if (argc > 2 && std::string_view(argv[1]) == "--rounds") {
    rounds = std::max(1, std::atoi(argv[2]));
    next = 3;
  }
  if (argc < next + 2) {
    std::fprintf(stderr, "usage: new_shapes [--rounds N] MODEL.onnx INPUT=1x3x224x224 SIZES...\n");
    return 2;
  }
  std::vector<std::vector<Sizes>> all;
  for (int i = next + 1; i < argc; ++i) all.push_back(ParseSizes(argv[i]));
  std::vector<Times> times(all.size());
  for (int round = 0; round < rounds; ++round) AddRound(argv[next], all, &times);
  std::printf("medians of %d rounds, ms; the session opens with the first sizes\n", rounds);
  for (size_t i = 0; i < all.size(); ++i) {
    std::printf("%-40s first %9.2f, later %9.2f, beyond %9.2f\n", argv[next + 1 + i],
                Median(times[i].first), Median(times[i].later), Median(times[i].beyond));
  }
  return 0;
}
