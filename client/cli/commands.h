// The command line: verbs, flags, help, suggestions. The one file that includes CLI11 is
// commands.cc.
#pragma once

namespace ag {

// Parses, runs the verb, returns the exit code.
int CliMain(int argc, char** argv);

}  // namespace ag
