//go:build race

package simd_test

// racing: under the race detector a sync.Pool forgets at random what it was given, so that calls allocate now and then.
const racing = true
