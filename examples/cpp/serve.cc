// Serves a model from several threads and prints its largest outputs and the throughput.
//   serve MODEL.onnx [SESSIONS] [RUNS]
// Each thread has a session of its own, with its share of the cores; results must not differ.
#include <algorithm>
#include <autograph.hpp>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

namespace {

using Buffer = std::vector<float>;

// One thread's session with the memory that it reads and writes.
struct Server {
  autograph::Session session;
  std::vector<Buffer> in, out;
  autograph::Status status;

  explicit Server(autograph::Session made) : session(std::move(made)) {
    for (const auto& info : session.inputs()) in.emplace_back(info.elements(), 0.5f);
    for (const auto& info : session.outputs()) out.emplace_back(info.elements());
  }
  void Run(int runs) {
    const std::vector<autograph::Input> inputs(in.begin(), in.end());
    const std::vector<autograph::Output> outputs(out.begin(), out.end());
    for (int i = 0; i < runs && status.ok(); ++i) {
      status = session.Run(std::span(inputs), std::span(outputs));
    }
  }
};

void PrintTop(std::string_view name, const Buffer& values) {
  std::vector<size_t> order(values.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const size_t shown = std::min<size_t>(5, order.size());
  std::partial_sort(order.begin(), order.begin() + static_cast<ptrdiff_t>(shown), order.end(),
                    [&](size_t a, size_t b) { return values[a] > values[b]; });
  std::cout << name << ":\n";
  for (size_t i = 0; i < shown; ++i)
    std::cout << "  [" << order[i] << "] " << values[order[i]] << '\n';
}

int Fail(const autograph::Status& status) {
  std::cerr << "serve: " << status.message << '\n';
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: serve MODEL.onnx [SESSIONS] [RUNS]\n";
    return 2;
  }
  const int sessions = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1;
  const int runs = argc > 3 ? std::max(1, std::atoi(argv[3])) : 100;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()) / sessions);
  std::vector<Server> servers;
  for (int i = 0; i < sessions; ++i) {
    auto session = autograph::Session::Open(argv[1], {.device = "cpu:" + std::to_string(cores)});
    if (!session.ok()) return Fail(session.status());
    for (const std::string& warning : session->warnings())
      std::cerr << "serve: " << warning << '\n';
    for (const auto& info : session->inputs()) {
      if (info.dtype != AG_FLOAT32) return Fail({AG_UNIMPLEMENTED, "only float inputs are filled"});
    }
    servers.emplace_back(std::move(*session));
  }
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (Server& server : servers) threads.emplace_back([&server, runs] { server.Run(runs); });
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;

  for (const Server& server : servers) {
    if (!server.status.ok()) return Fail(server.status);
    if (server.out != servers[0].out) return Fail({AG_INTERNAL, "two sessions differ"});
  }
  const auto& outputs = servers[0].session.outputs();
  for (size_t i = 0; i < outputs.size(); ++i) PrintTop(outputs[i].name, servers[0].out[i]);
  std::cout << sessions << " sessions, " << sessions * runs / seconds.count() << " runs/s\n";
  return 0;
}
