"""The clients at a service that wants TLS and tokens, and what they refuse by themselves."""

from __future__ import annotations

import os
import subprocess
import unittest
from pathlib import Path
from typing import Any, Dict, List
from unittest import mock

from autograph import (
    AsyncClient,
    AutoGraphError,
    Client,
    Code,
    InvalidArgument,
    NotFound,
    PermissionDenied,
    Retry,
    Unavailable,
)
from autograph._access import is_loopback
from service import DEVICE, Place, Service

QUICK = Retry(seconds=0.3, watch_seconds=0.3)


class Secrets(Place):
    """A certificate that openssl makes, and a tokens file."""

    def __init__(self) -> None:
        super().__init__()
        self.certificate = self.folder / "server.crt"
        self.key = self.folder / "server.key"
        self.tokens = self.folder / "tokens"
        words = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext"
        command = ["openssl", *words.split(), "subjectAltName=DNS:localhost,IP:127.0.0.1"]
        command += ["-keyout", str(self.key), "-out", str(self.certificate)]
        subprocess.run(command, check=True, capture_output=True)

    def token(self, name: str, roles: str) -> str:
        """Returns a new token."""
        return self.cli("token", name, "--roles", roles, "--tokens", str(self.tokens)).strip()


class AccessTest(unittest.IsolatedAsyncioTestCase):
    """One service for all of its tests."""

    secrets: Secrets
    service: Service
    tokens: Dict[str, str]

    @classmethod
    def setUpClass(cls) -> None:
        cls.secrets = Secrets()
        cls.tokens = {
            "alice": cls.secrets.token("alice", "submit,read"),
            "bob": cls.secrets.token("bob", "submit,read"),
            "carol": cls.secrets.token("carol", "read"),
        }
        flags = ["--tls-cert", str(cls.secrets.certificate), "--tls-key", str(cls.secrets.key)]
        flags += ["--tokens", str(cls.secrets.tokens)]
        cls.service = Service(
            coordinator_flags=flags,
            variables={
                "AUTOGRAPH_TLS_CA": str(cls.secrets.certificate),
                "AUTOGRAPH_TOKEN": cls.secrets.token("machine", "worker,read"),
            },
        )

    @classmethod
    def tearDownClass(cls) -> None:
        cls.service.close()
        cls.secrets.close()

    def of(self, name: str) -> Dict[str, Any]:
        """Returns the arguments of this tenant's client."""
        return {"token": self.tokens[name], "tls_ca": self.secrets.certificate, "retry": QUICK}

    def test_tenants_have_their_own_jobs(self) -> None:
        model = self.service.zoo("tiny_inception")
        options: Dict[str, Any] = {"device": DEVICE, "rounds": 1}
        with Client(self.service.address, **self.of("alice")) as alice:
            result = alice.optimize(model, **options)
            self.assertTrue(alice.optimize(model, **options).cached)
        with Client(self.service.address, **self.of("bob")) as bob:
            with self.assertRaises(NotFound):
                bob.job(result.job)
            with self.assertRaises(NotFound):
                bob.download(result.report.result.output_digest)
            self.assertEqual(list(bob.list()), [])
            self.assertIsNone(bob.cached(model, **options))

    async def test_the_asynchronous_client(self) -> None:
        model = self.service.zoo("tiny_cnn")
        async with AsyncClient(self.service.address, **self.of("alice")) as client:
            result = await client.optimize(model, device=DEVICE, rounds=1)
            self.assertEqual((await client.job(result.job)).name, result.job)
        async with AsyncClient(self.service.address, **self.of("bob")) as client:
            with self.assertRaises(NotFound):
                await client.job(result.job)

    def test_who_has_no_right_is_told_so(self) -> None:
        with Client(self.service.address, **self.of("carol")) as carol:
            with self.assertRaises(PermissionDenied) as raised:
                carol.cancel("jobs/1")
            self.assertEqual(
                raised.exception.message,
                "carol lacks the role submit or admin for autograph.v1.Optimizer.CancelJob; "
                "it has read",
            )
        access = {**self.of("alice"), "token": "autograph_wrong"}
        with Client(self.service.address, **access) as stranger:
            with self.assertRaises(PermissionDenied) as raised:
                stranger.capabilities()
            self.assertEqual(raised.exception.code, Code.UNAUTHENTICATED)
        with Client(self.service.address, retry=QUICK) as plain:
            with self.assertRaises(Unavailable):
                plain.capabilities()

    def test_the_variables_and_a_token_file_that_changes(self) -> None:
        file = self.secrets.folder / "token"
        file.write_text(self.tokens["alice"] + "\n")
        variables = {
            "AUTOGRAPH_TLS_CA": str(self.secrets.certificate),
            "AUTOGRAPH_TOKEN_FILE": str(file),
        }
        with mock.patch.dict(os.environ, variables), Client(self.service.address) as client:
            self.assertEqual(client.capabilities().devices, (DEVICE,))
            file.write_text("autograph_gone")
            with self.assertRaises(PermissionDenied):
                client.capabilities()
            file.write_text(self.tokens["bob"])
            self.assertEqual(client.capabilities().devices, (DEVICE,))

    def test_no_secret_is_in_a_log(self) -> None:
        with Client(self.service.address, **self.of("alice")) as client:
            client.capabilities()
        logs = self.service.logs()
        self.assertIn("autographd listens", logs)
        secrets: List[str] = [*self.tokens.values(), self.service.variables["AUTOGRAPH_TOKEN"]]
        for secret in secrets:
            self.assertNotIn(secret, logs)


class RefusalTest(unittest.TestCase):
    """What a client refuses before it connects."""

    def refused(self, message: str, address: str = "127.0.0.1:1", **access: Any) -> None:
        """Checks the error of a client that is made so."""
        with self.assertRaises(AutoGraphError) as raised:
            Client(address, **access)
        self.assertEqual(raised.exception.message, message)
        self.assertIsInstance(raised.exception, (InvalidArgument, NotFound))

    def test_wrong_arguments(self) -> None:
        place = Place()
        self.addCleanup(place.close)
        none = Path(place.folder / "none")
        self.refused(
            "the token would go to 10.0.0.1:1 in plain text: name the certificate that signed the "
            "server's (tls_ca), or allow it (insecure=True)",
            "10.0.0.1:1",
            token="autograph_1",
        )
        Client("10.0.0.1:1", token="autograph_1", insecure=True).close()
        self.refused("a token is one word of visible ASCII characters", token="two words")
        self.refused(f"{none}: no such file", tls_ca=none)
        ca = place.folder / "ca"
        ca.write_text("")
        self.refused("tls_cert and tls_key come together", tls_ca=ca, tls_cert=ca)
        self.refused(
            "TLS needs tls_ca, the certificate that signed the server's", tls_cert=ca, tls_key=ca
        )

    def test_loopback(self) -> None:
        for address in ("127.0.0.1:1", "localhost:1", "[::1]:1", "unix:/tmp/a"):
            self.assertTrue(is_loopback(address), address)
        for address in ("10.0.0.1:1", ":1", "0.0.0.0:1", "no host at all:1"):
            self.assertFalse(is_loopback(address), address)


if __name__ == "__main__":
    unittest.main()
