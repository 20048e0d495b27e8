"""Measures ONNX Runtime's CPU provider; bench drives it as it drives processes of its own, with lines of JSON:
{"case":"softmax_rows/512x512","threads":2} makes a model of one node and its inputs; {"calls":3} runs it three times and answers
{"ns":...}. It needs the packages onnx and onnxruntime of PyPI."""
import json
import re
import sys
import time

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper

rng = np.random.default_rng(1)


def tensor(*shape):
    return rng.uniform(-1, 1, shape).astype(np.float32)


def case(name):
    """The node, its inputs, and the shape of its result; inputs whose names begin with w are constants, as weights are."""
    kind, _, what = name.partition("/")
    n = [int(x) for x in re.findall(r"\d+", what)]
    if kind == "conv2d":
        c, h, w, o, kh, kw = n[:6]
        extra = dict(re.findall(r"([sg])(\d+)", what))
        stride, groups = int(extra.get("s", 1)), int(extra.get("g", 1))
        pads = [kh // 2, kw // 2] * 2
        node = helper.make_node("Conv", ["x", "w"], ["y"], strides=[stride] * 2, pads=pads, group=groups)
        out = (1, o, (h + 2 * pads[0] - kh) // stride + 1, (w + 2 * pads[1] - kw) // stride + 1)
        return node, {"x": tensor(1, c, h, w), "w": tensor(o, c // groups, kh, kw)}, out
    if kind == "attention":
        q, k, heads, d = n
        node = helper.make_node("MultiHeadAttention", ["q", "k", "v"], ["y"], num_heads=heads, domain="com.microsoft")
        return node, {"q": tensor(1, q, heads * d), "k": tensor(1, k, heads * d), "v": tensor(1, k, heads * d)}, (1, q, heads * d)
    if kind == "softmax_rows":
        return helper.make_node("Softmax", ["x"], ["y"], axis=-1), {"x": 5 * tensor(*n)}, n
    if kind == "layer_norm":
        node = helper.make_node("LayerNormalization", ["x", "wgamma", "wbeta"], ["y"], axis=-1, epsilon=1e-5)
        return node, {"x": tensor(*n), "wgamma": tensor(n[1]), "wbeta": tensor(n[1])}, n
    if kind == "gelu_erf":
        return helper.make_node("Gelu", ["x"], ["y"]), {"x": 5 * tensor(*n)}, n
    return None


def prepare(name, threads):
    found = case(name)
    if found is None:
        return None
    node, inputs, shape = found
    info = {k: helper.make_tensor_value_info(k, TensorProto.FLOAT, v.shape) for k, v in inputs.items()}
    constants = [helper.make_tensor(k, TensorProto.FLOAT, v.shape, v.tobytes(), raw=True) for k, v in inputs.items() if k[0] == "w"]
    graph = helper.make_graph([node], "case", [v for k, v in info.items() if k[0] != "w"],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], constants)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for k, v in inputs.items():
        if k[0] != "w":
            binding.bind_ortvalue_input(k, ort.OrtValue.ortvalue_from_numpy(v))
    binding.bind_ortvalue_output("y", ort.OrtValue.ortvalue_from_numpy(np.empty(shape, np.float32)))
    return lambda: session.run_with_iobinding(binding)


def main():
    run = None
    for line in sys.stdin:
        request, reply = json.loads(line), {}
        if request.get("version"):
            reply["version"] = "ONNX Runtime " + ort.__version__
        elif request.get("case"):
            run = prepare(request["case"], request["threads"])
            if run is None:
                reply["error"] = "not supported"
        else:
            start = time.perf_counter_ns()
            for _ in range(request["calls"]):
                run()
            reply["ns"] = time.perf_counter_ns() - start
        print(json.dumps(reply), flush=True)


main()
