// Writes small ONNX models: files of protocol buffers, of which these functions make one message each.

const encoder = new TextEncoder();

function varint(n) {
  const out = [];
  for (n = BigInt.asUintN(64, BigInt(n)); n > 127n; n >>= 7n) out.push(Number(n & 127n) | 128);
  return [...out, Number(n)];
}

/** A field: a whole number, or bytes of any length. */
function field(number, x) {
  if (typeof x === "number" || typeof x === "bigint") return [...varint(number << 3), ...varint(x)];
  const bytes = typeof x === "string" ? encoder.encode(x) : x;
  return [...varint((number << 3) | 2), ...varint(bytes.length), ...bytes];
}

const dim = (d) => field(1, typeof d === "number" ? field(1, d) : field(2, d));

/** An input or an output. */
export const value = (name, type, shape) =>
  [...field(1, name), ...field(2, field(1, [...field(1, type), ...field(2, shape.flatMap(dim))]))];

/** Weights. */
export const weights = (name, type, shape, data) => [
  ...shape.flatMap((d) => field(1, d)), ...field(2, type), ...field(8, name),
  ...field(9, [...new Uint8Array(data.buffer)]),
];

export const node = (op, inputs, outputs, attributes = {}) => [
  ...inputs.flatMap((name) => field(1, name)), ...outputs.flatMap((name) => field(2, name)), ...field(3, `the ${op}`), ...field(4, op),
  ...Object.entries(attributes).flatMap(([name, i]) => field(5, [...field(1, name), ...field(3, i), ...field(20, 2)])),
];

export const model = ({ nodes, initializers = [], inputs, outputs }) => new Uint8Array([
  ...field(1, 8),
  ...field(7, [
    ...nodes.flatMap((n) => field(1, n)), ...field(2, "graph"), ...initializers.flatMap((w) => field(5, w)),
    ...inputs.flatMap((v) => field(11, v)), ...outputs.flatMap((v) => field(12, v)),
  ]),
  ...field(8, field(2, 17)),
]);

const f32 = (...x) => new Float32Array(x);
const float = 1, int64 = 7, bool = 9;

/** y = relu(x·w + b), and which of them are positive. */
export const layer = model({
  nodes: [node("MatMul", ["x", "w"], ["p"]), node("Add", ["p", "b"], ["s"]), node("Relu", ["s"], ["y"]),
    node("Greater", ["y", "zero"], ["positive"]), node("ArgMax", ["y"], ["best"], { axis: 1, keepdims: 0 })],
  initializers: [weights("w", float, [3, 2], f32(1, -1, 2, -2, 3, -3)), weights("b", float, [2], f32(0.5, 20)),
    weights("zero", float, [], f32(0))],
  inputs: [value("x", float, ["rows", 3])],
  outputs: [value("y", float, ["rows", 2]), value("positive", bool, ["rows", 2]), value("best", int64, ["rows"])],
});

/** The mean of each plane of a picture. */
export const means = model({
  nodes: [node("GlobalAveragePool", ["picture"], ["planes"]), node("Flatten", ["planes"], ["means"])],
  inputs: [value("picture", float, [1, 3, "height", "width"])], outputs: [value("means", float, [1, 3])],
});
