// Package measured keeps what was measured on a machine in files of the user's cache directory.
package measured

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file of measurements of type T. Whatever is wrong with it costs new measurements: readers ignore what is damaged or
// of another version or fingerprint, and writers replace it.
type File[T any] struct {
	Version     int    // raised when old measurements mislead
	Fingerprint string // of hardware and drivers
	path        string
}

// contents is what stands in a file.
type contents[T any] struct {
	Version     int    `json:"version"`
	Fingerprint string `json:"fingerprint"`
	Measured    T      `json:"measured"`
	Checksum    string `json:"checksum"` // of the rest
}

// New returns the file for measurements of a kind in a directory, that of the user if dir is "". Nothing is opened yet.
func New[T any](dir, kind string, version int, fingerprint string) (*File[T], error) {
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return nil, err
		}
		dir = filepath.Join(user, "wavelane")
	}
	sum := sha256.Sum256([]byte(fingerprint))
	return &File[T]{version, fingerprint, filepath.Join(dir, fmt.Sprintf("%s-%x.json", kind, sum[:8]))}, nil
}

// Path is where the file lies.
func (f *File[T]) Path() string { return f.path }

func (c *contents[T]) sum() string {
	d := *c
	d.Checksum = ""
	text, err := json.Marshal(&d) // maps are written in the order of their keys
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%x", sha256.Sum256(text))
}

// Read returns the measurements, or false if there are none. The error says why a file that is there is ignored.
func (f *File[T]) Read() (m T, ok bool, err error) {
	text, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return m, false, nil
	}
	var c contents[T]
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	switch {
	case err != nil:
	case c.Version != f.Version || c.Fingerprint != f.Fingerprint:
		err = errors.New("of another version or machine")
	case c.Checksum != c.sum():
		err = errors.New("checksum does not match")
	default:
		return c.Measured, true, nil
	}
	return m, false, err
}

// Write replaces the file in one step, so that readers see the old or the new one.
func (f *File[T]) Write(m T) error {
	c := contents[T]{Version: f.Version, Fingerprint: f.Fingerprint, Measured: m}
	c.Checksum = c.sum()
	text, err := json.MarshalIndent(&c, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(text)
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), f.path)
	}
	if err != nil {
		os.Remove(tmp.Name())
	}
	return err
}
