// The program autograph-lab: tools for people who write rules.
#include "lab/commands.h"

int main(int argc, char** argv) { return ag::LabMain(argc, argv); }
