// The time of the service's answer to a request that it has answered before: only the Optimize
// call, over a socket, without upload and download.
//   repeated_request SERVER MODEL.onnx DEVICE [REPEATS]          (21)
// The first request runs with small budgets; the others must be answered from the cache. Prints the
// median and the range; exits with 1 when an answer was not from the cache.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "base/clock.h"
#include "client/cpp/client.h"

namespace ag {
namespace {

namespace v1 = autograph::v1;

StatusOr<std::vector<double>> CallMs(const std::string& server, const std::string& model,
                                     const std::string& device, int repeats) {
  const std::unique_ptr<Client> client = *Client::Connect(server, {});
  v1::OptimizeRequest request;
  AG_LET(const Digest digest, client->UploadFile(model));
  request.set_model_digest(digest.Hex());
  request.set_device(device);
  request.mutable_budget()->set_rounds(1);
  request.mutable_budget()->set_expansions(2);
  AG_LET(v1::Job done, client->Optimize(request));
  if (done.state() < v1::Job::SUCCEEDED) {
    AG_LET(done, client->Watch(done.name(), [](const v1::Job&) { return true; }));
  }
  if (done.state() != v1::Job::SUCCEEDED) {
    return Err(StatusCode::kInternal, "the first request: {}", done.error().message());
  }
  std::vector<double> times;
  for (int i = 0; i < repeats; ++i) {
    const Nanos begin = RealClock().Now();
    AG_LET(const v1::Job job, client->Optimize(request));
    times.push_back(static_cast<double>((RealClock().Now() - begin).count()) / 1e6);
    if (!job.result().cache().model_hit()) {
      return Err(StatusCode::kInternal, "request {} was not answered from the cache", i + 2);
    }
  }
  return times;
}

}  // namespace
}  // namespace ag

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: repeated_request SERVER MODEL.onnx DEVICE [REPEATS]\n");
    return 2;
  }
  auto times = ag::CallMs(argv[1], argv[2], argv[3], argc > 4 ? std::atoi(argv[4]) : 21);
  if (!times.ok()) {
    std::fprintf(stderr, "repeated_request: %s\n", ag::Message(times.status()).c_str());
    return 1;
  }
  std::sort(times->begin(), times->end());
  std::printf("%.2f ms (%.2f to %.2f, %zu calls)\n", (*times)[times->size() / 2], times->front(),
              times->back(), times->size());
}
