#!/usr/bin/env python3
"""Weak tests, found by mutants: seeded changes of one line that a test of their room must notice.

For each room the tool copies the tree to a scratch folder, puts `--count` mutants into the room's
sources, all at once, builds the room's test programs one time, and runs them once for each mutant
with AG_MUTANT=<number>. A mutant is killed when a test fails, crashes or does not end. It prints
the survivors; exit code 1 when a room kills less than `--share` of those that equivalent.txt does
not list.

  tests/mutants/mutants.py                          # all rooms, seed 1
  tests/mutants/mutants.py --room plan --seed 2     # one room
  tests/mutants/mutants.py --room plan --only 3,17  # these mutants of it alone
"""
import argparse
import concurrent.futures
import functools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from mutations import Maker, draw
from source import Source

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ROOMS = ["lab/generate", "device/cuda/codegen", "graph", "device/cpu", "plan"]
# A folder with a purpose of its own inside another one: what lies in it is judged by its tests only,
# and what lies outside is not.
SEPARATE = ["graph/onnx"]
# Programs that test a room beside its own ones, with their arguments.
FURTHER = {"device/cpu": [("device_conformance_test", ["--gtest_filter=*cpu*"])]}
SLOW_MS = 2000  # A test above this runs by itself, after the quick ones.
HEADER = """\
// Says whether a mutant is chosen. Written by tests/mutants/mutants.py.
#pragma once
#include <atomic>
#include <cstdlib>
#include <type_traits>

inline std::atomic<int> ag_mutant_chosen{-1};  // -1: not looked up yet.

inline bool AgMutant(int number) {
  int chosen = ag_mutant_chosen.load(std::memory_order_relaxed);
  if (chosen < 0) {
    const char* text = std::getenv("AG_MUTANT");
    chosen = text == nullptr ? 0 : std::atoi(text);
    ag_mutant_chosen.store(chosen, std::memory_order_relaxed);
  }
  return chosen == number;
}
"""


def say(text):
    print(text, flush=True)


def is_source(path, room):
    """Whether mutants of the room may be in the file: no test, no test support, no main file."""
    name = os.path.basename(path)
    return (path.startswith(room + "/") and path.endswith((".cc", ".h")) and
            not path.endswith(("_test.cc", "_main.cc")) and "testing" not in path and
            "_cases" not in name)


def read(path):
    with open(path, "rb") as file:
        return file.read()


class Copy:
    """A copy of the tree, some of its files replaced, with a build folder."""

    def __init__(self, folder):
        self.folder, self.build = folder, os.path.join(folder, "build")
        listed = subprocess.run(["git", "ls-files", "-coz", "--exclude-standard"], cwd=ROOT,
                                check=True, capture_output=True).stdout.decode()
        self.paths = [p for p in listed.split("\0") if p and os.path.isfile(os.path.join(ROOT, p))]

    def sync(self, changed):
        """Makes the copy's files those of the tree, but for `changed` (path: text)."""
        wanted = {path: text.encode() for path, text in changed.items()}
        for path in self.paths:
            wanted.setdefault(path, None)
        for path, data in wanted.items():
            target = os.path.join(self.folder, path)
            if data is None:
                data = read(os.path.join(ROOT, path))
            if os.path.exists(target) and read(target) == data:
                continue
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "wb") as file:
                file.write(data)
            if path in self.paths:
                shutil.copymode(os.path.join(ROOT, path), target)
        for folder, folders, names in os.walk(self.folder):
            folders[:] = [f for f in folders if os.path.join(folder, f) != self.build]
            for name in names:
                if os.path.relpath(os.path.join(folder, name), self.folder) not in wanted:
                    os.remove(os.path.join(folder, name))

    def configure(self):
        subprocess.run(["cmake", "--preset", "release"], cwd=self.folder, check=True,
                       stdout=subprocess.DEVNULL)

    def rooms(self):
        """The rooms of the build (cmake/room.cmake), once it is configured."""
        path = os.path.join(self.build, "rooms.txt")
        if not os.path.exists(path):
            return []
        with open(path, encoding="utf-8") as file:
            return [line.split(":")[0] for line in file if line.strip()]

    @functools.lru_cache(maxsize=None)
    def has_target(self, name):
        ask = ["ninja", "-C", self.build, "-t", "query", name]
        return subprocess.run(ask, capture_output=True, check=False).returncode == 0

    def make(self, targets, jobs):
        return subprocess.run(["ninja", "-C", self.build, "-k", "0", f"-j{jobs}", *targets],
                              capture_output=True, text=True, errors="replace", check=False)

    def flags(self, target):
        """The compiler's command for a source of the target, without its file."""
        with open(os.path.join(self.build, "compile_commands.json"), encoding="utf-8") as file:
            for entry in json.load(file):
                if f"CMakeFiles/{target}.dir/" in entry["command"]:
                    words = shlex.split(entry["command"])
                    return words[:words.index("-o")]
        raise SystemExit(f"mutants.py: the build has no sources of {target}")


def target_of(room):
    return room.replace("/", "_")


class RoomRun:
    """The mutants of one room: drawn, compiled, run."""

    def __init__(self, room, copy, options):
        self.room, self.copy, self.options = room, copy, options
        self.sources = {}
        makers = []
        for path in sorted(p for p in copy.paths if is_source(p, room)):
            text = read(os.path.join(ROOT, path)).decode()
            self.sources[path] = text
            makers.append(Maker(path, Source(text)))
        self.order = list(enumerate(draw(makers, options.seed), 1))
        self.bad = set()  # Numbers of mutants that do not compile.

    def chosen(self, spare=0):
        good = [(n, m) for n, m in self.order if n not in self.bad]
        return good[:self.options.count + spare]

    def changed(self, chosen):
        texts = {}
        for number, mutant in sorted(chosen, key=lambda item: -item[1].begin):
            text = texts.get(mutant.path, self.sources[mutant.path])
            code = mutant.code.replace("@", str(number))
            texts[mutant.path] = text[:mutant.begin] + code + text[mutant.end:]
        for path, text in texts.items():
            quiet = "#pragma GCC system_header\n" if path.endswith(".h") else ""
            texts[path] = f'{quiet}#include "ag_mutant.h"\n#line 1 "{path}"\n{text}'
        with open(os.path.join(ROOT, "CMakeLists.txt"), encoding="utf-8") as file:
            cmake = file.read()
        for room in self.copy.rooms():
            if (room + "/").startswith(self.room + "/"):
                name = "ag_" + target_of(room)
                # A mutant may warn; one that reads behind a vector must stop and not read on.
                cmake += (f"if(TARGET {name})\n  target_compile_options({name} PRIVATE -w "
                          f"-D_GLIBCXX_ASSERTIONS)\nendif()\n")
        return {**texts, "ag_mutant.h": HEADER, "CMakeLists.txt": cmake}

    def blame(self, output, chosen):
        """Adds to self.bad the mutants on lines that the compiler names; returns whether any."""
        for wanted in (r":\d+: (?:fatal )?error:", r":\d+: ", r":"):
            named = set(re.findall(rf"^\s*(?:In file included from )?(\S+?):(\d+){wanted}", output,
                                   re.MULTILINE))
            lines = {(os.path.relpath(os.path.join(self.copy.folder, p), self.copy.folder), int(n))
                     for p, n in named}
            found = set()
            for number, m in chosen:
                text = self.sources[m.path]
                first = text.count("\n", 0, m.begin) + 1
                last = text.count("\n", 0, m.end) + 1
                if any((m.path, line) in lines for line in range(first, last + 1)):
                    found.add(number)
            if found:
                self.bad |= found
                return True
        return False

    def check(self):
        """Drops what does not compile, file by file, until enough is left."""
        passed = set()  # Texts that compile.
        while True:
            chosen = self.chosen(spare=5)
            changed = self.changed(chosen)
            self.copy.sync(changed)
            dropped = False
            for path in sorted({m.path for _, m in chosen}):
                if changed[path] in passed:
                    continue
                result = self.syntax(path)
                if result.returncode == 0:
                    passed.add(changed[path])
                    continue
                dropped = True
                mine = [(n, m) for n, m in chosen if m.path == path]
                if not self.blame(result.stderr, mine):
                    self.bad |= {n for n, _ in mine}
            if not dropped:
                return

    def syntax(self, path):
        room = max((r for r in self.copy.rooms() if path.startswith(r + "/")), key=len)
        command = self.copy.flags("ag_" + target_of(room)) + ["-fsyntax-only", "-w"]
        if path.endswith(".h"):
            command += ["-x", "c++", "-include", path, "/dev/null"]
        else:
            command.append(path)
        command = [word for word in command if os.path.basename(word) != "ccache"]
        return subprocess.run(command, cwd=self.copy.folder, capture_output=True, text=True,
                              errors="replace", check=False)

    def programs_of(self, path):
        """Test programs that judge a mutant in the file: all of the folder, the nearest first."""
        def place(name):
            return max((f for f in [self.room, *SEPARATE] if (name + "/").startswith(f + "/")),
                       key=len, default=None)

        rooms = [r for r in self.copy.rooms() if place(r) == place(path) is not None]
        rooms.sort(key=lambda r: -len(os.path.commonprefix([r + "/", path])))
        names = [target_of(r) + "_test" for r in rooms]
        return [(n, []) for n in names if self.copy.has_target(n)] + FURTHER.get(self.room, [])

    def build(self):
        programs = sorted({name for _, m in self.chosen() for name, _ in self.programs_of(m.path)})
        while True:
            chosen = self.chosen()
            self.copy.sync(self.changed(chosen))
            self.copy.configure()
            result = self.copy.make(programs, self.options.build_jobs)
            if result.returncode == 0:
                return
            if not self.blame(result.stdout + result.stderr, chosen):
                raise SystemExit(f"mutants.py: {self.room} does not build:\n{result.stdout[-4000:]}")

    def run(self, program, arguments, number, limit):
        """(how it failed or None, its output) of one run; number 0 is the program as it is."""
        with tempfile.TemporaryDirectory(prefix="mutant") as scratch:
            environment = {**os.environ, "AG_MUTANT": str(number), "TMPDIR": scratch,
                           "XDG_CACHE_HOME": os.path.join(scratch, "cache")}
            # A mutant may allocate or write without end. -v and -f count KiB.
            limits = "ulimit -c 0 -v 16000000 -f 2000000; exec \"$0\" \"$@\""
            words = ["bash", "-c", limits, os.path.join(self.copy.build, program),
                     "--gtest_fail_fast", *arguments]
            process = subprocess.Popen(words, cwd=self.copy.folder, env=environment,
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            try:
                output = process.communicate(timeout=limit)[0].decode(errors="replace")
                code = process.returncode
            except subprocess.TimeoutExpired:
                output, code = "", None
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        if code == 0:
            return None, output
        failed = re.search(r"\[  FAILED  \] ([^\s,]+)", output)
        return "time" if code is None else failed.group(1) if failed else f"exit {code}", output

    def passes_of(self, program, arguments):
        """Runs the program as it is; returns its runs for a mutant, the quick tests first."""
        how, output = self.run(program, arguments, 0, 3600)
        if how is not None:
            raise SystemExit(f"mutants.py: {program} fails without a mutant: {how}")
        times = {name: int(ms) for name, ms in
                 re.findall(r"\[       OK \] (\S+?)(?:, where .*)? \((\d+) ms\)", output)}
        slow = sorted((n for n, ms in times.items() if ms > SLOW_MS), key=lambda n: times[n])
        say(f"  {program} takes {sum(times.values()) / 1000:.1f} s without a mutant, "
            f"{sum(times[n] for n in slow) / 1000:.1f} s of it in {len(slow)} slow tests")
        positive = arguments[0].split("=", 1)[1] if arguments else "*"
        quick_ms = sum(ms for n, ms in times.items() if n not in slow)
        runs = [(f"--gtest_filter={positive}-{':'.join(slow)}", quick_ms)]
        runs += [(f"--gtest_filter={name}", times[name]) for name in slow]
        return [(program, [argument], 5 * ms / 1000 + 20) for argument, ms in runs]

    def judge(self, item, passes):
        number, mutant = item
        for name, _ in self.programs_of(mutant.path):
            for program, arguments, limit in passes[name]:
                how, _ = self.run(program, arguments, number, limit)
                if how is not None:
                    return number, mutant, f"{program}: {how}"
        return number, mutant, None

    def judge_all(self):
        chosen = self.chosen()
        programs = {n: a for _, m in chosen for n, a in self.programs_of(m.path)}
        passes = {name: self.passes_of(name, programs[name]) for name in sorted(programs)}
        if self.options.only:
            chosen = [(n, m) for n, m in chosen if n in self.options.only]
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for number, mutant, how in pool.map(lambda item: self.judge(item, passes), chosen):
                if self.options.verbose or how is None:
                    say(f"  {number}: {'survived' if how is None else 'killed by ' + how}\n"
                        f"    {mutant.path}:{mutant.line + 1}\n"
                        f"    - {mutant.original}\n    + {mutant.mutated}")
                yield mutant, how


def equivalents():
    """The mutants that change nothing that a test could see, by content: equivalent.txt."""
    found, entry = {}, []
    with open(os.path.join(HERE, "equivalent.txt"), encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            mark = "file"
            if line.startswith("  "):
                mark, line = line[2], line[4:]
            if mark == "file":
                entry = [os.path.basename(line)]
            elif mark == "-":
                entry[1:] = [line]
            elif mark == "+":
                entry[2:] = [line]
            elif mark == "=":
                found[tuple(entry)] = line
            else:
                raise SystemExit(f"equivalent.txt:{number}: begins with none of - + =")
    return found


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--room", action="append", help="a folder; all five when there is none")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="mutants of a room")
    parser.add_argument("--share", type=float, default=0.9, help="what a room must kill")
    parser.add_argument("--jobs", type=int, default=2, help="test programs at a time")
    parser.add_argument("--build-jobs", type=int, default=os.cpu_count())
    parser.add_argument("--keep", help="a scratch folder that stays, for the next call")
    parser.add_argument("--only", type=lambda text: {int(n) for n in text.split(",")},
                        help="numbers of mutants to run")
    parser.add_argument("--list", action="store_true", help="prints mutants, builds nothing")
    parser.add_argument("--verbose", action="store_true", help="prints killed mutants too")
    return parser.parse_args()


def run_room(room, copy, options, known):
    """(row of the table, whether the room passes)"""
    begin = time.monotonic()
    say(f"{room}: seed {options.seed}")
    run = RoomRun(room, copy, options)
    copy.sync(run.changed(run.chosen()))
    copy.configure()
    run.check()
    run.build()
    say(f"  built in {time.monotonic() - begin:.0f} s; {len(run.bad)} did not compile")
    made = killed = equal = 0
    for mutant, how in run.judge_all():
        made += 1
        killed += how is not None
        if mutant.key() in known:
            equal += 1
            if how is not None:
                raise SystemExit(f"mutants.py: equivalent.txt is wrong: {how} kills\n"
                                 f"  {mutant.path}:{mutant.line + 1}\n  + {mutant.mutated}")
            say(f"    = {known[mutant.key()]}")
    judged = max(made - equal, 1)
    row = (f"{room:22}{made:6}{equal:12}{killed:8}{made - equal - killed:10}"
           f"{100 * killed / judged:7.1f} %")
    return row, killed >= options.share * judged


def main():
    options = parse_arguments()
    rooms = options.room or ROOMS
    scratch = options.keep or tempfile.mkdtemp(prefix="autograph-mutants-")
    try:
        copy = Copy(scratch)
        if options.list:
            for room in rooms:
                for number, m in RoomRun(room, copy, options).chosen():
                    say(f"{number}: {m.path}:{m.line + 1}\n  - {m.original}\n  + {m.mutated}")
            return 0
        known, rows, passed = equivalents(), [], True
        for room in rooms:
            row, is_good = run_room(room, copy, options, known)
            rows.append(row)
            passed = passed and is_good
            say(row)
        say(f"\n{'room':22}{'made':>6}{'equivalent':>12}{'killed':>8}{'survived':>10}   share")
        say("\n".join(rows))
        return 0 if passed else 1
    finally:
        if not options.keep:
            shutil.rmtree(scratch, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
