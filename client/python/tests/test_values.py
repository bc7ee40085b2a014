"""Sequences and optionals at a model's ends."""

from __future__ import annotations

import unittest
from typing import Any, List

import autograph
import numpy as np
from autograph import Session
from service import BUILD
from test_external import field

CPU = "cpu:1"


def value_info(name: str, kind: str, dtype: int = 1) -> bytes:
    """A scalar, or a value of tensors of any shape."""
    proto = field(1, field(1, dtype) + (field(2, b"") if kind == "tensor" else b""))
    if "sequence" in kind:
        proto = field(4, field(1, proto))
    if "optional" in kind:
        proto = field(9, field(1, proto))
    return field(1, name) + field(2, proto)


def node(op: str, inputs: List[str], output: str) -> bytes:
    read = b"".join(field(1, name) for name in inputs)
    return field(1, read + field(2, output) + field(4, op))


def model(nodes: bytes, inputs: List[bytes], outputs: List[bytes]) -> bytes:
    graph = nodes + field(2, "g")
    graph += b"".join(field(11, info) for info in inputs)
    graph += b"".join(field(12, info) for info in outputs)
    return field(1, 8) + field(7, graph) + field(8, field(1, "") + field(2, 17))


def optional(kind: str) -> bytes:
    """Gives an optional back, and whether it has a value."""
    nodes = node("Identity", ["maybe"], "same") + node("OptionalHasElement", ["maybe"], "has")
    outputs = [value_info("same", kind), value_info("has", "tensor", 9)]
    return model(nodes, [value_info("maybe", kind)], outputs)


@unittest.skipUnless((BUILD / "libautograph.so").exists(), "libautograph.so is not built")
class ValuesTest(unittest.TestCase):
    """Lists of arrays, and None."""

    def open(self, data: bytes) -> Session:
        """Returns a session that ends with the test."""
        with self.assertWarns(autograph.SessionWarning):  # Nodes that run one by one.
            session = Session(data, device=CPU)
        self.addCleanup(session.close)
        return session

    def test_a_sequence_is_a_list(self) -> None:
        nodes = node("SequenceInsert", ["parts", "more"], "all") + node("Neg", ["more"], "less")
        session = self.open(
            model(
                nodes,
                [value_info("parts", "sequence"), value_info("more", "tensor")],
                [value_info("all", "sequence"), value_info("less", "tensor")],
            )
        )
        self.assertEqual([info.kind for info in session.inputs], ["sequence", "tensor"])
        self.assertEqual([info.kind for info in session.outputs], ["sequence", "tensor"])
        self.assertEqual(str(session.inputs[0]), "parts: sequence of float32[...]")
        self.assertIsNone(session.inputs[0].shape)
        more = np.array(7, np.float32)
        parts = [np.arange(3, dtype=np.float32), np.arange(6, dtype=np.float32).reshape(2, 3)]
        for given in (parts, tuple(parts), []):
            result = session.run({"parts": given, "more": more})
            self.assertEqual(len(result["all"]), len(given) + 1)
            for array, expected in zip(result["all"], [*given, more]):
                np.testing.assert_array_equal(array, expected)
                self.assertEqual(array.dtype, np.float32)
            self.assertEqual(result["less"], -7)
        every, less = session([parts[1].T], more)
        np.testing.assert_array_equal(every[0], parts[1].T)
        listed = session.run(["less"], {"parts": parts, "more": more})
        self.assertEqual(listed, [less])

    def test_an_optional_may_be_none(self) -> None:
        session = self.open(optional("optional"))
        self.assertEqual(session.inputs[0].kind, "optional")
        x = np.ones((2, 2), np.float32)
        same, has = session(x)
        np.testing.assert_array_equal(same, x)
        self.assertTrue(has)
        same, has = session(None)
        self.assertIsNone(same)
        self.assertFalse(has)

    def test_an_optional_sequence_is_a_list_or_none(self) -> None:
        session = self.open(optional("optional sequence"))
        self.assertEqual(session.inputs[0].kind, "optional sequence")
        x = np.ones(2, np.float32)
        for given in ([x, x], []):
            same, has = session(given)
            self.assertEqual(len(same), len(given))
            self.assertTrue(has)
        self.assertIsNone(session(None)[0])

    def test_what_does_not_fit_is_named(self) -> None:
        nodes = node("SequenceInsert", ["parts", "more"], "all")
        session = self.open(
            model(
                nodes,
                [value_info("parts", "sequence"), value_info("more", "tensor")],
                [value_info("all", "sequence")],
            )
        )
        x = np.array(1, np.float32)
        cases: List[Any] = [
            ("array", x, x, "input parts: expected a list of float32 arrays, got a ndarray"),
            ("none", None, x, "input parts: expected a list of float32 arrays, got a NoneType"),
            ("dtype", [x, np.array(1)], x, "expected sequence of float32, got one with int64"),
            ("item", [x, 1.0], x, "expected sequence of float32, got one with a float"),
            ("list", [x], [x], "input more: expected float32"),
        ]
        for name, parts, more, message in cases:
            with self.subTest(name), self.assertRaises(autograph.InvalidArgument) as caught:
                session.run({"parts": parts, "more": more})
            self.assertIn(message, str(caught.exception))
        with self.assertRaises(autograph.InvalidArgument):
            session.run({"parts": [x], "more": x}, out={"all": x})


if __name__ == "__main__":
    unittest.main()
