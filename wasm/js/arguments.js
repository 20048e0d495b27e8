import { ArgumentError } from "./errors.js";
import { checkInt, checkInts, checkNumber, describe, dtypeOf } from "./message.js";
import { enums } from "./operations.js";

/** The options of a call: an object with known keys only, so that a typing mistake does not pass for a default. */
export function checkOptions(options, keys, what) {
  if (options === undefined || options === null) return {};
  if (typeof options !== "object" || Array.isArray(options) || dtypeOf(options)) {
    throw new ArgumentError(`${what}: options are ${describe(options)}, must be an object`);
  }
  for (const key of Object.keys(options)) {
    if (!keys.includes(key)) {
      const known = keys.length ? `are ${keys.join(", ")}` : "is none";
      throw new ArgumentError(`${what}: unknown option ${JSON.stringify(key)}; there ${known}`);
    }
  }
  return options;
}

/** Splits the arguments of an operation into operands, numbers and options. */
export function parseArguments(op, args, common) {
  const what = op.name;
  const n = op.operands.length;
  const keys = [...op.extra, ...op.options.map(([name]) => name).filter((name) => !op.extra.includes(name)), ...common];
  const rest = args.slice(n);
  while (rest.length && rest.at(-1) === undefined) rest.pop();
  const options = rest.length && typeof rest.at(-1) !== "number" ? checkOptions(rest.pop(), keys, what) : {};
  let dims = null;
  let numbers = rest;
  if (op.dims.length && rest.length === op.dims.length + op.numbers.length) {
    dims = rest.slice(0, op.dims.length).map((d, i) => checkInt(d, `${what}: ${op.dims[i]}`));
    numbers = rest.slice(op.dims.length);
  }
  if (numbers.length !== op.numbers.length) throw new ArgumentError(`${what} takes ${usage(op)}; got ${args.length} arguments`);
  numbers.forEach((x, i) => checkNumber(x, `${what}: ${op.numbers[i]}`));

  let operands = args.slice(0, n);
  let names = op.operands;
  if (op.variadic) {
    if (!Array.isArray(operands[0]) || operands[0].length === 0) {
      throw new ArgumentError(`${what} takes an array of operands, got ${describe(operands[0])}`);
    }
    operands = operands[0];
    names = operands.map((_, i) => `${op.operands[0]}[${i}]`);
  }
  // Optional operands are the last ones of an operation: there is none after one that is absent.
  let absent = null;
  for (const name of op.extra) {
    const x = options[name];
    if (x === undefined || x === null || typeof x === "number" && op.options.some(([key]) => key === name)) {
      absent = name;
      continue;
    }
    if (absent) throw new ArgumentError(`${what}: ${name} needs ${absent} as well`);
    operands = [...operands, x];
    names = [...names, name];
  }
  return { operands, names, numbers, dims, options };
}

function usage(op) {
  const operands = op.operands.length ? op.operands.join(", ") : "no operands";
  const numbers = op.numbers.length ? `, then ${op.numbers.join(", ")}` : "";
  const dims = op.dims.length ? ` (or ${[...op.dims, ...op.numbers].join(", ")})` : "";
  return operands + numbers + dims + ", then options";
}

/** Shapes of operands that were given as plain arrays, where sizes follow. */
export function layOut(op, [x, y, z], options) {
  switch (op.name) {
    case "matmul":
      return [options.transA ? [y, x] : [x, y], options.transB ? [z, y] : [y, z]];
    case "matvec":
      return [[x, y], [y]];
    case "vecmat":
      return [[x], [x, y]];
  }
  return op.operands.map((_, i) => (i === 0 ? [x, y] : [y])); // rows, and vectors as long as they
}

/** Adds options to a message, field by field. */
export function addOptions(message, op, options) {
  for (const [name, kind, required] of op.options) {
    const what = `${op.name}: ${name}`;
    let x = options[name];
    if (x === undefined || x === null || op.extra.includes(name) && typeof x !== "number") {
      if (required) throw new ArgumentError(`${op.name} needs the option ${name}`);
      x = undefined;
    }
    switch (kind) {
      case "bool":
        if (x !== undefined && typeof x !== "boolean") {
          throw new ArgumentError(`${what} is ${describe(x)}, must be true or false`);
        }
        message.add(x ? 1 : 0);
        break;
      case "int":
        message.add(checkInt(x ?? 0, what));
        break;
      case "float":
        message.add(checkNumber(x ?? 0, what));
        break;
      case "ints":
        message.ints(x === undefined ? null : checkInts(x, what));
        break;
      case "pair":
        if (Array.isArray(x) && x.length !== 2) throw new ArgumentError(`${what} has ${x.length} numbers, must have 2`);
        message.add(...(Array.isArray(x) ? checkInts(x, what) : [checkInt(x ?? 0, what), x ?? 0]));
        break;
      default: // an enumeration
        if (x !== undefined && (typeof x !== "string" || !Object.hasOwn(enums[kind], x))) {
          throw new ArgumentError(`${what} is ${describe(x)}, must be one of ${Object.keys(enums[kind]).join(", ")}`);
        }
        message.add(x === undefined ? 0 : enums[kind][x]);
    }
  }
}
