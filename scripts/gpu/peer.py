#!/usr/bin/env python3
"""Measures in PyTorch what wavelane bench --peer asks for, when it is its turn.

Reads requests as lines of JSON, {"op": name, "shapes" and "dtypes": of the operands, "calls": in one sample}, and answers each with a line,
{"seconds": of one call on the GPU's clock} or {"error": why it cannot}. The first line is {"name": what this is}. As wavelane
does, it repeats calls within a graph, so that the GPU waits for no host, and measures with events.

With --device cpu it does the same work on the processor, by the host's clock: that tests this program where there is no GPU.
"""

import argparse
import json
import sys
import time

parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
DEVICE = parser.parse_args().device

answers = sys.stdout
sys.stdout = sys.stderr  # whatever libraries print


def answer(**fields):
    print(json.dumps(fields), file=answers, flush=True)


def made(op, shapes, dtypes):
    """The work of one call, on random numbers, and whether it can be captured into a graph."""
    F = torch.nn.functional
    types = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}

    def random(i):
        return (torch.rand(shapes[i], device=DEVICE) * 2 - 1).to(types[dtypes[i]])

    def gradient(forward, *operands, dy):
        """What the backward pass of forward(*operands) alone takes."""
        for t in operands:
            t.requires_grad_()
        y = forward(*operands)
        return lambda: torch.autograd.grad(y, operands, dy, retain_graph=True), True

    if op in ("upload", "download"):
        if DEVICE == "cpu":
            raise NotImplementedError("there is no device to copy to")
        here, there = torch.rand(shapes[0]).pin_memory(), random(0)
        if op == "upload":
            return lambda: there.copy_(here, non_blocking=True), False
        return lambda: here.copy_(there, non_blocking=True), False
    x = random(0)
    last = x.shape[-1:]
    torch.backends.cuda.matmul.allow_tf32 = op == "matmul_tf32"
    if op in ("matmul", "matmul_tf32"):
        b = random(1)
        out = torch.empty(shapes[0][0], shapes[1][1], device=DEVICE, dtype=x.dtype)
        return lambda: torch.mm(x, b, out=out), True
    if op in ("attention", "attention_causal", "attention_causal_backward"):
        # Ours is token-major; PyTorch gets what it likes best. A query of single precision is rounded to the cache's type.
        heads, kv_heads = shapes[0][2], shapes[1][2]
        k, v = random(1), random(2)
        q, k, v = (t.to(k.dtype).transpose(1, 2).contiguous() for t in (x, k, v))
        causal = op != "attention"
        more = {"enable_gqa": True} if heads != kv_heads else {}

        def attend(q, k, v):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, **more)

        if op == "attention_causal_backward":  # operands are q, k, v, y, lse, dy
            return gradient(attend, q, k, v, dy=random(5).transpose(1, 2).contiguous())
        return lambda: attend(q, k, v), True
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
        y = torch.empty(x.shape[::-1], device=DEVICE)
        return lambda: y.copy_(x.t()), True
    if op == "matvec":
        v = random(1)
        return lambda: torch.mv(x, v), True
    if op == "adam":
        m, v, grad, step = torch.zeros_like(x), torch.zeros_like(x), random(3), torch.ones((), device=DEVICE)
        rates = dict(lr=1e-3, beta1=0.9, beta2=0.999, weight_decay=0.0, eps=1e-8, amsgrad=False, maximize=False)
        return lambda: torch._fused_adam_([x], [grad], [m], [v], [], [step], **rates), True
    if op in ("cross_entropy", "cross_entropy_backward"):
        targets = torch.full(shapes[1], shapes[0][1] // 2, device=DEVICE)

        def loss(logits):
            return F.cross_entropy(logits, targets, reduction="none")

        if op == "cross_entropy":
            return lambda: loss(x), True
        return gradient(loss, x, dy=random(2))
    if op == "softmax_backward":
        dy = random(1)
        return lambda: torch._softmax_backward_data(dy, x, -1, x.dtype), True
    if op == "layer_norm_backward":
        return gradient(lambda x, gamma, beta: F.layer_norm(x, last, gamma, beta, 1e-5), x, random(1), random(2), dy=random(3))
    if op == "rms_norm_backward":
        return gradient(lambda x, gamma: F.rms_norm(x, last, gamma, 1e-5), x, random(1), dy=random(2))
    raise NotImplementedError(op + " is not known here")


class Work:
    """Calls ready to be measured."""

    def __init__(self, op, shapes, dtypes, calls):
        self.calls = calls
        if DEVICE == "cpu":
            call, _ = made(op, shapes, dtypes)
            self.run = lambda: [call() for _ in range(calls)]
            self.seconds()
            return
        # Backward passes run on the stream of their forward pass, which has to be the one that is captured.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            call, capturable = made(op, shapes, dtypes)
            with torch.no_grad():
                for _ in range(3):
                    call()
        torch.cuda.current_stream().wait_stream(stream)
        if capturable:
            self.graph = torch.cuda.CUDAGraph()
            with torch.no_grad(), torch.cuda.graph(self.graph, stream=stream):
                for _ in range(calls):
                    call()
            self.run = self.graph.replay
        else:
            self.run = lambda: [call() for _ in range(calls)]
        self.seconds()

    def seconds(self):
        if DEVICE == "cpu":
            start = time.perf_counter()
            with torch.no_grad():
                self.run()
            return (time.perf_counter() - start) / self.calls
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        self.run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3 / self.calls


def main():
    torch.set_float32_matmul_precision("highest")
    answer(name=f"torch {torch.__version__} " + ("(CPU)" if DEVICE == "cpu" else f"(CUDA {torch.version.cuda})"))
    key = work = None
    for line in sys.stdin:
        try:
            request = json.loads(line)
            if request != key:
                key = work = None
                if DEVICE == "cuda":
                    torch.cuda.empty_cache()
                work = Work(request["op"], request["shapes"], request["dtypes"], request["calls"])
                key = request
            answer(seconds=work.seconds())
        except Exception as e:  # whatever it is, we are asked for something else next
            key = work = None
            answer(error=f"{type(e).__name__}: {e}")


try:
    import torch

    if DEVICE == "cuda" and not torch.cuda.is_available():
        raise RuntimeError("PyTorch sees no GPU")
except Exception as e:
    answer(error=str(e))
    sys.exit(1)
main()
