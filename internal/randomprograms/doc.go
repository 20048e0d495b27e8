// Package randomprograms generates programs over the catalogue and compares what batches make of them with the float64
// reference, on every device. Programs that fail are shrunk by rapid. It is a module of its own, so that rapid is in nobody's
// module graph.
package randomprograms
