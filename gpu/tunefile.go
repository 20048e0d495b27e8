//go:build !js

package gpu

import "github.com/wavelane/wavelane/internal/measured"

// cacheFile has variants by key.
type cacheFile = measured.File[map[string]string]

func newCacheFile(dir, fingerprint string) (*cacheFile, error) {
	return measured.New[map[string]string](dir, "tune", tuneVersion, fingerprint)
}
