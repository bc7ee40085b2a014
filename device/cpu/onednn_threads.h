// oneDNN's parallel regions on our own threads. Debian's oneDNN is built for OpenMP, and libgomp
// waits for its threads whether they run or not; how long is settled when it is loaded.
#pragma once

namespace ag::cpu {

// Points oneDNN's five calls of OpenMP (GOMP_parallel and what is asked inside) at Team, in that
// library's own table of imports: nobody else's OpenMP changes. Where the calling thread has no
// team (somebody else's use of oneDNN), they go on to libgomp. False, and nothing changed, where
// the calls are not found. Once for the process; thread-safe before the first primitive.
bool RunOneDnnOnTeams();

}  // namespace ag::cpu
