// Package op is the catalogue: it says once what each operation is, in shapes, element types, special values, tolerance and
// a float64 reference. Everything else is a lowering of an entry (shaders, PTX, CPU kernels) or is generated from it
// (the methods of devices and batches).
//
// It also holds the program: the typed steps over value slots that cross from whoever records to whoever executes.
package catalogue
