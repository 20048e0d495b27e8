//go:build race

package gemm

// racing: under the race detector a sync.Pool forgets at random what it was given, so that calls allocate now and then.
const racing = true
