// The command line of autograph-lab. Only commands.cc includes CLI11. One thread at a time.
#pragma once

namespace ag {

// Parses the arguments, runs the verb, and returns the exit code.
int LabMain(int argc, char** argv);

}  // namespace ag
