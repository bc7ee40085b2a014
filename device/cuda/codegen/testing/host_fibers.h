// Many threads of control on one thread of the host, switched by hand: they run the blocks of a
// kernel where no GPU is. One thread at a time, and one set of fibers runs at a time in a thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"

namespace ag::cuda {

// Fibers 0..count-1, which can be started again and again on stacks that are kept.
class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Starts `count` fibers that each call work(number) once; none runs yet. REQUIRES: the fibers of
  // an earlier Start have all ended, or will not be resumed.
  void Start(int count, std::function<void(int)> work);
  // Runs fiber `number` until it yields or ends. REQUIRES: it has not ended.
  void Resume(int number);
  bool HasEnded(int number) const;
  // Returns from the running fiber to the caller of Resume.
  void Yield();

 private:
  struct Fiber;
  static void Run(Fibers* fibers);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::function<void(int)> work_;
  int current_ = -1;
  void* caller_ = nullptr;  // The place where Resume continues.
};

}  // namespace ag::cuda
