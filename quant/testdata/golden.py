"""Writes golden.gguf: what GGML makes of values, and what blocks mean.

    pip install gguf==0.19.0 ggml-python==0.0.45
    python3 golden.py [VALUES [SEED]] > golden.gguf

The committed file has the default of 512 values for each distribution. Quantisers are the reference quantisers of GGML's C
library (ggml-python holds it; its base library is compiled without fused multiply-add on x86-64, which these bytes are from);
dequantised values are those of the gguf package, which has an implementation of its own in numpy, and compared with the C
library here. Q8_1 and Q8_K, which gguf lacks, are computed below.

Tensors: x.CASE are values and CASE.TYPE their blocks; importance are weights and CASE.TYPE.w the blocks with them;
blocks.TYPE are random blocks and values.TYPE what they mean.
"""
import ctypes, os, sys, tempfile
import ggml, gguf
import numpy as np
from gguf import GGMLQuantizationType as T

base = ctypes.CDLL(os.path.join(os.path.dirname(ggml.__file__), "lib", "libggml-base.so"))

n = int(sys.argv[1]) if len(sys.argv) > 1 else 512
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 7
assert n % 256 == 0
rng = np.random.default_rng(seed)
normal = lambda: rng.standard_normal(n).astype(np.float32)

outlier = normal()
outlier[rng.integers(0, n, n // 64)] *= 1000
constant = np.full(n, 3.25, np.float32)
constant[n // 2 :] = -0.1
constant[n - 64 :] = 0
cases = {
    "normal": normal(),
    "uniform": rng.uniform(-1, 1, n).astype(np.float32),
    "positive": rng.uniform(10, 11, n).astype(np.float32),
    "tiny": normal() * np.float32(1e-6),
    "vanishing": normal() * np.float32(1e-39),
    "huge": normal() * np.float32(1e5),
    "constant": constant,
    "outlier": outlier,
}
importance = np.square(normal())
importance[: n // 8] = 1
importance[n // 2 : n // 2 + 40] = 0

SIZES = {t: s for t, s in gguf.GGML_QUANT_SIZES.items()}
SIZES[T.Q8_1] = (32, 36)  # the table of gguf 0.19 has two float32 in front instead of two halves
SCALES = {  # offsets of halves
    T.F16: [0], T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0], T.Q8_1: [0, 2],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
}
PLAIN = [T.F16, T.BF16, T.Q8_0, T.Q8_1, T.Q8_K]
WEIGHTED = [T.Q4_0, T.Q4_1, T.Q5_0, T.Q5_1, T.Q2_K, T.Q3_K, T.Q4_K, T.Q5_K, T.Q6_K]


def pointer(a):
    return a.ctypes.data_as(ctypes.c_void_p)


def c_quantize(x, t, weights=None):
    length, size = SIZES[t]
    out = np.zeros(len(x) // length * size, np.uint8)
    if t in (T.F16, T.BF16):
        name = "ggml_fp32_to_fp16_row" if t == T.F16 else "ggml_fp32_to_bf16_row_ref"
        getattr(base, name)(pointer(x), pointer(out), ctypes.c_int64(len(x)))
    elif weights is None:
        getattr(base, f"quantize_row_{name_of(t)}_ref")(pointer(x), pointer(out), ctypes.c_int64(len(x)))
    else:
        f = getattr(base, f"quantize_{name_of(t)}")
        f(pointer(x), pointer(out), ctypes.c_int64(1), ctypes.c_int64(len(x)), pointer(weights))
    return out


def name_of(t):
    return t.name.lower().replace("_k", "_K")


def dequantize(b, t):
    length, size = SIZES[t]
    blocks = b.reshape(-1, size)
    if t == T.Q8_1:
        return (blocks[:, :2].copy().view(np.float16).astype(np.float32) * blocks[:, 4:].view(np.int8)).ravel()
    if t == T.Q8_K:
        return (blocks[:, :4].copy().view(np.float32) * blocks[:, 4:260].view(np.int8).astype(np.float32)).ravel()
    values = gguf.dequantize(b, t)
    if t not in (T.F16, T.BF16):
        same = np.zeros(len(values), np.float32)
        getattr(base, f"dequantize_row_{name_of(t)}")(pointer(b), pointer(same), ctypes.c_int64(len(values)))
        assert np.array_equal(values.view(np.uint32), same.view(np.uint32)), t.name
    return values


def random_blocks(t):
    length, size = SIZES[t]
    b = rng.integers(0, 256, (max(256 // length, 2), size), dtype=np.uint8)
    half = lambda: (rng.standard_normal(len(b)) * 0.1).astype(np.float16).view(np.uint8).reshape(-1, 2)
    for at in SCALES.get(t, []):
        b[:, at : at + 2] = half()
    if t == T.Q8_K:
        b[:, :4] = rng.standard_normal(len(b)).astype(np.float32).view(np.uint8).reshape(-1, 4)
    if t == T.BF16:
        b = rng.standard_normal(len(b)).astype(np.float32).view(np.uint8).reshape(-1, 4)[:, 2:].copy()
    if t == T.F16:
        b[-4:] = np.array([1, 0x83FF, 0x7BFF, 0x8000], np.uint16).view(np.uint8).reshape(-1, 2)  # subnormal, largest, −0
    return b.ravel()


with tempfile.TemporaryDirectory() as directory:
    path = os.path.join(directory, "golden.gguf")
    w = gguf.GGUFWriter(path, "golden")
    w.add_uint32("golden.seed", seed)
    w.add_tensor("importance", importance)
    for case, x in cases.items():
        w.add_tensor(f"x.{case}", x)
        for t in PLAIN + WEIGHTED:
            w.add_tensor(f"{case}.{t.name}", c_quantize(x, t).view(np.int8))
        for t in WEIGHTED:
            w.add_tensor(f"{case}.{t.name}.w", c_quantize(x, t, importance).view(np.int8))
    for t in PLAIN + WEIGHTED:
        b = random_blocks(t)
        w.add_tensor(f"blocks.{t.name}", b.view(np.int8))
        w.add_tensor(f"values.{t.name}", dequantize(b, t))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    with open(path, "rb") as f:
        sys.stdout.buffer.write(f.read())
