#include "base/thread.h"

#include <system_error>

#include "base/file.h"

namespace ag {

StatusOr<std::thread> StartThread(std::function<void()> run) {
  try {
    return std::thread(std::move(run));
  } catch (const std::system_error& error) {
    return FromErrno(error.code().value(), "start a thread");
  }
}

}  // namespace ag
