// The command line: verbs, flags, help, suggestions. Misspelt verbs and flags produce an error with
// a suggestion. Only commands.cc includes CLI11. One thread at a time.
#pragma once

namespace ag {

// Parses the arguments, runs the verb, and returns the exit code.
int CliMain(int argc, char** argv);

}  // namespace ag
