"""Runs the tests of one program in several processes; one that crashes, hangs or loses the device costs itself only."""
import collections
import random
import re
import threading

CHUNK = 16
CHUNK_SECONDS = 90
LOST = "must be opened in a fresh process"  # As the device's errors say it.
LINE = re.compile(r"\[\s*(RUN|OK|FAILED|SKIPPED)\s*\] (\S+)")

# What one process did: its exit code, None where it was ended; what it printed; whether all time is up.
Chunk = collections.namedtuple("Chunk", "code text is_over")


def list_names(listing):
    """Full names in what --gtest_list_tests prints."""
    names, suite = [], ""
    for line in listing.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return names


def read(text):
    """(endings, the test that did not end): endings are of {name: (ending, message)}."""
    endings, running, message = {}, None, []
    for line in text.splitlines():
        found = LINE.match(line)
        if not found:
            message.append(line)
        elif found[1] == "RUN":
            running, message = found[2], []
        elif found[2].rstrip(",") == running:
            endings[running] = (found[1], " ".join(" ".join(message).split()))
            running = None
    return endings, running


class Cases:
    def __init__(self, run_chunk, names, jobs):
        """`run_chunk(names)` runs tests in one process and gives a Chunk."""
        self.run_chunk, self.jobs = run_chunk, jobs
        names = list(names)
        random.Random(1).shuffle(names)  # When the time is up, what ran is a sample of all.
        self.left = collections.deque(names[i:i + CHUNK] for i in range(0, len(names), CHUNK))
        self.lock = threading.Lock()
        self.passed, self.skipped, self.failed, self.not_run = 0, 0, {}, 0

    def run(self):
        threads = [threading.Thread(target=self.work) for _ in range(min(self.jobs, len(self.left)))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.not_run = sum(map(len, self.left))
        return {"passed": self.passed, "skipped": self.skipped, "failed": self.failed, "not_run": self.not_run}

    def work(self):
        while True:
            with self.lock:
                if not self.left:
                    return
                names = self.left.popleft()
            chunk = self.run_chunk(names)
            with self.lock:
                self.take(names, chunk)
            if chunk.is_over:
                return

    def take(self, names, chunk):
        endings, running = read(chunk.text)
        done = []
        for name in names:
            if name not in endings:
                continue
            ending, message = endings[name]
            done.append(name)
            self.passed += ending == "OK"
            self.skipped += ending == "SKIPPED"
            if ending == "FAILED":
                self.failed[name] = message[:600]
                if LOST in message:  # What came after it says nothing.
                    break
        rest = [name for name in names if name not in done]
        if chunk.is_over:
            pass  # What runs now, and what is left, did not run.
        elif running in rest:
            rest.remove(running)
            self.failed[running] = "did not end" if chunk.code is None else f"ended its process with code {chunk.code}"
        elif not done and rest:  # The process failed by itself, before any test.
            self.failed[rest.pop(0)] = chunk.text.strip()[-600:]
        elif chunk.code and done and not rest and not any(name in self.failed for name in names):
            errors = [line for line in chunk.text.splitlines() if line.startswith("=========")]
            self.failed[", ".join(done)] = " ".join(errors)[:600] or f"exit code {chunk.code}"  # A tool around it found something.
        if rest:
            self.left.append(rest)
