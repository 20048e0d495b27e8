// Reads files of a TensorProto with raw data, as the models' tests have them.

const types = { 1: ["float32", Float32Array], 6: ["int32", Int32Array], 7: ["int64", BigInt64Array] };

export function readTensor(bytes) {
  let at = 0;
  const number = () => {
    let n = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const b = bytes[at++];
      n |= BigInt(b & 127) << shift;
      if (b < 128) return Number(n);
    }
  };
  const shape = [];
  let type = 0, raw = bytes.subarray(0, 0);
  while (at < bytes.length) {
    const key = number();
    if (key % 8 === 0) {
      const n = number();
      if (key >> 3 === 1) shape.push(n);
      if (key >> 3 === 2) type = n;
    } else if (key % 8 === 2) {
      const n = number();
      if (key >> 3 === 1) for (const end = at + n; at < end;) shape.push(number());
      else {
        if (key >> 3 === 9) raw = bytes.subarray(at, at + n);
        at += n;
      }
    } else {
      throw new Error(`wire type ${key % 8}`);
    }
  }
  if (!types[type]) throw new Error(`element type ${type}`);
  const [name, array] = types[type];
  return { name, shape, data: new array(new Uint8Array(raw).buffer) };
}
