"""Times real ONNX models with wavelane on the CPU and with ONNX Runtime, in turns, with 1 and 2 threads.

    go build -o out/wavelane ./cmd/wavelane
    CASES=~/.cache/wavelane/onnx-*/cases                # written by scripts/setup test
    ~/.cache/wavelane/onnx-*/bin/python bench/onnx/turns.py out/wavelane $CASES/real [TURNS]

Each turn is the median of the runs of about 0.3 s of each, 15 to 1,000; printed are the medians of the turns' times and of their ratios.
"""
import os
import re
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnx
import onnxruntime
from onnx import numpy_helper

program, folder = sys.argv[1:3]
turns = int(sys.argv[3]) if len(sys.argv) > 3 else 5
onnxruntime.set_default_logger_severity(4)
unit = {"s": 1e3, "ms": 1, "µs": 1e-3}

print(f"{'model':34} threads  runtime ms  wavelane ms  ratio (above 1: wavelane is faster)")
for name in sorted(os.listdir(folder)):
    case = os.path.join(folder, name)
    file = os.path.join(case, "model.onnx")
    feeds, args = {}, []
    with tempfile.TemporaryDirectory() as work:
        for i, info in enumerate(onnx.load(file).graph.input):
            path = os.path.join(case, "test_data_set_0", f"input_{i}.pb")
            if not os.path.exists(path):
                continue
            proto = onnx.TensorProto()
            with open(path, "rb") as f:
                proto.ParseFromString(f.read())
            feeds[info.name] = numpy_helper.to_array(proto)
            np.save(os.path.join(work, f"{i}.npy"), feeds[info.name])
            args += ["--input", f"{info.name}={work}/{i}.npy"]
        for threads in (1, 2):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = threads
            session = onnxruntime.InferenceSession(file, options)
            start = time.perf_counter()
            session.run(None, feeds)
            session.run(None, feeds)
            runs = max(15, min(1000, int(0.6 / (time.perf_counter() - start))))
            theirs, ours = [], []
            for _ in range(turns):
                times = []
                while len(times) < runs:
                    start = time.perf_counter()
                    session.run(None, feeds)
                    times.append((time.perf_counter() - start) * 1e3)
                theirs.append(np.median(times))
                time.sleep(0.05)  # the runtime's threads have stopped spinning
                said = subprocess.run([program, "onnx", file, "--run", "--device", "cpu", "--repeat", str(runs), *args], capture_output=True, text=True,
                                      check=True, env=dict(os.environ, GOMAXPROCS=str(threads))).stdout
                number, scale = re.search(r"run, ([\d.]+)(µs|ms|s) for the next", said).groups()
                ours.append(float(number) * unit[scale])
            ratio = np.median(np.array(theirs) / np.array(ours))
            print(f"{name:34} {threads:7}  {np.median(theirs):10.3f}  {np.median(ours):11.3f}  {ratio:5.2f}", flush=True)
