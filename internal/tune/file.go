//go:build !js

package tune

import "github.com/wavelane/wavelane/internal/measured"

// file has variants by key.
type file = measured.File[map[string]string]

func newFile(dir, fingerprint string) (*file, error) {
	return measured.New[map[string]string](dir, "tune", version, fingerprint)
}
