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


node_cases()
data_cases()
real_cases()
