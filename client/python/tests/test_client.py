"""The synchronous client against a live service."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path
from typing import Any, Callable, List

import autograph
from autograph import Client, Retry, State
from service import DEVICE, LONG, Service, stop

QUICK = Retry(seconds=0.3, watch_seconds=0.3)


class ClientTest(unittest.TestCase):
    """One service for all of its tests."""

    service: Service
    client: Client

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()
        cls.client = Client(cls.service.address)

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.service.close()

    def count_uploads(self) -> List[int]:
        """Returns a list that grows with every upload of the client until the test ends."""
        uploads: List[int] = []
        stub: Any = self.client._blobs
        real = stub.Upload

        def counted(messages: Any, metadata: Any) -> Any:
            uploads.append(1)
            return real(messages, metadata=metadata)

        stub.Upload = counted
        self.addCleanup(setattr, stub, "Upload", real)
        return uploads

    def test_a_model_is_made_faster_once_and_remembered(self) -> None:
        uploads, model = self.count_uploads(), self.service.zoo("tiny_inception")
        self.assertIsNone(self.client.cached(model, device=DEVICE))
        self.assertEqual(len(uploads), 0)
        seen: List[autograph.Job] = []
        result = self.client.optimize(model, device=DEVICE, on_progress=seen.append)
        self.assertEqual(len(uploads), 1)
        self.assertEqual(seen[-1].state, State.SUCCEEDED)
        self.assertEqual([j.version for j in seen], sorted({j.version for j in seen}))
        self.check_result(result)

        again = self.client.optimize(model, device=DEVICE)
        self.assertTrue(again.cached)
        self.assertEqual(again.onnx, result.onnx)
        looked_up = self.client.cached(model.read_bytes(), device=DEVICE)
        self.assertIsNotNone(looked_up)
        self.assertEqual(looked_up and looked_up.onnx, result.onnx)
        self.assertEqual(len(uploads), 1, "the server had the model")
        self.assertIsNone(self.client.cached(model, device=DEVICE, seed=99))
        fresh = self.client.optimize(model, device=DEVICE, no_cache=True)
        self.assertFalse(fresh.cached)

    def check_result(self, result: autograph.Result) -> None:
        """Checks that the result equals the command line's for the same job."""
        shown = self.service.at("jobs", "show", result.job)["result"]
        self.assertEqual(hashlib.sha256(result.onnx).hexdigest(), shown["output_digest"])
        self.assertEqual(result.report.result.output_digest, shown["output_digest"])
        self.assertEqual(result.verdict, "FASTER")
        self.assertTrue(result.faster)
        self.assertGreater(result.speedup, 1.05)
        self.assertEqual(result.verdict, shown["verdict"])
        self.assertAlmostEqual(result.speedup, shown["speedup"])
        low, high = result.speedup_interval
        self.assertLessEqual(low, result.speedup)
        self.assertLessEqual(result.speedup, high)
        self.assertEqual(result.device, DEVICE)
        self.assertEqual(result.report.result.simulated, True)
        self.assertAlmostEqual(
            result.report.result.input_latency.median_ns, shown["input_latency"]["median_ns"]
        )
        self.assertEqual(
            [[r.rule, r.count] for r in result.report.result.clean_up],
            [[r["rule"], r["count"]] for r in shown["clean_up"]],
        )
        self.assertEqual([e.output for e in result.errors], ["logits"])
        self.assertLess(result.errors[0].max_rel, 1e-3)
        self.assertEqual(result.report.result.rounds, shown["rounds"])
        self.assertGreater(len(result.report.output_plan), 0)
        self.assertGreater(len(result.report.output_kernels), 0)
        measured = result.report.output_kernels[0].measurement
        self.assertGreater(measured.latency.median_ns, 0)
        self.assertRegex(
            repr(result),
            r"^<autograph\.Result FASTER \d\.\d{3}x \(\d\.\d{3} to \d\.\d{3}\) over AutoGraph, untuned: "
            r"tiny_inception\.onnx on sim:small, simulated>$",
        )
        path = result.save(self.service.folder / "saved.onnx")
        self.assertEqual(path.read_bytes(), result.onnx)
        self.assertEqual(list(path.parent.glob(".saved*")), [])

    def test_what_is_wrong_is_said(self) -> None:
        model = self.service.zoo("tiny_cnn")
        missing = self.service.folder / "missing.onnx"
        cases: List[Any] = [
            ("no model", b"\x07not a model", {}, autograph.InvalidArgument, "not ONNX"),
            ("empty", b"", {}, autograph.InvalidArgument, "empty"),
            ("beyond one message", b"\x07" * (2 << 20 | 1), {}, autograph.InvalidArgument, "ONNX"),
            ("no file", missing, {}, autograph.NotFound, f"read {missing}: there is no such file"),
            ("a folder", missing.parent, {}, autograph.InvalidArgument, "Is a directory"),
            ("number", model, {"rounds": -1}, autograph.InvalidArgument, "budget.rounds: -1"),
            ("type", model, {"rounds": "two"}, autograph.InvalidArgument, "rounds: 'two'"),
            ("range", model, {"seed": -1}, autograph.InvalidArgument, "seed: -1"),
            ("rule", model, {"without": ["no"]}, autograph.InvalidArgument, "no rule is called no"),
            ("string", model, {"without": "no"}, autograph.InvalidArgument, "not one string"),
            ("later", model, {"precision": "fp16"}, autograph.Unimplemented, "fp16"),
            ("word", model, {"target": "x"}, autograph.InvalidArgument, "none of device, portable"),
            ("shape", model, {"shapes": {"y": [1]}}, autograph.InvalidArgument, "y"),
            ("name", model, {"round": 1}, TypeError, "there is no option 'round'"),
            ("thing", 3, {}, TypeError, "a model is a path or bytes, not int"),
        ]
        for name, what, options, kind, message in cases:
            with self.subTest(name), self.assertRaises(kind) as caught:
                self.client.optimize(what, **{"device": DEVICE, **options})
            self.assertIn(message, str(caught.exception), name)

    def test_a_failed_job_is_named(self) -> None:
        with self.assertRaises(autograph.InvalidArgument) as caught:
            self.client.optimize(b"\x07 nor is this", device=DEVICE)
        error = caught.exception
        self.assertIsInstance(error, ValueError)
        self.assertEqual(error.code, autograph.Code.INVALID_ARGUMENT)
        job = self.client.job(error.job)
        self.assertEqual((job.state, job.done), (State.FAILED, True))
        self.assertEqual(job.error and job.error.message, error.message)
        for unknown in ("jobs/999999", "nonsense"):
            with self.assertRaises(autograph.NotFound) as missing:
                self.client.job(unknown)
            self.assertEqual(missing.exception.reason, "JOB_MISSING")
            self.assertIsNone(missing.exception.retry_after)
            with self.assertRaises(autograph.NotFound):
                self.client.result(unknown)

    def test_a_request_id_names_one_job(self) -> None:
        model = self.service.zoo("tiny_resnet")
        first = self.client.submit(model, request_id="release-7", device=DEVICE, rounds=1)
        again = self.client.submit(model, request_id="release-7", device=DEVICE, rounds=1)
        self.assertEqual(first.name, again.name)
        with self.assertRaisesRegex(autograph.InvalidArgument, "was used before"):
            self.client.submit(model, request_id="release-7", device=DEVICE, rounds=2)
        self.assertEqual(self.client.result(first.name).job, first.name)

    def test_jobs_are_listed_in_pages(self) -> None:
        model = self.service.zoo("tiny_cnn")
        for seed in (1, 2, 3):
            self.client.optimize(model, device=DEVICE, rounds=1, seed=seed)
        names = [job.name for job in self.client.list(page_size=2)]
        self.assertEqual(names, [job.name for job in self.client.list()])
        self.assertGreaterEqual(len(set(names)), 3)
        good = list(self.client.list(state=State.SUCCEEDED, page_size=1))
        self.assertGreaterEqual(len(good), 3)
        self.assertEqual({job.state for job in good}, {State.SUCCEEDED})

    def test_jobs_are_listed_by_what_they_are_for(self) -> None:
        mine, other = self.service.zoo("tiny_cnn"), self.service.zoo("tiny_resnet")
        begin = time.time()
        done = [self.client.optimize(m, device=DEVICE, rounds=1, seed=11) for m in (mine, other)]
        names = [job.name for job in self.client.list(model=mine, since=begin - 1, page_size=1)]
        self.assertEqual(names, [done[0].job])
        self.assertEqual(list(self.client.list(model=mine.read_bytes(), device="cpu")), [])
        self.assertIn(done[1].job, [job.name for job in self.client.list(device=DEVICE)])
        self.assertEqual(list(self.client.list(since=begin + 3600)), [])

    def test_remembered_graphs_are_listed_and_fetched(self) -> None:
        model = self.service.zoo("tiny_cnn")
        result = self.client.optimize(model, device=DEVICE, rounds=1, seed=12)
        known = list(self.client.graphs(model, device=DEVICE, page_size=1))
        self.assertIn(result.onnx, [self.client.download(graph.output_digest) for graph in known])
        self.assertEqual({graph.device for graph in known}, {DEVICE})
        self.assertEqual({graph.verdict for graph in known} - {"FASTER", "NO_GAIN_FOUND"}, set())
        self.assertEqual(list(self.client.graphs(model, device="cpu")), [])
        self.assertGreaterEqual(len(list(self.client.graphs())), len(known))

    def test_a_closed_client_says_so(self) -> None:
        with Client(self.service.address) as client:
            self.assertEqual(client.capabilities().devices, (DEVICE,))
        with self.assertRaisesRegex(autograph.FailedPrecondition, "this client was closed"):
            client.capabilities()

    def test_no_server_is_named(self) -> None:
        with self.assertRaisesRegex(autograph.InvalidArgument, "set AUTOGRAPH_SERVER"):
            Client()

    def test_other_code_of_these_protos_does_no_harm(self) -> None:
        other = (
            "from google.protobuf import descriptor_pb2, descriptor_pool\n"
            "file = descriptor_pb2.FileDescriptorProto(name='autograph/v1/optimizer.proto',"
            " package='autograph.v1')\n"
            "file.message_type.add(name='Job').field.add(name='other', number=1, type=5, label=1)\n"
            "descriptor_pool.Default().Add(file)\n"
            "import autograph\n"
            f"print(autograph.Client('{self.service.address}').capabilities().devices)\n"
        )
        done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True)
        self.assertIn(DEVICE, done.stdout, done.stderr)


class LongJobTest(unittest.TestCase):
    """Jobs that are cancelled, left or interrupted; each test ends its own job."""

    service: Service
    client: Client
    model: Path

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()
        cls.client = Client(cls.service.address)
        cls.model = cls.service.zoo("tiny_nasnet")

    @classmethod
    def tearDownClass(cls) -> None:
        cls.client.close()
        cls.service.close()

    def test_a_cancelled_job_keeps_its_best(self) -> None:
        job = self.client.submit(self.model, seed=11, **LONG)
        for seen in self.client.watch(job):
            if seen.progress.best_speedup > 1.5:
                self.client.cancel(job)
        result = self.client.result(job, timeout=30)
        self.assertTrue(result.cancelled)
        self.assertGreater(result.speedup, 1.5)
        self.assertEqual(self.client.cancel(job).state, State.CANCELLED)

    def test_the_best_so_far_is_returned_and_the_job_goes_on(self) -> None:
        job = self.client.submit(self.model, seed=17, **LONG)
        for seen in self.client.watch(job):
            if seen.progress.best_speedup > 1.5:
                break
        best = self.client.best_so_far(job, timeout=60)
        self.assertGreater(best.speedup, 1.5)
        self.assertFalse(best.cancelled)
        self.assertFalse(self.client.job(job.name).done)
        self.client.cancel(job)
        end = self.client.result(job, timeout=30)
        again = self.client.best_so_far(job)
        self.assertEqual(again.onnx, end.onnx)

    def test_nothing_verified_is_an_error(self) -> None:
        stop(self.service.worker.pid)
        try:
            job = self.client.submit(self.model, seed=12, **LONG)
            self.client.cancel(job.name)
            with self.assertRaises(autograph.Cancelled) as caught:
                self.client.result(job, timeout=30)
            self.assertEqual(caught.exception.job, job.name)
        finally:
            os.kill(self.service.worker.pid, signal.SIGCONT)

    def test_a_timeout_leaves_the_job(self) -> None:
        job = self.client.submit(self.model, seed=13, **LONG)
        began = time.monotonic()
        with self.assertRaises(TimeoutError) as caught:
            self.client.result(job, timeout=0.5)
        self.assertLess(time.monotonic() - began, 5)
        self.assertIn(f"{job.name}: still ", str(caught.exception))
        self.assertFalse(self.client.job(job.name).done)
        self.client.cancel(job)

    def test_ctrl_c_leaves_the_job_and_names_it(self) -> None:
        script = (
            "import autograph, sys\n"
            f"client = autograph.Client({self.service.address!r})\n"
            f"job = client.submit({str(self.model)!r}, seed=14, **{LONG!r})\n"
            "print(job.name, flush=True)\n"
            "client.result(job)\n"
        )
        words = [sys.executable, "-c", script]
        with subprocess.Popen(words, stdout=-1, stderr=-1, text=True) as child:
            assert child.stdout is not None
            job = child.stdout.readline().strip()
            time.sleep(0.3)
            child.send_signal(signal.SIGINT)
            _, err = child.communicate(timeout=20)
        self.assertIn(f"KeyboardInterrupt: {job} goes on at {self.service.address}", err)
        self.assertFalse(self.client.job(job).done)
        self.client.cancel(job)


class FaultTest(unittest.TestCase):
    """Servers that are missing or that restart late."""

    def test_a_dead_server_is_said_soon(self) -> None:
        began = time.monotonic()
        with Client("127.0.0.1:1", retry=QUICK) as client:
            calls: List[Callable[[], object]] = [
                client.capabilities,
                lambda: client.submit(b"x"),
                lambda: client.result("1"),
            ]
            for call in calls:
                with self.assertRaises(autograph.Unavailable) as caught:
                    call()
                self.assertIsInstance(caught.exception, ConnectionError)
                said = "no server at 127.0.0.1:1: is autographd running?"
                self.assertIn(said, str(caught.exception))
        self.assertLess(time.monotonic() - began, 5)

    def test_no_worker_of_the_device(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        with Client(service.address, retry=QUICK) as client:
            with self.assertRaisesRegex(autograph.Unavailable, "no worker offers device sim:h200"):
                client.submit(service.zoo("tiny_cnn"), device="sim:h200")

    def test_a_model_that_is_too_large_is_refused(self) -> None:
        service = Service(coordinator_flags=["--model-bytes-max", "1000"])
        self.addCleanup(service.close)
        with Client(service.address, retry=QUICK) as client:
            with self.assertRaises(autograph.ResourceExhausted):
                client.submit(b"\x07" * (3 << 20), device=DEVICE)
            self.assertEqual(client.capabilities().model_bytes_max, 1000)

    def test_a_server_that_hangs_is_left(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        assert service.coordinator is not None
        with Client(service.address, timeout=0.3) as client:
            client.capabilities()
            stop(service.coordinator.pid)
            began = time.monotonic()
            with self.assertRaises(autograph.DeadlineExceeded):
                client.capabilities()
            self.assertLess(time.monotonic() - began, 3)

    def test_a_watch_lives_through_a_crash(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        with Client(service.address) as client:
            job = client.submit(service.zoo("tiny_nasnet"), **LONG)
            killed = False
            for seen in client.watch(job, timeout=60):
                if seen.state is State.SEARCHING and not killed:
                    killed = True
                    service.kill_coordinator()
                    service.start_coordinator(delay=1.0)
                if seen.resumed == 1 and seen.progress.best_speedup > 1.5:
                    client.cancel(job)
            self.assertEqual((seen.resumed, seen.state), (1, State.CANCELLED))
            self.assertTrue(client.result(job).faster)

    def test_a_call_waits_for_a_server_that_comes_back(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        with Client(service.address) as client:
            service.kill_coordinator()
            service.start_coordinator(delay=0.5)
            self.assertIn(".", client.capabilities().version)


if __name__ == "__main__":
    unittest.main()
