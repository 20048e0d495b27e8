/** Errors of the package; wavelane.d.ts says what each means. */

export class WavelaneError extends Error {
  constructor(message, { operation = "", shapes = [], cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.operation = operation;
    this.shapes = shapes;
  }

  get name() {
    return classNames.get(this.constructor) ?? "WavelaneError";
  }
}

export class ShapeError extends WavelaneError {}
export class DTypeError extends WavelaneError {}
export class ArgumentError extends WavelaneError {}
export class UnavailableError extends WavelaneError {}
export class UnsupportedError extends WavelaneError {}
export class DeviceLostError extends WavelaneError {}
export class OutOfMemoryError extends WavelaneError {}
export class TooLargeError extends WavelaneError {}
export class ClosedError extends WavelaneError {}
export class ForeignTensorError extends WavelaneError {}
export class InFlightError extends WavelaneError {}
export class NotRunError extends WavelaneError {}
export class InstanceError extends WavelaneError {}

export class ShaderError extends ArgumentError {
  constructor(message, { line = 0, column = 0, details = "", ...context } = {}) {
    super(message, context);
    this.line = line;
    this.column = column;
    this.details = details;
  }
}

const classes = {
  WavelaneError, ShapeError, DTypeError, ArgumentError, UnavailableError, UnsupportedError, DeviceLostError, OutOfMemoryError,
  TooLargeError, ClosedError, ForeignTensorError, InFlightError, NotRunError, InstanceError, ShaderError,
};

// Names are written down: minifiers change those of classes.
const classNames = new Map(Object.entries(classes).map(([name, type]) => [type, name]));

/** Makes the error that the program reported as [class, message, line, column, details]. */
export function errorOf([name, message, line, column, details], context) {
  return new classes[name](message, { ...context, line, column, details });
}

/** Whether what the program returned is an error. */
export const isFailure = (x) => Array.isArray(x) && typeof x[0] === "string";
