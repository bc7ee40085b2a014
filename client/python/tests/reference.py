"""Runs a model in ONNX Runtime, in another Python than that of the tests.

usage: reference.py MODEL.onnx INPUTS.npz OUTPUTS.npz
"""

import sys

import numpy as np
import onnxruntime

options = onnxruntime.SessionOptions()
options.log_severity_level = 3
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
names = [output.name for output in session.get_outputs()]
np.savez(sys.argv[3], **dict(zip(names, session.run(names, dict(np.load(sys.argv[2]))))))
