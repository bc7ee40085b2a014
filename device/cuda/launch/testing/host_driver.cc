#include "device/cuda/launch/testing/host_driver.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <utility>

namespace ag::cuda {
namespace {

constexpr int64_t kGuardBytes = 256;  // Also the alignment.
constexpr uint8_t kGuard = 0xA5;
constexpr Nanos kKernelTime{1000};

template <class Ref, class Own>
Ref RefTo(Own* own) {
  return reinterpret_cast<Ref>(own);
}

// Removes the object of `ref` from the set.
template <class Own, class Ref>
void EraseRef(std::set<std::unique_ptr<Own>>* owners, Ref ref) {
  std::erase_if(*owners, [&](const auto& own) { return RefTo<Ref>(own.get()) == ref; });
}

}  // namespace

struct HostDriver::Allocation {
  std::unique_ptr<std::byte, void (*)(void*)> block{nullptr, std::free};
  int64_t bytes = 0;
};
struct HostDriver::FunctionInfo {
  std::string name;
  Function run;
};
struct HostDriver::Module {
  std::string image;
  std::map<std::string, std::unique_ptr<FunctionInfo>> functions;
};
struct HostDriver::Event {
  int recorded = 0, done = 0;  // A wait is for the number of records when it was sent.
  StreamRef stream{};          // Of the last record.
  Nanos at{0};
};
struct HostDriver::Node {
  NodeInfo info;
  std::function<Status()> run;
  std::vector<NodeEdge> from;
  int priority = 0;
};
struct HostDriver::Graph {
  std::vector<std::shared_ptr<Node>> nodes;
};
struct HostDriver::Work {
  std::function<Status()> run;
  std::shared_ptr<const Event> wait;  // Continues when the event is done `count` times.
  int count = 0;
  NodeInfo info;
};
struct HostDriver::Stream {
  std::deque<Work> queue;
  Graph* capturing = nullptr;
  std::vector<NodeEdge> last;  // The edges to the next captured node.
};

HostDriver::HostDriver(Options options) : options_(std::move(options)), random_(options_.seed) {}
HostDriver::~HostDriver() = default;

Status HostDriver::Count(const char* call) {
  if (calls_++ != options_.fail_at) return OkStatus();
  return Err(StatusCode::kInternal, "{}: made to fail", call);
}

int HostDriver::live() const {
  return static_cast<int>(memory_.size() + modules_.size() + events_.size() + graphs_.size() +
                          replays_.size() + streams_.size());
}

StatusOr<std::byte*> HostDriver::Allocate(int64_t bytes) {
  AG_TRY(Count("Allocate"));
  const int64_t whole = (bytes + kGuardBytes - 1) / kGuardBytes * kGuardBytes + 2 * kGuardBytes;
  auto allocation = std::make_unique<Allocation>();
  auto* block = static_cast<std::byte*>(std::aligned_alloc(kGuardBytes, whole));
  AG_CHECK(block != nullptr);
  std::memset(block, kGuard, whole);
  allocation->block.reset(block);
  allocation->bytes = bytes;
  std::byte* const memory = block + kGuardBytes;
  std::memset(memory, 0xFF, bytes);
  memory_[memory] = std::move(allocation);
  return memory;
}

// Sent work may still write to the memory.
void HostDriver::Free(std::byte* memory) {
  for (bool moved = true; std::exchange(moved, false);) {
    for (const auto& [ref, stream] : streams_) {
      const Status status = Step(*stream, &moved);
      if (error_.ok()) error_ = status;
    }
  }
  AG_CHECK(memory_.erase(memory) == 1);
}

Status HostDriver::CheckGuards() const {
  for (const auto& [memory, allocation] : memory_) {
    const auto is_guard = [](std::byte byte) { return byte == std::byte{kGuard}; };
    const std::byte* const end = memory + allocation->bytes;
    if (std::all_of(memory - kGuardBytes, memory, is_guard) &&
        std::all_of(end, end + kGuardBytes, is_guard)) {
      continue;
    }
    return Err(StatusCode::kDataLoss, "written beside an allocation of {} bytes",
               allocation->bytes);
  }
  return OkStatus();
}

// Sends work; while its stream is captured, it becomes a node.
Status HostDriver::Send(StreamRef ref, Work work) {
  Stream& stream = *streams_.at(ref);
  if (stream.capturing == nullptr) {
    stream.queue.push_back(std::move(work));
    return OkStatus();
  }
  auto node = std::make_shared<Node>();
  node->info = work.info;
  node->info.node = RefTo<NodeRef>(node.get());
  node->run = std::move(work.run);
  node->from = std::exchange(stream.last, {{node->info.node, false}});
  stream.capturing->nodes.push_back(std::move(node));
  return OkStatus();
}

Status HostDriver::Upload(std::byte* to, std::span<const std::byte> from, StreamRef stream) {
  AG_TRY(Count("Upload"));
  const auto copy = std::make_shared<std::vector<std::byte>>(from.begin(), from.end());
  return Send(stream, {.run =
                           [to, copy] {
                             std::ranges::copy(*copy, to);
                             return OkStatus();
                           },
                       .info = {.kind = NodeKind::kCopy}});
}

Status HostDriver::Download(std::span<std::byte> to, const std::byte* from, StreamRef stream) {
  AG_TRY(Count("Download"));
  return Send(stream, {.run =
                           [to, from] {
                             std::copy_n(from, to.size(), to.begin());
                             return OkStatus();
                           },
                       .info = {.kind = NodeKind::kCopy}});
}

Status HostDriver::Fill(std::byte* to, uint8_t value, int64_t bytes, StreamRef stream) {
  AG_TRY(Count("Fill"));
  return Send(stream, {.run =
                           [this, to, value, bytes] {
                             Keep(fmt::format("fill {}", bytes));
                             if (options_.fill_time) now_ += options_.fill_time(fills_);
                             ++fills_;
                             std::memset(to, value, bytes);
                             return OkStatus();
                           },
                       .info = {.kind = NodeKind::kFill}});
}

StatusOr<ModuleRef> HostDriver::LoadModule(std::string_view image) {
  AG_TRY(Count("LoadModule"));
  auto module = std::make_unique<Module>();
  module->image = image;
  return RefTo<ModuleRef>(modules_.insert(std::move(module)).first->get());
}

void HostDriver::UnloadModule(ModuleRef module) { EraseRef(&modules_, module); }

StatusOr<FunctionRef> HostDriver::FindFunction(ModuleRef ref, const std::string& name, uint32_t) {
  AG_TRY(Count("FindFunction"));
  auto* module = reinterpret_cast<Module*>(ref);
  auto info = std::make_unique<FunctionInfo>();
  if (!options_.find) return Err(StatusCode::kUnimplemented, "{}: no modules here", name);
  AG_LET(info->run, options_.find(module->image, name));
  info->name = name;
  std::unique_ptr<FunctionInfo>& kept = module->functions[name];
  if (kept == nullptr) kept = std::move(info);
  return RefTo<FunctionRef>(kept.get());
}

Status HostDriver::Launch(const KernelLaunch& launch, StreamRef stream) {
  AG_TRY(Count("Launch"));
  const auto* info = reinterpret_cast<const FunctionInfo*>(launch.function);
  const NodeInfo node{nullptr,     NodeKind::kKernel, info->name,
                      launch.grid, launch.block,      launch.shared_bytes};
  return Send(stream, {.run =
                           [this, info, launch] {
                             ++launches_;
                             Keep(info->name);
                             now_ += kKernelTime;
                             return info->run(launch);
                           },
                       .info = node});
}

StatusOr<StreamRef> HostDriver::MakeStream(int) {
  AG_TRY(Count("MakeStream"));
  auto stream = std::make_unique<Stream>();
  const auto ref = RefTo<StreamRef>(stream.get());
  streams_[ref] = std::move(stream);
  return ref;
}

void HostDriver::FreeStream(StreamRef stream) { AG_CHECK(streams_.erase(stream) == 1); }

Status HostDriver::Step(Stream& stream, bool* moved) {
  if (stream.queue.empty()) return OkStatus();
  if (const Work& work = stream.queue.front();
      work.wait != nullptr && work.wait->done < work.count) {
    return OkStatus();
  }
  const Work work = std::move(stream.queue.front());
  stream.queue.pop_front();
  *moved = true;
  return work.run ? work.run() : OkStatus();
}

// Work of other streams continues meanwhile, as far as chance decides.
Status HostDriver::Synchronize(StreamRef ref) {
  AG_TRY(Count("Synchronize"));
  Stream& wanted = *streams_.at(ref);
  std::vector<Stream*> all;
  for (const auto& [unused, stream] : streams_) all.push_back(stream.get());
  while (!wanted.queue.empty()) {
    bool moved = false;
    const size_t first = random_.Below(all.size());
    for (size_t i = 0; i < all.size() && !moved; ++i) {
      const Status status = Step(*all[(first + i) % all.size()], &moved);
      if (error_.ok()) error_ = status;
    }
    if (!moved) return Err(StatusCode::kInternal, "streams wait for each other");
  }
  return std::exchange(error_, OkStatus());
}

StatusOr<EventRef> HostDriver::MakeEvent() {
  AG_TRY(Count("MakeEvent"));
  const auto event = std::make_shared<Event>();
  const auto ref = RefTo<EventRef>(event.get());
  events_[ref] = event;
  return ref;
}

void HostDriver::FreeEvent(EventRef event) { AG_CHECK(events_.erase(event) == 1); }

Status HostDriver::Record(EventRef ref, StreamRef stream) {
  AG_TRY(Count("Record"));
  const std::shared_ptr<Event> event = events_.at(ref);
  ++event->recorded;
  event->stream = stream;
  return Send(stream, {.run =
                           [this, event] {
                             ++event->done;
                             event->at = ++now_;
                             return OkStatus();
                           },
                       .info = {.kind = NodeKind::kOther}});
}

Status HostDriver::Wait(StreamRef stream, EventRef ref) {
  AG_TRY(Count("Wait"));
  const std::shared_ptr<Event> event = events_.at(ref);
  return Send(stream,
              {.wait = event, .count = event->recorded, .info = {.kind = NodeKind::kOther}});
}

StatusOr<Nanos> HostDriver::Between(EventRef begin, EventRef end) {
  AG_TRY(Count("Between"));
  const auto* last = reinterpret_cast<Event*>(end);
  if (last->done < last->recorded) AG_TRY(Synchronize(last->stream));
  return last->at - reinterpret_cast<Event*>(begin)->at;
}

StatusOr<GraphRef> HostDriver::MakeGraph() {
  AG_TRY(Count("MakeGraph"));
  return RefTo<GraphRef>(graphs_.insert(std::make_unique<Graph>()).first->get());
}

void HostDriver::FreeGraph(GraphRef graph) { EraseRef(&graphs_, graph); }

Status HostDriver::BeginCapture(StreamRef ref, GraphRef graph, std::span<const NodeEdge> from) {
  AG_TRY(Count("BeginCapture"));
  Stream& stream = *streams_.at(ref);
  if (stream.capturing != nullptr) return Err(StatusCode::kInternal, "captured already");
  stream.capturing = reinterpret_cast<Graph*>(graph);
  stream.last.assign(from.begin(), from.end());
  return OkStatus();
}

StatusOr<std::vector<NodeRef>> HostDriver::EndCapture(StreamRef ref) {
  Stream& stream = *streams_.at(ref);
  if (stream.capturing == nullptr) return Err(StatusCode::kInternal, "not captured");
  stream.capturing = nullptr;  // Even when this call fails.
  AG_TRY(Count("EndCapture"));
  std::vector<NodeRef> ends;
  for (const NodeEdge& edge : stream.last) ends.push_back(edge.from);
  return ends;
}

StatusOr<std::vector<NodeRef>> HostDriver::Nodes(GraphRef graph) {
  AG_TRY(Count("Nodes"));
  std::vector<NodeRef> refs;
  for (const auto& node : reinterpret_cast<Graph*>(graph)->nodes) refs.push_back(node->info.node);
  return refs;
}

StatusOr<NodeInfo> HostDriver::Inspect(NodeRef node) {
  AG_TRY(Count("Inspect"));
  return reinterpret_cast<Node*>(node)->info;
}

Status HostDriver::SetPriority(NodeRef node, int priority) {
  AG_TRY(Count("SetPriority"));
  reinterpret_cast<Node*>(node)->priority = priority;
  return OkStatus();
}

StatusOr<ReplayRef> HostDriver::Instantiate(GraphRef graph) {
  AG_TRY(Count("Instantiate"));
  const auto copy = std::make_shared<Graph>(*reinterpret_cast<Graph*>(graph));
  log_.clear();
  for (const auto& node : copy->nodes) {
    std::string line = fmt::format("{}{}", node->info.function, node->priority > 0 ? "!" : "");
    for (const NodeEdge& edge : node->from) {
      line += fmt::format(" {}{}", edge.is_early ? "~" : "<",
                          reinterpret_cast<Node*>(edge.from)->info.function);
    }
    log_.push_back(line);
  }
  const auto ref = RefTo<ReplayRef>(copy.get());
  replays_[ref] = copy;
  return ref;
}

void HostDriver::FreeReplay(ReplayRef replay) { AG_CHECK(replays_.erase(replay) == 1); }

Status HostDriver::Prepare(ReplayRef, StreamRef) { return Count("Prepare"); }

Status HostDriver::Replay(ReplayRef ref, StreamRef stream) {
  AG_TRY(Count("Replay"));
  const std::shared_ptr<const Graph> graph = replays_.at(ref);
  return Send(stream, {.run = [this, graph] { return RunNodes(*graph); }, .info = {}});
}

Status HostDriver::RunNodes(const Graph& graph) {
  std::vector<const Node*> left;
  for (const auto& node : graph.nodes) left.push_back(node.get());
  std::set<NodeRef> done;
  while (!left.empty()) {
    std::vector<size_t> ready;
    for (size_t i = 0; i < left.size(); ++i) {
      const bool is_ready = std::ranges::all_of(
          left[i]->from, [&](const NodeEdge& edge) { return done.contains(edge.from); });
      if (is_ready) ready.push_back(i);
    }
    AG_CHECK(!ready.empty());
    const size_t next = ready[random_.Below(ready.size())];
    AG_TRY(left[next]->run());
    const bool is_early =
        std::ranges::any_of(left[next]->from, [](const NodeEdge& edge) { return edge.is_early; });
    if (is_early) now_ -= options_.early_gain;
    done.insert(left[next]->info.node);
    left.erase(left.begin() + static_cast<int64_t>(next));
  }
  return OkStatus();
}

}  // namespace ag::cuda
