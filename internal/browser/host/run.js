// Runs the Go program of this server, in a page or in a worker. Emit receives {fd, data} for output, its bytes as the
// characters of a string, and at the end {exit}.
export async function run(emit) {
  const print = (fd, bytes) => {
    for (let i = 0; i < bytes.length; i += 8192) {
      emit({ fd, data: String.fromCharCode(...bytes.subarray(i, i + 8192)) });
    }
    return bytes.length;
  };
  const fail = (error) => {
    print(2, new TextEncoder().encode(`${error?.stack ?? error}\n`));
    emit({ exit: 2 });
  };
  try {
    const { args, env, adapter } = await (await fetch("config.json")).json();
    if (adapter && !(await navigator.gpu?.requestAdapter())) {
      throw new Error("this browser offers no WebGPU adapter");
    }
    fs.writeSync = print;
    fs.write = (fd, bytes, offset, length, _, done) => done(null, print(fd, bytes.subarray(offset, offset + length)));
    process.cwd = () => "/";
    const go = (globalThis.goProgram = new Go()); // for tests that count what it holds
    go.argv = args;
    go.env = env;
    let code = 0;
    go.exit = (c) => (code = c);
    const { instance } = await WebAssembly.instantiateStreaming(fetch("program.wasm"), go.importObject);
    await go.run(instance);
    emit({ exit: code });
  } catch (error) {
    fail(error);
  }
}
