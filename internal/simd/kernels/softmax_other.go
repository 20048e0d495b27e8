//go:build !amd64

package kernels

// HasRows says whether there is a tier for which [SoftmaxRows] does something: a constant, so that no page loads what it cannot use.
const HasRows = false

func softmaxRows(_, _ []float32, _, _ int) bool { return false }
