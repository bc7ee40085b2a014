"""The client for asyncio against a live service."""

from __future__ import annotations

import asyncio
import inspect
import time
import unittest
from typing import Any, Callable, List

import autograph
from autograph import AsyncClient, Client, Retry, State
from service import DEVICE, LONG, Service


class AsyncClientTest(unittest.IsolatedAsyncioTestCase):
    """One service for all of its tests, one client for each."""

    service: Service

    @classmethod
    def setUpClass(cls) -> None:
        cls.service = Service()

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()

    async def asyncSetUp(self) -> None:
        # Starting a service blocks the loop on purpose.
        asyncio.get_running_loop().slow_callback_duration = 60
        self.client = AsyncClient(self.service.address)

    async def asyncTearDown(self) -> None:
        await self.client.close()

    async def test_models_are_made_faster_side_by_side(self) -> None:
        paths = [self.service.zoo(name) for name in ("tiny_inception", "tiny_cnn")]
        self.assertIsNone(await self.client.cached(paths[0], device=DEVICE))
        seen: List[autograph.Job] = []
        inception, cnn = await asyncio.gather(
            self.client.optimize(paths[0], device=DEVICE, on_progress=seen.append),
            self.client.optimize(paths[1].read_bytes(), device=DEVICE),
        )
        self.assertEqual(seen[-1].state, State.SUCCEEDED)
        self.assertTrue(inception.faster)
        self.assertNotEqual(inception.onnx, cnn.onnx)
        again = await self.client.cached(paths[0], device=DEVICE)
        self.assertEqual(again and again.onnx, inception.onnx)
        self.assertEqual((await self.client.capabilities()).devices, (DEVICE,))
        names = [job.name async for job in self.client.list(page_size=1)]
        self.assertGreaterEqual(len(names), 3)
        mine = [job.name async for job in self.client.list(model=paths[0], device=DEVICE)]
        self.assertIn(inception.job, mine)
        graphs = [graph async for graph in self.client.graphs(paths[0])]
        self.assertEqual([graph.device for graph in graphs], [DEVICE])

    async def test_what_is_wrong_is_said(self) -> None:
        cases: List[Any] = [
            ("no model", b"\x07" * (1 << 20 | 1), {}, autograph.InvalidArgument, "ONNX"),
            ("no file", "missing.onnx", {}, autograph.NotFound, "read missing.onnx"),
            ("number", b"x", {"rounds": -1}, autograph.InvalidArgument, "budget.rounds: -1"),
            ("name", b"x", {"round": 1}, TypeError, "there is no option 'round'"),
        ]
        for name, what, options, kind, message in cases:
            with self.subTest(name), self.assertRaises(kind) as caught:
                await self.client.optimize(what, **{"device": DEVICE, **options})
            self.assertIn(message, str(caught.exception), name)
        with self.assertRaises(autograph.NotFound):
            await self.client.job("jobs/999999")

    async def test_a_dead_server_is_said_soon(self) -> None:
        began = time.monotonic()
        retry = Retry(seconds=0.3, watch_seconds=0.3)
        async with AsyncClient("127.0.0.1:1", retry=retry) as client:
            with self.assertRaisesRegex(autograph.Unavailable, "is autographd running"):
                await client.submit(b"x")
            with self.assertRaisesRegex(autograph.Unavailable, "is autographd running"):
                await client.result("jobs/1")
        self.assertLess(time.monotonic() - began, 5)
        with self.assertRaisesRegex(autograph.FailedPrecondition, "closed"):
            await client.submit(b"x")

    async def test_leaving_a_wait_leaves_the_job(self) -> None:
        job = await self.client.submit(self.service.zoo("tiny_nasnet"), seed=21, **LONG)
        task = asyncio.create_task(self.client.result(job))
        await asyncio.sleep(0.3)
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        with self.assertRaisesRegex(autograph.DeadlineExceeded, f"{job.name}: still "):
            await self.client.result(job, timeout=0.3)
        self.assertFalse((await self.client.job(job.name)).done)

        async for seen in self.client.watch(job):
            if seen.progress.best_speedup > 1.5:
                await self.client.cancel(job)
        result = await self.client.result(job)
        self.assertTrue(result.cancelled)
        self.assertGreater(result.speedup, 1.5)

    async def test_a_watch_lives_through_a_crash(self) -> None:
        service = Service()
        self.addCleanup(service.close)
        async with AsyncClient(service.address) as client:
            job = await client.submit(service.zoo("tiny_nasnet"), **LONG)
            killed = False
            async for seen in client.watch(job, timeout=60):
                if seen.state is State.SEARCHING and not killed:
                    killed = True
                    service.kill_coordinator()
                    service.start_coordinator(delay=0.5)
                if seen.resumed == 1 and seen.progress.best_speedup > 1.5:
                    await client.cancel(job)
            self.assertEqual((seen.resumed, seen.state), (1, State.CANCELLED))


class SameNamesTest(unittest.TestCase):
    """Both clients have the same methods."""

    def test_methods_and_parameters_are_the_same(self) -> None:
        def public(kind: Any) -> List[str]:
            return sorted(n for n in vars(kind) if not n.startswith("_"))

        def parameters(method: Callable[..., Any]) -> List[str]:
            return [str(p) for p in inspect.signature(method).parameters.values()]

        self.assertEqual(public(Client), public(AsyncClient))
        for name in public(Client) + ["__init__"]:
            with self.subTest(name):
                self.assertEqual(
                    parameters(getattr(Client, name)), parameters(getattr(AsyncClient, name))
                )


if __name__ == "__main__":
    unittest.main()
