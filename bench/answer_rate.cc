// How fast a coordinator gives answers that it remembers, beside the smallest call that it has, in
// turn:
//   answer_rate SERVER MODEL.onnx DEVICE [MODELS BLOCKS SECONDS]     (50 11 1; bench/answer_rate.sh
//   starts all)
// Two clients with a connection each; each asks for MODELS different models in turn (the model's
// bytes with a metadata entry behind them). The first requests run with small budgets. Prints the
// rates of both calls, the median ratio of the blocks with its range, and the percentiles of an
// answer. The token is AUTOGRAPH_TOKEN's.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "client/cpp/client.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

struct Options {
  std::string server, model, device;
  int models = 50, blocks = 11;
  double seconds = 1;
};

StatusOr<std::unique_ptr<Client>> Connect(const Options& options) {
  const char* token = std::getenv("AUTOGRAPH_TOKEN");
  return Client::Connect(options.server, {.token = token != nullptr ? token : ""});
}

// A field "metadata_props" of ONNX's ModelProto (14) with the key "n" and this value: messages that
// follow each other are one.
std::string MetadataEntry(int value) {
  const std::string text = std::to_string(value);
  std::string entry = "\x0a\x01n\x12";
  entry += static_cast<char>(text.size());
  entry += text;
  return std::string("\x72") + static_cast<char>(entry.size()) + entry;
}

StatusOr<std::vector<v1::OptimizeRequest>> Prepare(const Options& options) {
  AG_LET(const auto client, Connect(options));
  AG_LET(const std::string bytes, ReadFile(options.model));
  std::vector<v1::OptimizeRequest> requests;
  for (int i = 0; i < options.models; ++i) {
    const std::string model = bytes + MetadataEntry(i);
    v1::OptimizeRequest& request = requests.emplace_back();
    AG_LET(const Digest digest,
           client->Upload("model", static_cast<int64_t>(model.size()),
                          [&](const Client::TakePiece& take) { return take(model); }));
    request.set_model_digest(digest.Hex());
    request.set_device(options.device);
    request.mutable_budget()->set_rounds(1);
    request.mutable_budget()->set_expansions(2);
    AG_LET(v1::Job job, client->Optimize(request));
    if (job.state() < v1::Job::SUCCEEDED) {
      AG_LET(job, client->Watch(job.name(), [](const v1::Job&) { return true; }));
    }
    if (job.state() == v1::Job::SUCCEEDED) continue;
    return Err(StatusCode::kInternal, "model {}: {}", i, job.error().message());
  }
  return requests;
}

struct Block {
  double rate = 0;            // Calls of both clients a second.
  std::vector<double> times;  // Of each call, in milliseconds.
};

// Calls as fast as two clients can. `call` makes the n-th call of a client.
template <class Call>
StatusOr<Block> RunBlock(std::vector<std::unique_ptr<Client>>& clients, double seconds,
                         const Call& call) {
  std::vector<std::vector<double>> times(clients.size());
  std::vector<Status> errors(clients.size());
  std::vector<std::thread> threads;
  const Nanos begin = RealClock().Now();
  const Nanos end = begin + Nanos(static_cast<int64_t>(seconds * 1e9));
  for (size_t c = 0; c < clients.size(); ++c) {
    threads.emplace_back([&, c] {
      for (int n = static_cast<int>(c) * 7; errors[c].ok(); ++n) {
        const Nanos before = RealClock().Now();
        if (before >= end) return;
        errors[c] = call(*clients[c], n);
        times[c].push_back(static_cast<double>((RealClock().Now() - before).count()) / 1e6);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  Block block;
  for (size_t c = 0; c < clients.size(); ++c) {
    AG_TRY(errors[c]);
    block.times.insert(block.times.end(), times[c].begin(), times[c].end());
  }
  block.rate = static_cast<double>(block.times.size()) /
               (static_cast<double>((RealClock().Now() - begin).count()) / 1e9);
  return block;
}

double At(std::vector<double>& values, double share) {
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(share * static_cast<double>(values.size() - 1))];
}

Status Measure(const Options& options) {
  AG_LET(const auto requests, Prepare(options));
  std::vector<std::unique_ptr<Client>> clients;
  for (int c = 0; c < 2; ++c) {
    AG_LET(auto client, Connect(options));
    clients.push_back(std::move(client));
  }
  const auto answer = [&](Client& client, int n) -> Status {
    AG_LET(const v1::Job job, client.Optimize(requests[static_cast<size_t>(n) % requests.size()]));
    if (job.result().cache().model_hit()) return OkStatus();
    return Err(StatusCode::kInternal, "an answer was not remembered");
  };
  const auto smallest = [](Client& client, int) { return client.GetCapabilities().status(); };
  std::vector<double> ratios, answer_rates, smallest_rates, times;
  for (int i = -1; i < options.blocks; ++i) {  // The first is to warm up.
    AG_LET(const Block a, RunBlock(clients, options.seconds, answer));
    AG_LET(const Block s, RunBlock(clients, options.seconds, smallest));
    if (i < 0) continue;
    ratios.push_back(a.rate / s.rate);
    answer_rates.push_back(a.rate);
    smallest_rates.push_back(s.rate);
    times.insert(times.end(), a.times.begin(), a.times.end());
  }
  std::printf(
      "remembered answers of %d models: %.0f/s; GetCapabilities: %.0f/s; ratio %.3f (%.3f to "
      "%.3f); an answer takes %.2f ms, p99 %.2f ms\n",
      options.models, At(answer_rates, 0.5), At(smallest_rates, 0.5), At(ratios, 0.5),
      At(ratios, 0), At(ratios, 1), At(times, 0.5), At(times, 0.99));
  return OkStatus();
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: answer_rate SERVER MODEL.onnx DEVICE [MODELS BLOCKS SECONDS]\n");
    return 2;
  }
  ag::Options options{.server = argv[1], .model = argv[2], .device = argv[3]};
  if (argc > 4) options.models = std::max(1, std::atoi(argv[4]));
  if (argc > 5) options.blocks = std::max(1, std::atoi(argv[5]));
  if (argc > 6) options.seconds = std::atof(argv[6]);
  const ag::Status measured = ag::Measure(options);
  if (measured.ok()) return 0;
  std::fprintf(stderr, "answer_rate: %s\n", ag::ToString(measured).c_str());
  return 1;
}
