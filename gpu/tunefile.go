//go:build !js

package gpu

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/wavelane/wavelane/compute"
)

// tuneFile is the file's contents.
type tuneFile struct {
	Version     int               `json:"version"`
	Fingerprint string            `json:"fingerprint"`
	Choices     map[string]string `json:"choices"`
	Checksum    string            `json:"checksum"` // of the rest
}

// tuneVersion is raised when kernels change so much that old measurements mislead.
const tuneVersion = 1

// cachePath is where the choices for a fingerprint are kept; empty for nowhere.
func cachePath(dir, fingerprint string, log compute.Logger) string {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			log.Debug("gpu: no directory for the tune cache", "error", err)
			return ""
		}
		dir = filepath.Join(user, "wavelane")
	}
	sum := sha256.Sum256([]byte(fingerprint))
	return filepath.Join(dir, fmt.Sprintf("tune-%x.json", sum[:8]))
}

func (f *tuneFile) sum() string {
	g := *f
	g.Checksum = ""
	text, err := json.Marshal(&g) // maps are written in the order of their keys
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// read returns the choices in the file, or none.
func (c *tuneCache) read() map[string]string {
	if c.path == "" {
		return nil
	}
	text, err := os.ReadFile(c.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var f tuneFile
	if err == nil {
		err = json.Unmarshal(text, &f)
	}
	switch {
	case err != nil:
	case f.Version != tuneVersion || f.Fingerprint != c.fingerprint:
		err = errors.New("of another version or adapter")
	case f.Checksum != f.sum():
		err = errors.New("checksum does not match")
	default:
		return f.Choices
	}
	c.log.Warn("gpu: tune cache ignored", "file", c.path, "error", err)
	return nil
}

// write replaces the file in one step, so that readers see the old or the new one.
func (c *tuneCache) write(choices map[string]string) error {
	f := tuneFile{Version: tuneVersion, Fingerprint: c.fingerprint, Choices: choices}
	f.Checksum = f.sum()
	text, err := json.MarshalIndent(&f, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(c.path), filepath.Base(c.path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), c.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
