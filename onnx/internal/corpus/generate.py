"""Writes the test cases of the Python package onnx into a folder, in the layout of its own data: for each case model.onnx,
tolerance.txt, and test_data_set_0 with inputs and outputs. Links real models of other packages beside them, with inputs and what
ONNX Runtime makes of them.

    python generate.py FOLDER
"""
import glob
import os
import shutil
import sys
import warnings

import numpy as np
import onnx
from onnx import numpy_helper

folder = sys.argv[1]
warnings.filterwarnings("ignore")


def proto_of(value, type_proto, name):
    kind = type_proto.WhichOneof("value")
    if kind == "sequence_type":
        return numpy_helper.from_list(value, name)
    if kind == "optional_type":
        return numpy_helper.from_optional(value, name)
    if isinstance(value, onnx.TensorProto):
        return value
    if isinstance(value, (list, tuple)):
        return numpy_helper.from_list(value, name)
    elem = type_proto.tensor_type.elem_type
    array = np.asarray(value)
    if elem in (onnx.TensorProto.UINT4, onnx.TensorProto.INT4, onnx.TensorProto.UINT2, onnx.TensorProto.INT2, onnx.TensorProto.FLOAT4E2M1) and array.dtype in (np.uint8, np.int8, np.float32):
        return onnx.helper.make_tensor(name, elem, array.shape, array.astype(np.float32).flatten().tolist())
    return numpy_helper.from_array(array, name)


def write(case, model, sets, rtol, atol, where):
    out = os.path.join(folder, where, case)
    os.makedirs(out, exist_ok=True)
    with open(os.path.join(out, "model.onnx"), "wb") as f:
        f.write(model.SerializeToString())
    with open(os.path.join(out, "tolerance.txt"), "w") as f:
        f.write(f"{rtol} {atol}\n")
    for n, (inputs, outputs) in enumerate(sets):
        data = os.path.join(out, f"test_data_set_{n}")
        os.makedirs(data, exist_ok=True)
        for name, values, infos in (("input", inputs, model.graph.input), ("output", outputs, model.graph.output)):
            for i, value in enumerate(values):
                if value is None:
                    continue
                with open(os.path.join(data, f"{name}_{i}.pb"), "wb") as f:
                    f.write(proto_of(value, infos[i].type, infos[i].name).SerializeToString())


def node_cases():
    from onnx.backend.test.case.node import collect_testcases

    for case in collect_testcases(None):
        write(case.name, case.model, case.data_sets, case.rtol, case.atol, "node")


def data_cases():
    base = os.path.join(os.path.dirname(onnx.__file__), "backend", "test", "data")
    for group in ("light", "simple", "pytorch-operator", "pytorch-converted"):
        for path in sorted(glob.glob(os.path.join(base, group, "*"))):
            if not os.path.isdir(path) or not os.path.exists(os.path.join(path, "model.onnx")):
                continue
            shutil.copytree(path, os.path.join(folder, group, os.path.basename(path)), dirs_exist_ok=True)
    for path in sorted(glob.glob(os.path.join(base, "light", "*.onnx"))):
        light_case(path)


def light_case(path):
    """Models without data: the inputs are ones, the outputs those of ONNX Runtime."""
    name = os.path.basename(path)[: -len(".onnx")]
    model = onnx.load(path)
    try:
        real_case("light", name, model, {})
    except Exception as e:  # which the test counts
        print(f"light/{name}: {e}", file=sys.stderr)


def real_case(where, name, model, shapes, inputs=None):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    rng = np.random.default_rng(1)
    feeds = []
    for info in session.get_inputs():
        if inputs and info.name in inputs:
            feeds.append(inputs[info.name])
            continue
        shape = [d if isinstance(d, int) else shapes.get(i, 1) for i, d in enumerate(info.shape)]
        kind = {"tensor(float)": np.float32, "tensor(int64)": np.int64, "tensor(int32)": np.int32}[info.type]
        feeds.append(rng.standard_normal(shape).astype(kind))
    outputs = session.run(None, {i.name: x for i, x in zip(session.get_inputs(), feeds)})
    weights = {w.name for w in model.graph.initializer}
    inputs_of = [i for i in model.graph.input if i.name not in weights]
    trimmed = onnx.ModelProto()
    trimmed.CopyFrom(model)
    del trimmed.graph.input[:]
    trimmed.graph.input.extend(inputs_of)
    write(name, trimmed, [(feeds, outputs)], 1e-3, 1e-4, where)


def package(name):
    import importlib.util

    return os.path.dirname(importlib.util.find_spec(name).origin)


def real_cases():
    rng = np.random.default_rng(2)
    ocr = os.path.join(package("rapidocr_onnxruntime"), "models")
    for file, shape in (
        ("ch_PP-OCRv4_det_infer", (1, 3, 160, 224)),
        ("ch_ppocr_mobile_v2.0_cls_infer", (2, 3, 48, 192)),
        ("ch_PP-OCRv4_rec_infer", (2, 3, 48, 160)),
    ):
        x = (rng.random(shape) * 2 - 1).astype(np.float32)
        real_case("real", file, onnx.load(os.path.join(ocr, file + ".onnx")), {}, {"x": x})
    magika = glob.glob(os.path.join(package("magika"), "models", "*", "model.onnx"))[0]
    text = np.full((2, 2048), 256, np.int32)
    text[0, :900] = rng.integers(32, 127, 900)
    text[1, 5:2000] = rng.integers(0, 256, 1995)
    real_case("real", "magika", onnx.load(magika), {}, {"bytes": text})
    vad = os.path.join(package("silero_vad"), "data")
    for file in ("silero_vad", "silero_vad_16k_op15", "silero_vad_half", "silero_vad_op18_ifless"):
        audio = (np.sin(np.arange(576) * 0.11) * 0.4 + rng.standard_normal(576) * 0.05).astype(np.float32)
        inputs = {"input": audio[None], "state": np.zeros((2, 1, 128), np.float32), "sr": np.array(16000, np.int64)}
        real_case("real", file, onnx.load(os.path.join(vad, file + ".onnx")), {}, inputs)


def microsoft_cases():
    """Operators of com.microsoft that exported transformers have; the outputs are those of ONNX Runtime."""
    from onnx import TensorProto, helper

    rng = np.random.default_rng(3)

    def floats(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    def case(name, op, inputs, outputs, weights=None, **attributes):
        """Inputs are given by name, None where one is left out; outputs are names, "" for those that are not wanted."""
        weights = weights or {}
        kinds = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64, np.dtype(np.int32): TensorProto.INT32}
        infos = [helper.make_tensor_value_info(n, kinds[x.dtype], x.shape) for n, x in inputs.items() if x is not None and n not in weights]
        node = helper.make_node(op, ["" if x is None else n for n, x in inputs.items()], outputs, domain="com.microsoft", **attributes)
        initializers = [numpy_helper.from_array(inputs[n], n) for n in weights]
        results = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs if o]
        graph = helper.make_graph([node], name, infos, results, initializers)
        opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=9)
        real_case("microsoft", name, model, {}, {n: x for n, x in inputs.items() if x is not None})

    case("fused_matmul", "FusedMatMul", {"a": floats(2, 3, 4), "b": floats(2, 5, 4)}, ["y"], transB=1, alpha=0.5)
    case("fused_matmul_a", "FusedMatMul", {"a": floats(2, 4, 3), "b": floats(4, 5)}, ["y"], transA=1)
    x, skip, gamma, beta, bias = floats(2, 3, 8), floats(2, 3, 8), floats(8), floats(8), floats(8)
    case("skip_layer_norm", "SkipLayerNormalization", {"x": x, "skip": skip, "g": gamma, "b": beta, "bias": bias}, ["y", "", "", "sum"], epsilon=1e-5)
    case("skip_layer_norm_plain", "SkipLayerNormalization", {"x": x, "skip": skip, "g": gamma}, ["y"], epsilon=1e-5)
    case("skip_rms_norm", "SkipSimplifiedLayerNormalization", {"x": x, "skip": skip, "g": gamma, "bias": bias}, ["y", "", "", "sum"], epsilon=1e-5)
    case("bias_gelu", "BiasGelu", {"x": x, "b": beta}, ["y"])
    case("fast_gelu", "FastGelu", {"x": x, "b": beta}, ["y"])
    case("gelu", "Gelu", {"x": x}, ["y"])
    case("quick_gelu", "QuickGelu", {"x": x}, ["y"], alpha=1.5)
    angles = np.outer(np.arange(16), 1 / 100 ** (np.arange(4) / 4)).astype(np.float32)
    tables = {"cos": np.cos(angles), "sin": np.sin(angles)}
    positions = np.array([[3, 4, 5], [0, 1, 2]], np.int64)
    case("rotary", "RotaryEmbedding", {"x": floats(2, 3, 16), "at": positions, **tables}, ["y"])
    case("rotary_interleaved", "RotaryEmbedding", {"x": floats(2, 2, 3, 8), "at": positions, **tables}, ["y"], interleaved=1)
    case("rotary_from", "RotaryEmbedding", {"x": floats(2, 3, 16), "at": np.array([2], np.int64), **tables}, ["y"])
    for bits, zeros in ((4, False), (4, True), (8, True)):
        n, k, block = 5, 70, 32
        blocks, per = (k + block - 1) // block, 8 // bits
        w = rng.integers(0, 256, (n, blocks, block // per)).astype(np.uint8)
        scales = (rng.random((n, blocks)) * 0.1).astype(np.float32)
        inputs = {"x": floats(2, 3, k), "w": w, "s": scales}
        if zeros:
            inputs["z"] = rng.integers(0, 256, (n, (blocks + per - 1) // per)).astype(np.uint8)
        name = f"matmul_{bits}_bits" + ("_zeros" if zeros else "")
        case(name, "MatMulNBits", inputs, ["y"], set(inputs) - {"x"}, K=k, N=n, bits=bits, block_size=block)
    heads, kv, size = 4, 2, 16
    angles = np.outer(np.arange(16), 1 / 100 ** (np.arange(8) / 8)).astype(np.float32)
    for name, steps, past, extra in (("prefill", 5, 0, {}), ("decode", 1, 6, {}), ("rotary", 1, 6, {"do_rotary": 1}), ("window", 6, 0, {"local_window_size": 3})):
        total = past + steps
        inputs = {"q": floats(2, steps, heads * size), "k": floats(2, steps, kv * size), "v": floats(2, steps, kv * size),
                  "pk": floats(2, kv, past, size), "pv": floats(2, kv, past, size),
                  "lengths": np.full(2, total - 1, np.int32), "total": np.array(total, np.int32)}
        if extra.get("do_rotary"):
            inputs.update(cos=np.cos(angles), sin=np.sin(angles))
        case(f"group_query_attention_{name}", "GroupQueryAttention", inputs, ["y", "present_k", "present_v"], num_heads=heads, kv_num_heads=kv, **extra)


node_cases()
data_cases()
microsoft_cases()
real_cases()
