// Many threads of control on one thread of the host, switched by hand: how the blocks of a kernel
// run where no GPU is. Not thread-safe; one set of fibers runs at a time in a thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/status.h"

namespace ag::cuda {

// Fibers 0..count-1 that may be started again and again on stacks that are kept.
class Fibers {
 public:
  Fibers();
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Starts `count` fibers that each call work(number) once. None runs yet. REQUIRES: those of an
  // earlier Start have all ended, or will not be resumed.
  void Start(int count, std::function<void(int)> work);
  // Runs fiber `number` until it yields or ends. REQUIRES: it has not ended.
  void Resume(int number);
  bool HasEnded(int number) const;
  // Called by the running fiber: back to who resumed it.
  void Yield();

 private:
  struct Fiber;
  static void Run(Fibers* fibers);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::function<void(int)> work_;
  int current_ = -1;
  void* caller_ = nullptr;  // Where Resume left off.
};

}  // namespace ag::cuda
