// Package misuse calls what the library exports with arguments that nobody should pass: nil, zero values, closed tensors, foreign
// tensors, wrong types and shapes, sizes beyond memory, numbers that are not finite, and ended contexts. Every call must
// return in time, without a panic, with an error that wraps one of compute's sentinels if it fails, and with the same outcome on every
// device. Files of all formats that are read have mistakes made in them: they are read, or refused with an error of their package.
//
// A call with a deadline returns at it, whatever the device does meanwhile.
//
// Call number i of a test depends on the seed and on i alone. A failure prints both, as the command that repeats it.
package misuse
