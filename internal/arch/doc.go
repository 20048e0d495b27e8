// Package arch holds the test of the architecture: what each package of the module may import. It has no code.
package arch
