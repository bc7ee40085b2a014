"""What stands between workers and the coordinator: a line that is cut, and one that loses, repeats and delays."""

from __future__ import annotations

import queue
import random
import selectors
import signal
import socket
import threading
import time
from concurrent import futures
from typing import Any, Callable, Dict, Iterator, List, Optional

from cluster import PB, Cluster, Health, eventually, expect, grpc, products, undisturbed


class Line:
    """Forwards TCP connections to an address; while it is cut, bytes wait and nothing new gets through."""

    def __init__(self, to: str) -> None:
        host, port = to.rsplit(":", 1)
        self._to = (host, int(port))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ, None)
        self._cut = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def cut(self) -> None:
        """Stops both directions; the connections stay open, as when a cable is pulled."""
        self._cut.set()

    def mend(self) -> None:
        """Lets everything through again."""
        self._cut.clear()

    def close(self) -> None:
        """Ends all connections."""
        self._over = True
        self._thread.join()
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()

    def _run(self) -> None:
        while not self._over:
            if self._cut.is_set():
                time.sleep(0.01)
                continue
            for key, _ in self._selector.select(0.02):
                if self._cut.is_set():
                    break
                self._move(key)

    def _move(self, key: Any) -> None:
        if key.data is None:
            near, _ = self._listener.accept()
            try:
                far = socket.create_connection(self._to, timeout=2)
            except OSError:
                near.close()
                return
            self._selector.register(near, selectors.EVENT_READ, far)
            self._selector.register(far, selectors.EVENT_READ, near)
            return
        try:
            data = key.fileobj.recv(65536)
            if data:
                key.data.sendall(data)
                return
        except OSError:
            pass
        for one in (key.fileobj, key.data):
            try:
                self._selector.unregister(one)
            except (KeyError, ValueError):
                pass
            one.close()


def cut_for_less_and_more_than_a_lease() -> None:
    """The line of a worker that measures is cut, shortly and then for longer than its lease."""
    model = products()
    wanted = undisturbed(model)
    with Cluster("--worker-expiry", "4", workers=["near"]) as cluster:
        line = Line(cluster.address)
        cluster.start_worker("far", "--tick", "0.2", server=line.address)
        cluster.workers["near"].send_signal(signal.SIGTERM)
        cluster.workers["near"].wait()
        del cluster.workers["near"]
        expect(eventually(lambda: cluster.seen("near") is None), "near is still there")
        cluster.hold("far")
        job = cluster.submit(model)
        cluster.holder()
        attempt = cluster.seen("far").attempt
        line.cut()
        time.sleep(1)
        line.mend()
        time.sleep(0.5)
        expect(cluster.seen("far").attempt == attempt, "a short cut cost the lease")
        line.cut()
        cluster.release("far")  # It measures on its side of the cut.
        cluster.says("worker far is gone")
        expect(cluster.seen("far") is None, "it is still listed")
        cluster.start_worker("near")
        expect(cluster.succeeds(job).output_digest == wanted, "another output")
        line.mend()
        expect(
            eventually(lambda: cluster.health("far") == Health.SERVING, 30), "it does not come back"
        )
        line.close()


class Between:
    """Stands between a worker and the coordinator, and passes messages on as they are."""

    def __init__(self, to: str) -> None:
        self._channel = grpc.insecure_channel(to)
        self._server = grpc.server(futures.ThreadPoolExecutor(8))
        self._server.add_generic_rpc_handlers((self,))
        self.address = f"127.0.0.1:{self._server.add_insecure_port('127.0.0.1:0')}"
        self._server.start()

    def service(self, details: Any) -> Any:
        """Returns the handler of a method: every one is passed on as a stream of bytes."""
        method = self._channel.stream_stream(details.method)

        def handle(messages: Iterator[bytes], context: Any) -> Iterator[bytes]:
            stream = method(self.up(messages))
            context.add_callback(stream.cancel)
            yield from self.down(stream)

        return grpc.stream_stream_rpc_method_handler(handle)

    def up(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        """Returns what the coordinator gets of these."""
        return messages

    def down(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        """Returns what the worker gets of these."""
        return messages

    def close(self) -> None:
        """Ends all streams."""
        self._server.stop(0).wait()
        self._channel.close()


class Forger(Between):
    """Changes each result of a worker on its way to the coordinator."""

    def __init__(self, to: str, forge: Callable[[Any], None]) -> None:
        self._forge = forge
        super().__init__(to)

    def up(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        try:
            for message in messages:
                state = PB["worker"].WorkerState.FromString(message)
                for result in state.results:
                    self._forge(result)
                yield state.SerializeToString()
        except grpc.RpcError:
            pass  # The worker has left.


class Courier(Between):
    """Loses, repeats, delays and swaps messages, both ways."""

    def __init__(self, to: str, seed: int) -> None:
        self._random = random.Random(seed)
        self._lock = threading.Lock()
        self.counts: Dict[str, int] = {"lost": 0, "twice": 0, "late": 0, "old": 0}
        super().__init__(to)

    def up(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        return self._disturbed(messages)

    def down(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        return self._disturbed(messages)

    def _disturbed(self, messages: Iterator[bytes]) -> Iterator[bytes]:
        """Passes messages on; the first of a stream, which says who speaks, as it is."""
        passed: "queue.Queue[Optional[bytes]]" = queue.Queue()

        def read() -> None:
            try:
                for message in messages:
                    passed.put(message)
            except Exception:  # pylint: disable=broad-except
                pass  # The stream was ended, in one of gRPC's several ways.
            passed.put(None)

        threading.Thread(target=read, daemon=True).start()
        before: List[bytes] = []
        while (message := passed.get()) is not None:
            if not before:
                before.append(message)
                yield message
                continue
            what = self._draw()
            if what == "lost":
                continue
            if what == "late":
                time.sleep(0.05)
            yield message
            if what == "twice":
                yield message
            if what == "old":
                yield before[-1]
            before = [before[0], message]

    def _draw(self) -> str:
        with self._lock:
            what = self._random.choice(["lost", "twice", "late", "old", "as it is", "as it is"])
            if what in self.counts:
                self.counts[what] += 1
            return what


def lost_repeated_late_and_old_messages() -> None:
    """Messages between worker and coordinator are lost, repeated, delayed and followed by old ones."""
    model = products()
    wanted = undisturbed(model)
    # An old message takes an attempt away; where so many come, one item may lose more than three.
    with Cluster("--tick", "0.2", "--losses", "100", workers=["near"]) as cluster:
        courier = Courier(cluster.address, 7)
        cluster.start_worker("far", "--tick", "0.1", server=courier.address)
        cluster.workers["near"].send_signal(signal.SIGTERM)
        cluster.workers["near"].wait()
        del cluster.workers["near"]
        jobs = [cluster.submit(model, seed, skip_group_cache=True) for seed in range(1, 6)]
        results = [cluster.succeeds(job, 120) for job in jobs]
        expect({r.output_digest for r in results} == {wanted}, "other outputs")
        groups = {result.cache.misses for result in results}
        expect(len(groups) == 1, f"jobs that are alike counted other numbers of groups: {groups}")
        expect(min(courier.counts.values()) > 3, f"hardly anything was disturbed: {courier.counts}")
        expect(cluster.health("far") == Health.SERVING, "the worker was drained")
        courier.close()
