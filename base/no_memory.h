// The end of a program to which the machine gives no memory, or no thread, any more. Thread-safe.
#pragma once

namespace ag {

// Makes exceptions that say so and that nobody catches end the program as EndWithoutMemory does,
// with its name and this exit code: std::bad_alloc, and std::system_error of a thread that could
// not start. REQUIRES: `program` lives as long as the program. Called by main.
void EndWithoutMemoryAs(const char* program, int code);

// Names what goes to standard output then; "": nothing. REQUIRES: `document` lives as long as the
// program.
void SetNoMemoryDocument(const char* document);

// Removes incomplete files (base/partial_files.h), writes "PROGRAM: no memory is left ..." to
// standard error, and ends the program. Allocates nothing.
[[noreturn]] void EndWithoutMemory();

}  // namespace ag
