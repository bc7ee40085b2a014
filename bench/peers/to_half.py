"""Writes a model with f16 in the place of f32, inputs and outputs too, as onnxconverter-common converts it.

usage: to_half.py MODEL.onnx HALF.onnx
"""
import sys
import warnings

import onnx
from onnxconverter_common import float16

warnings.simplefilter("ignore")  # Of values that f16 cannot hold: they become its smallest or largest.
onnx.save(float16.convert_float_to_float16(onnx.load(sys.argv[1]), keep_io_types=False), sys.argv[2])
