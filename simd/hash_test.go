package simd_test

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/simd"
)

// The first two are test vectors of the XXH64 specification; a process must agree with all others on what a key hashes to.
func TestHash(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection takes what pools keep, in emulation between two calls
	require.Equal(t, uint64(0xEF46DB3751D8E999), simd.HashBytes(nil))
	require.Equal(t, uint64(0x44BC2CF5AD770999), simd.HashKey("abc"))
	keys := []string{"", "a", "abc", "user:1001", "a key that is longer than the thirty-two bytes of a stripe"}
	got := make([]uint64, len(keys))
	simd.HashKeys(got, keys)
	for i, k := range keys {
		require.Equal(t, simd.HashKey(k), got[i], k)
		require.Equal(t, simd.HashBytes([]byte(k)), got[i], k)
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { simd.HashKeys(got, keys) }))
	requirePanic(t, "HashKeys", compute.ErrShape, func() { simd.HashKeys(got[:4], keys) })
}
