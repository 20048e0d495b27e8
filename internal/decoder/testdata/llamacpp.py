"""Writes the logits that llama.cpp has with the models of llamacpp_test.go.

    pip install llama-cpp-python==0.3.36 gguf==0.19.0 numpy
    go test ./internal/decoder -run TestLlamaCppLogits -models MODELS     # writes the models to that folder
    python3 llamacpp.py MODELS

Those of mixtures of experts are by a later llama.cpp, of node-llama-cpp 3.22.1, whose logits of the others differ by 1e-6.
"""
import os, sys
import gguf, llama_cpp, numpy

models, = sys.argv[1:]
here = os.path.dirname(os.path.abspath(__file__))


def field_of(reader, key):
    return reader.fields[key].contents()


# The first of these tokens is given alone, the others at once.
prompt = [5, 1, 270, 77, 8, 8, 150, 31, 2, 64, 269, 12, 260, 3, 111, 0, 45, 261, 9, 27, 200, 13, 180, 21]
wanted = [0, 1, 11, 23]


def logits(path):
    m = llama_cpp.Llama(path, n_ctx=64, logits_all=True, verbose=False, type_k=llama_cpp.GGML_TYPE_F32, type_v=llama_cpp.GGML_TYPE_F32,
                        flash_attn=False)
    m.eval(prompt[:1])
    m.eval(prompt[1:])
    return numpy.array(m.scores[: len(prompt)], dtype=numpy.float32)[wanted]


def widened(path, to):
    """Writes a model again with all weights in float32, as the gguf package dequantises them. Returns whether that is another."""
    reader, other = gguf.GGUFReader(path), False
    w = gguf.GGUFWriter(to, field_of(reader, "general.architecture"))
    for key, f in reader.fields.items():
        if key.startswith("GGUF.") or key == "general.architecture":
            continue
        if f.types[0] == gguf.GGUFValueType.ARRAY:
            w.add_array(key, f.contents())
        else:
            w.add_key_value(key, f.contents(), f.types[0])
    for t in reader.tensors:
        wide = t.tensor_type == gguf.GGMLQuantizationType.F32
        other |= not wide
        data = t.data if wide else gguf.dequantize(t.data, t.tensor_type).astype(numpy.float32)
        w.add_tensor(t.name, numpy.ascontiguousarray(data))
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()
    return other


def write_logits():
    w = gguf.GGUFWriter(os.path.join(here, "logits.gguf"), "none")
    w.add_array("tokens", prompt)
    w.add_array("rows", wanted)
    for file in sorted(os.listdir(models)):
        name, kind = os.path.splitext(file)
        if kind != ".gguf":
            continue
        path, wide = os.path.join(models, file), os.path.join(models, name + ".wide")
        as_it_is = logits(path)
        if widened(path, wide):
            w.add_tensor(name + ".q8", as_it_is)  # activations are quantised as well
            as_it_is = logits(wide)
        w.add_tensor(name, as_it_is)
        print(name, as_it_is.std())
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


write_logits()
