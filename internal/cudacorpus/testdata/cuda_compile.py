"""Compiles CUDA C to PTX by NVRTC, without a GPU: cuda_compile.py FOLDER ARCHITECTURES FILES, as in

    cuda_compile.py /tmp/ptx compute_75,compute_90 reduce.cu scan.cu

writes reduce.compute_75.ptx and so on. The packages nvidia-cuda-nvrtc-cu12, nvidia-cuda-runtime-cu12, nvidia-cuda-nvcc-cu12 and nvidia-cuda-cccl-cu12 have the
compiler and its headers.
"""

import ctypes
import glob
import os
import pathlib
import sys

import nvidia

ROOT = pathlib.Path(next(iter(nvidia.__path__)))


def library():
    found = sorted(p for p in glob.glob(str(ROOT / "cuda_nvrtc/lib/libnvrtc.so.*")) if "builtins" not in p and ".alt" not in p)
    nvrtc = ctypes.CDLL(found[0])
    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    return nvrtc


def compile(nvrtc, path, arch):
    program = ctypes.c_void_p()
    source = pathlib.Path(path).read_bytes()
    must(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, os.path.basename(path).encode(), 0, None, None))
    options = [f"--gpu-architecture={arch}", *(f"--include-path={ROOT}/{p}/include" for p in ("cuda_runtime", "cuda_nvcc", "cuda_cccl")),
               "--std=c++17", "--generate-line-info"]
    array = (ctypes.c_char_p * len(options))(*(o.encode() for o in options))
    status = nvrtc.nvrtcCompileProgram(program, len(options), array)
    if status != 0:
        size = ctypes.c_size_t()
        nvrtc.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        nvrtc.nvrtcGetProgramLog(program, log)
        sys.exit(f"{path} for {arch}: {log.value.decode()}")
    size = ctypes.c_size_t()
    must(nvrtc, nvrtc.nvrtcGetPTXSize(program, ctypes.byref(size)))
    ptx = ctypes.create_string_buffer(size.value)
    must(nvrtc, nvrtc.nvrtcGetPTX(program, ptx))
    must(nvrtc, nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return ptx.value


def must(nvrtc, status):
    if status != 0:
        sys.exit(nvrtc.nvrtcGetErrorString(status).decode())


def main():
    folder, architectures, *files = sys.argv[1:]
    nvrtc = library()
    for path in files:
        for arch in architectures.split(","):
            name = f"{pathlib.Path(path).stem}.{arch}.ptx"
            (pathlib.Path(folder) / name).write_bytes(compile(nvrtc, path, arch))


if __name__ == "__main__":
    main()
