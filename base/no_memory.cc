#include "base/no_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>

#include "base/partial_files.h"

namespace ag {
namespace {

std::atomic<const char*> program_name{""}, last_document{""};
std::atomic<int> exit_code{1};
std::terminate_handler terminate_before = nullptr;

// A descriptor that takes nothing cannot be told.
void WriteText(int fd, const char* text) { (void)!::write(fd, text, std::strlen(text)); }

bool IsWant(const std::error_code& code) {
  return code == std::errc::resource_unavailable_try_again || code == std::errc::not_enough_memory;
}

[[noreturn]] void TerminateOrSay() {
  if (const std::exception_ptr thrown = std::current_exception(); thrown != nullptr) {
    try {
      std::rethrow_exception(thrown);
    } catch (const std::bad_alloc&) {
      EndWithoutMemory();
    } catch (const std::system_error& error) {
      if (IsWant(error.code())) EndWithoutMemory();
    } catch (...) {  // Said below.
    }
  }
  terminate_before();
  std::abort();
}

}  // namespace

void EndWithoutMemoryAs(const char* program, int code) {
  program_name = program;
  exit_code = code;
  if (terminate_before == nullptr) terminate_before = std::set_terminate(TerminateOrSay);
}

void SetNoMemoryDocument(const char* document) { last_document = document; }

void EndWithoutMemory() {
  RemovePartialFiles();
  WriteText(STDERR_FILENO, program_name);
  WriteText(
      STDERR_FILENO,
      ": no memory is left, or no thread: look at ulimit -v and -u, and at what else runs here\n");
  WriteText(STDOUT_FILENO, last_document);
  ::_exit(exit_code);  // No destructors: they may want memory.
}

}  // namespace ag
