// Package scalar writes code for single values into PTX kernels: elementary functions ([Math]), the catalogue's elementwise entries
// ([Functions]), expressions of them ([BodyOf]), conversions between element types, division by run-time constants ([Divisor]), and
// short forms for immediates and variables.
package scalar
