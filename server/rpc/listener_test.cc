#include "server/rpc/listener.h"

#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>

#include "base/file.h"
#include "base/mutex.h"
#include "base/testing/eventually.h"
#include "base/text.h"

namespace ag {
namespace {

using namespace std::chrono_literals;

// Keeps the connections as gRPC would.
class Keeper : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  void HandleNewConnection(NewConnectionParameters* p) override {
    MutexLock lock(mutex_);
    kept_.emplace_back(p->fd);
  }
  size_t size() {
    MutexLock lock(mutex_);
    return kept_.size();
  }
  void ReadAll() {
    MutexLock lock(mutex_);
    std::string bytes(1 << 20, 0);
    for (const Fd& fd : kept_) {
      while (::recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
      }
    }
  }
  void CloseAll() {
    MutexLock lock(mutex_);
    kept_.clear();
  }

 private:
  Mutex mutex_;
  std::vector<Fd> kept_ AG_GUARDED_BY(mutex_);
};

Fd ConnectTo(int port) {
  Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// True when the other side has closed the connection, or does so soon.
bool IsClosed(const Fd& fd) {
  const timeval patience{0, 300'000};
  ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  char byte = 0;
  const ssize_t got = ::recv(fd.get(), &byte, 1, 0);
  return got == 0 || (got < 0 && errno == ECONNRESET);
}

TEST(Listener, ConnectionsAreBoundedAndComeBack) {
  Keeper keeper;
  FloodGuard floods(RealClock(), 1 << 20);
  const auto listener = *Listener::Bind("127.0.0.1:0", {.in_all = 20, .per_host = 5}, floods);
  listener->Start(keeper);
  std::vector<Fd> clients;
  for (int i = 0; i < 5; ++i) clients.push_back(ConnectTo(listener->port()));
  EXPECT_TRUE(Eventually([&] { return keeper.size() == 5; }));
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(IsClosed(ConnectTo(listener->port()))) << "one host has its share";
  }
  EXPECT_FALSE(IsClosed(clients[0]));
  clients.clear();
  keeper.CloseAll();
  RealClock().SleepFor(150ms);
  const Fd late = ConnectTo(listener->port());
  EXPECT_TRUE(Eventually([&] { return keeper.size() == 1; })) << "the old ones still count";
}

TEST(Listener, WhoSendsMuchIsEndedWhileTheMemoryIsFull) {
  constexpr int64_t kMebibyte = 1 << 20;
  Keeper keeper;
  FloodGuard floods(RealClock(), 1 << 20);
  const std::string statm = *ReadFile("/proc/self/statm");
  const auto pages = Split(statm, ' ');
  const int64_t own = ::sysconf(_SC_PAGESIZE) * (*ParseInt(pages[1]) - *ParseInt(pages[2]));
  const auto listener =
      *Listener::Bind("127.0.0.1:0", {.memory_max = own + 64 * kMebibyte}, floods);
  listener->Start(keeper);
  const Fd sends = ConnectTo(listener->port()), waits = ConnectTo(listener->port());
  EXPECT_TRUE(Eventually([&] { return keeper.size() == 2; }));
  std::vector<char> filled(128 * kMebibyte, 1);
  EXPECT_TRUE(Eventually([&] {
    // Otherwise the socket is full before the listener has looked at it twice.
    keeper.ReadAll();
    const std::string bytes(32 << 10, 'x');
    return ::send(sends.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
           errno != EAGAIN;
  }));
  EXPECT_FALSE(IsClosed(waits));
  EXPECT_TRUE(IsClosed(ConnectTo(listener->port()))) << "nobody is accepted";
  std::vector<char>().swap(filled);
  RealClock().SleepFor(300ms);
  EXPECT_FALSE(IsClosed(ConnectTo(listener->port())));
}

TEST(Listener, WhoSendsMuchAndAsksNothingIsEnded) {
  Keeper keeper;
  FloodGuard floods(RealClock(), 1 << 20);
  const auto listener = *Listener::Bind("127.0.0.1:0", {}, floods);
  listener->Start(keeper);
  const Fd sends = ConnectTo(listener->port()), waits = ConnectTo(listener->port());
  EXPECT_TRUE(Eventually([&] { return keeper.size() == 2; }));
  EXPECT_TRUE(Eventually([&] {
    keeper.ReadAll();
    const std::string bytes(1 << 20, 'x');
    return ::send(sends.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
           errno != EAGAIN;
  }));
  EXPECT_FALSE(IsClosed(waits));
  EXPECT_FALSE(IsClosed(ConnectTo(listener->port()))) << "others are accepted";
}

TEST(Listener, TakesNothingOnceItIsStopped) {
  Keeper keeper;
  FloodGuard floods(RealClock(), 1 << 20);
  const auto listener = *Listener::Bind("127.0.0.1:0", {}, floods);
  listener->Start(keeper);
  const Fd client = ConnectTo(listener->port());
  EXPECT_TRUE(Eventually([&] { return keeper.size() == 1; }));
  listener->Stop();
  EXPECT_FALSE(IsClosed(client)) << "a connection stays";
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(listener->port()));
  const Fd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_NE(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
}

TEST(Listener, LeavesDescriptorsForTheRest) {
  EXPECT_EQ(ConnectionsFor(1024), 640);
  EXPECT_EQ(ConnectionsFor(100), 16);
  EXPECT_EQ(ConnectionsFor(1 << 20), 10'000);
}

}  // namespace
}  // namespace ag
