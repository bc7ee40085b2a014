// oneDNN's parallel regions on our own threads. Debian's oneDNN is built for OpenMP, and libgomp
// waits for its threads whether they run or not; its wait policy is fixed when it is loaded.
#pragma once

namespace ag::cpu {

// Redirects oneDNN's five calls of OpenMP (GOMP_parallel and the queries inside it) to Team, in
// oneDNN's own table of imports, so no other user of OpenMP changes. A thread without a team
// (another user of oneDNN) still reaches libgomp. Returns false, with nothing changed, where the
// calls are not found. Takes effect once for the process. Thread-safe before the first primitive.
bool RunOneDnnOnTeams();

}  // namespace ag::cpu
