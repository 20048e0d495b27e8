"""Writes golden.safetensors.

    pip install safetensors==0.8.0 numpy
    cd quant/safetensors/testdata && python3 golden.py
"""
import numpy as np
import safetensors

x = np.linspace(-2, 2, 12).astype(np.float32)
data = {
    "f32": ("float32", [3, 4], x),
    "f16": ("float16", [12], x.astype(np.float16)),
    "bf16": ("bfloat16", [2, 6], x.view(np.uint16)[1::2].copy()),
    "f64": ("float64", [1], np.array([0.1])),
    "i64": ("int64", [2], np.array([-1, 1 << 40])),
    "i32": ("int32", [], np.array([-7], np.int32)),
    "u8": ("uint8", [0, 5], np.zeros(0, np.uint8)),
    "bool": ("bool", [3], np.array([True, False, True])),
}
spec = lambda d, s, v: safetensors.TensorSpec(dtype=d, shape=s, data_ptr=v.ctypes.data, data_len=v.nbytes)
b = safetensors.serialize({k: spec(*v) for k, v in data.items()}, {"format": "pt", "note": "Grüße"})
open("golden.safetensors", "wb").write(b)
