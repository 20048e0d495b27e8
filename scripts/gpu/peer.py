#!/usr/bin/env python3
"""Measures in PyTorch what wavelane bench --peer asks for, when it is its turn.

Reads requests as lines of JSON, {"op": name, "shapes" and "dtypes": of the operands, "calls": in one sample}, and answers each with a line,
{"seconds": of one call on the GPU's clock} or {"error": why it cannot}. The first line is {"name": what this is}. As wavelane
does, it repeats calls within a graph, so that the GPU waits for no host, and measures with events.
"""

import json
import sys

answers = sys.stdout
sys.stdout = sys.stderr  # whatever libraries print


def answer(**fields):
    print(json.dumps(fields), file=answers, flush=True)


def made(op, shapes, dtypes):
    """The work of one call, on random numbers, and whether it can be captured into a graph."""
    F = torch.nn.functional
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

    def random(i):
        return (torch.rand(shapes[i], device="cuda") * 2 - 1).to(types[dtypes[i]])

    if op in ("upload", "download"):
        here, there = torch.rand(shapes[0]).pin_memory(), random(0)
        if op == "upload":
            return lambda: there.copy_(here, non_blocking=True), False
        return lambda: here.copy_(there, non_blocking=True), False
    x = random(0)
    last = x.shape[-1:]
    torch.backends.cuda.matmul.allow_tf32 = op == "matmul_tf32"
    if op in ("matmul", "matmul_tf32"):
        b = random(1)
        out = torch.empty(shapes[0][0], shapes[1][1], device="cuda", dtype=x.dtype)
        return lambda: torch.mm(x, b, out=out), True
    if op in ("attention", "attention_causal"):
        # Ours is token-major; PyTorch gets what it likes best. A query of single precision is rounded to the cache's type.
        heads, kv_heads = shapes[0][2], shapes[1][2]
        k, v = random(1), random(2)
        q, k, v = (t.to(k.dtype).transpose(1, 2).contiguous() for t in (x, k, v))
        causal = op == "attention_causal"
        more = {"enable_gqa": True} if heads != kv_heads else {}
        return lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal, **more), True
    if op == "copy":
        y = torch.empty_like(x)
        return lambda: y.copy_(x), True
    if op == "add":
        y, z = random(1), torch.empty_like(x)
        return lambda: torch.add(x, y, out=z), True
    if op == "gelu":
        return lambda: F.gelu(x, approximate="tanh"), True
    if op == "swiglu":
        up = random(1)
        return lambda: F.silu(x) * up, True
    if op == "softmax":
        return lambda: torch.softmax(x, -1), True
    if op == "cumsum":
        return lambda: torch.cumsum(x, -1), True
    if op == "layer_norm":
        gamma, beta = random(1), random(2)
        return lambda: F.layer_norm(x, last, gamma, beta, 1e-5), True
    if op == "rms_norm":
        gamma = random(1)
        return lambda: F.rms_norm(x, last, gamma, 1e-5), True
    if op == "sum":
        return lambda: torch.sum(x), True
    if op == "argmax":
        return lambda: torch.argmax(x), True
    if op == "transpose":
        y = torch.empty(x.shape[::-1], device="cuda")
        return lambda: y.copy_(x.t()), True
    if op == "matvec":
        v = random(1)
        return lambda: torch.mv(x, v), True
    raise NotImplementedError(op + " is not known here")


class Work:
    """Calls ready to be measured."""

    def __init__(self, op, shapes, dtypes, calls):
        call, capturable = made(op, shapes, dtypes)
        self.calls = calls
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream), torch.no_grad():
            for _ in range(3):
                call()
        torch.cuda.current_stream().wait_stream(stream)
        if capturable:
            self.graph = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(self.graph):
                for _ in range(calls):
                    call()
            self.run = self.graph.replay
        else:
            self.run = lambda: [call() for _ in range(calls)]
        self.seconds()

    def seconds(self):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / self.calls


def main():
    torch.set_float32_matmul_precision("highest")
    answer(name=f"torch {torch.__version__} (CUDA {torch.version.cuda})")
    key = work = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request != key:
                key = work = None
                torch.cuda.empty_cache()
                work = Work(request["op"], request["shapes"], request["dtypes"], request["calls"])
                key = request
            answer(seconds=work.seconds())
        except Exception as e:  # whatever it is, we are asked for something else next
            key = work = None
            answer(error=f"{type(e).__name__}: {e}")


try:
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU")
except Exception as e:
    answer(error=str(e))
    sys.exit(1)
main()
