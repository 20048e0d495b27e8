// Answers the calls of jstest.Remote with a device of the package: in Node.js, a page or a worker.

const arrays = { f32: Float32Array, i32: Int32Array, u32: Uint32Array, f16: Uint16Array, bf16: Uint16Array, u8: Uint8Array };

/** Serves calls until there are no more; lanes of them at a time. Returns how many there were. */
export async function answer(wavelane, { operations, enums }, dev, base, lanes = 4) {
  let count = 0;
  const lane = async () => {
    for (;;) {
      const response = await fetch(`${base}/call`);
      if (response.status === 204) return;
      const number = response.headers.get("Number");
      let body;
      try {
        body = encode(await run(wavelane, { operations, enums }, dev, await response.arrayBuffer()));
      } catch (error) {
        body = encode({ error: `${error.name}: ${error.message} (${error.operation} ${JSON.stringify(error.shapes)})`, results: [] });
      }
      await fetch(`${base}/result/${number}`, { method: "POST", body });
      count++;
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  return count;
}

function decode(buffer) {
  const n = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, n)));
  let at = 4 + n;
  for (const v of header.operands ?? []) {
    at += -at & 7;
    v.data = new arrays[v.dtype](buffer.slice(at, at + v.bytes));
    at += v.bytes;
  }
  return header;
}

function encode({ error = "", results }) {
  const header = { error, results: results.map(({ dtype, data }) => ({ dtype, bytes: data.byteLength })) };
  const text = new TextEncoder().encode(JSON.stringify(header));
  const parts = [new Uint32Array([text.length]), text];
  let at = 4 + text.length;
  for (const { data } of results) {
    parts.push(new Uint8Array(-at & 7), data);
    at += (-at & 7) + data.byteLength;
  }
  return new Blob(parts);
}

/** Options as a page would write them. */
function optionsOf(op, fields, enums) {
  const options = {};
  op.options.forEach(([name, kind], i) => {
    const x = fields[i];
    if (x === null && name !== "shape") return;
    options[name] = enums[kind] ? Object.keys(enums[kind]).find((key) => enums[kind][key] === x) : kind === "float" ? Number(x) : x ?? [];
  });
  return options;
}

async function run(wavelane, { operations, enums }, dev, buffer) {
  const call = decode(buffer);
  const op = operations[call.operation];
  const { tensor } = wavelane;
  const host = call.operands.map((v) => tensor(v.data, v.shape, { dtype: v.dtype }));
  const options = optionsOf(op, call.options ?? [], enums);
  const numbers = (call.numbers ?? []).map(Number);
  // As a page calls it: operands, numbers, options with the operands that may be absent.
  const args = (operands) => {
    const list = (call.same ?? []).map((i) => operands[i]);
    const all = { ...options };
    list.slice(op.variadic ? list.length : op.operands.length).forEach((x, i) => { all[op.extra[i]] = x; });
    const first = op.variadic ? [list] : list.slice(0, op.operands.length);
    return [...first, ...numbers, all];
  };
  const list = (x) => (op.results === 1 ? [x] : x);
  const dtypes = [];
  const ways = [
    async () => { // arrays in, arrays out; a batch of the same says the element types
      const b = dev.batch();
      for (const v of list(b[op.name](...args(host)))) dtypes.push(v.dtype);
      b.close();
      return list(await dev[op.name](...args(host)));
    },
    async () => { // a batch, on arrays that it uploads by itself
      const b = dev.batch();
      for (const v of list(b[op.name](...args(host)))) {
        dtypes.push(v.dtype);
        b.read(v);
      }
      return b.run();
    },
    async () => { // resident operands and results
      const resident = await Promise.all(host.map((x) => dev.upload(x)));
      const call = args(resident);
      if (!op.updates) call.at(-1).keep = true;
      const results = list(await dev[op.name](...call));
      const read = [];
      for (const [i, r] of results.entries()) {
        if (i >= op.updates) { // what is not a tensor updated in place
          dtypes.push(r.dtype ?? (r instanceof Int32Array ? "i32" : r instanceof Uint32Array ? "u32" : "f32"));
          read.push(r.read ? await r.read() : r);
          r.close?.();
          continue;
        }
        if (r !== call[i]) throw new Error(`result ${i} is not the tensor updated in place`);
        dtypes.push(r.dtype);
        read.push(await r.read());
      }
      for (const t of resident) t.close();
      return read;
    },
    async () => { // a plan, with inputs set later
      const b = dev.batch();
      const inputs = host.map((x) => b.input(x.shape, { dtype: x.dtype }));
      for (const v of list(b[op.name](...args(inputs)))) {
        dtypes.push(v.dtype);
        b.read(v);
      }
      const plan = await b.compile();
      host.forEach((x, i) => plan.setInput(inputs[i], x));
      await plan.run();
      const results = await plan.run();
      plan.close();
      return results;
    },
  ];
  const results = await ways[call.number % ways.length]();
  results.forEach((r, i) => {
    if (!(r instanceof arrays[dtypes[i]])) throw new Error(`result ${i} is a ${r.constructor.name}, should be ${dtypes[i]}`);
  });
  return { results: results.map((data, i) => ({ dtype: dtypes[i], data })) };
}
