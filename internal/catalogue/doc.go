// Package catalogue says once what each operation is: names, operands, rules of shapes and element types, special values and
// tolerances. Everything else is a lowering of an entry (shaders, PTX, CPU kernels) or is generated from it (the methods of devices and
// batches). The float64 references of entries are in package reference below it, which programs do not link.
package catalogue
