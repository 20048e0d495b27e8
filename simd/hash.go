package simd

import (
	"github.com/cespare/xxhash/v2"

	"github.com/wavelane/wavelane/internal/simd/engine"
)

// Hashes are XXH64 with seed 0: the same in every process, on every machine and at every tier. They are for tables and
// partitions, not against an adversary. See https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md.

// HashBytes returns the 64-bit hash of b.
func HashBytes(b []byte) uint64 { return xxhash.Sum64(b) }

// HashKey returns the hash of the bytes of key.
func HashKey(key string) uint64 { return xxhash.Sum64String(key) }

// HashKeys sets dst[i] to the hash of keys[i]. Lengths must agree.
func HashKeys(dst []uint64, keys []string) {
	engine.MustLen("HashKeys", len(keys), len(dst))
	for i, k := range keys {
		dst[i] = xxhash.Sum64String(k)
	}
}
