//go:build race

package simdtest

// Racing reports whether the race detector is on. Under it a sync.Pool drops items at random, so that calls allocate now and then.
const Racing = true
