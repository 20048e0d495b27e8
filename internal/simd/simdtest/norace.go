//go:build !race

package simdtest

// Racing reports whether the race detector is on.
const Racing = false
