"""Compiles kernels of Triton to PTX, without a GPU: triton_compile.py FOLDER ARCHITECTURES FILES, as in

    triton_compile.py /tmp/ptx compute_80,compute_90 vector.py matmul.py

writes vector.compute_80.add.ptx and so on, and beside each a JSON file with what a launch of it takes. A file lists its kernels in KERNELS.
"""

import importlib.util
import inspect
import json
import os
import pathlib
import re
import sys
import tempfile


import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental.gluon._runtime import GluonASTSource


def compile(function, types, constants, options, capability):
    """Types are those of the arguments: pointers are aligned as PyTorch's are, i32x16 is a multiple of 16."""
    names = [p for p in inspect.signature(function.fn).parameters if p not in constants]
    signature, attributes = {}, {}
    for name, kind in zip(names, types.split(), strict=True):
        if kind.startswith("*") or kind.endswith("x16"):
            attributes[(function.arg_names.index(name),)] = [["tt.divisibility", 16]]
        signature[name] = kind.removesuffix("x16")
    signature = {p: signature.get(p, "constexpr") for p in function.arg_names}
    kind = GluonASTSource if function.is_gluon() else ASTSource
    source = kind(function, signature=signature, constexprs=constants, attrs=attributes)
    return triton.compile(source, target=GPUTarget("cuda", capability, 32), options=options)


def main():
    folder, architectures, *files = sys.argv[1:]
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        for path in files:
            spec = importlib.util.spec_from_file_location("kernels_of_" + pathlib.Path(path).stem, path)
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            for arch in architectures.split(","):
                capability = int(re.search(r"\d+", arch)[0])
                for name, function, types, constants, options, least, *most in module.KERNELS:
                    if capability < least or most and capability > most[0]:
                        continue
                    kernel = compile(function, types, constants, options, capability)
                    base = pathlib.Path(folder) / f"{pathlib.Path(path).stem}.{arch}.{name}"
                    base.with_name(base.name + ".ptx").write_text(kernel.asm["ptx"])
                    m = kernel.metadata
                    base.with_name(base.name + ".json").write_text(json.dumps({"shared": m.shared, "scratch": m.global_scratch_size}))


if __name__ == "__main__":
    main()
