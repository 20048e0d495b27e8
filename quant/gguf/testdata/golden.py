"""Writes the files that the tests read, or, given a file that this package wrote, prints what the gguf package reads.

    pip install gguf==0.19.0
    cd quant/gguf/testdata && python3 golden.py
    python3 golden.py FILE.gguf
"""
import glob, os, sys
import gguf
import numpy as np
from gguf import GGMLQuantizationType as T, GGUFValueType as V

if len(sys.argv) > 1:
    r = gguf.GGUFReader(sys.argv[1])
    for field in r.fields.values():
        print(field.name, [t.name for t in field.types], field.contents())
    for t in r.tensors:
        print(t.name, t.tensor_type.name, t.shape.tolist(), t.data_offset, t.data.ravel()[:4])
    sys.exit()

for f in glob.glob("*.gguf"):
    os.remove(f)


def tensors(w):
    w.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
    w.add_tensor("half", np.linspace(-1, 1, 5).astype(np.float16))
    x = np.sin(np.arange(128, dtype=np.float32)).reshape(2, 64)
    w.add_tensor("blocks", gguf.quantize(x, T.Q8_0), raw_dtype=T.Q8_0)
    w.add_tensor("integers", np.array([[[[1, -2], [3, 1 << 40]]]], dtype=np.int64))


def finish(w):
    w.write_header_to_file()
    w.write_kv_data_to_file()
    w.write_tensors_to_file()
    w.close()


w = gguf.GGUFWriter("all.gguf", "test")
w.add_custom_alignment(64)
w.add_uint8("z.uint8", 200)
w.add_int8("int8", -100)
w.add_uint16("uint16", 60000)
w.add_int16("int16", -30000)
w.add_uint32("uint32", 4000000000)
w.add_int32("int32", -2000000000)
w.add_float32("float32", 1.5)
w.add_uint64("uint64", 1 << 63)
w.add_int64("int64", -(1 << 62))
w.add_float64("float64", 0.1)
w.add_bool("yes", True)
w.add_bool("no", False)
w.add_string("text", "Grüße, 世界")
w.add_array("words", ["one", "", "drei"])
w.add_array("ints", [1, -2, 3])
w.add_array("floats", [0.5, -0.25])
w.add_array("bools", [True, False, True])
w.add_key_value("bytes", b"\x01\x02\xff", V.ARRAY)
w.add_key_value("shorts", [1, 2, 65535], V.ARRAY, sub_type=V.UINT16)
tensors(w)
finish(w)

w = gguf.GGUFWriter("bigendian.gguf", "test", endianess=gguf.GGUFEndian.BIG)
w.add_tensor("matrix", np.arange(6, dtype=np.float32).reshape(2, 3))
finish(w)

w = gguf.GGUFWriter("split.gguf", "test", split_max_tensors=2)
w.add_string("text", "in the first file")
tensors(w)
finish(w)
