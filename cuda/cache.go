package cuda

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// cache keeps compiled modules in a directory, one file each. Files are written under a temporary name and renamed, so that
// any number of processes may share the directory; damaged files are detected, deleted, and compiled anew. Failures are
// logged, never returned.
type cache struct {
	dir   string
	limit int64 // of all files, in bytes
	files int   // at most
	log   compute.Logger
}

const (
	cacheFormat = 1         // of files and keys
	cacheLimit  = 256 << 20 // bytes
	cacheFiles  = 4096      // programs of ever other expressions make many small ones
	cacheSuffix = ".cubin"
	tempPrefix  = "new-"
	tempAge     = time.Hour // of a temporary file that is no longer written
)

// cacheKey is the hash of all that a binary depends on.
type cacheKey [sha256.Size]byte

// keyOf hashes parts, each with its length.
func keyOf(parts ...[]byte) (key cacheKey) {
	h := sha256.New()
	for _, p := range parts {
		h.Write(binary.LittleEndian.AppendUint64(nil, uint64(len(p))))
		h.Write(p)
	}
	h.Sum(key[:0])
	return key
}

// newCache returns the cache in a directory, that of the user if dir is "". It returns nil if there is to be no cache or no
// directory for one; a nil cache is empty and stores nothing.
func newCache(dir string, log compute.Logger) *cache {
	if dir == noCache {
		return nil
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			log.Warn("cuda: no directory for compiled kernels", "error", err)
			return nil
		}
		dir = filepath.Join(user, "wavelane", "cuda")
	}
	return &cache{dir: dir, limit: cacheLimit, files: cacheFiles, log: log}
}

func (c *cache) path(key cacheKey) string {
	return filepath.Join(c.dir, fmt.Sprintf("%x%s", key, cacheSuffix))
}

// get returns what put was given, nil if there is nothing.
func (c *cache) get(key cacheKey) []byte {
	if c == nil {
		return nil
	}
	path := c.path(key)
	data, err := c.read(path)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			c.log.Warn("cuda: compiled kernels cannot be read", "file", path, "error", err)
		}
		return nil
	}
	payload, err := decodeEntry(data, key)
	if err != nil {
		c.drop(key, err)
		return nil
	}
	now := time.Now()
	_ = os.Chtimes(path, now, now) // the oldest are deleted first; a directory that is only readable keeps its times
	return payload
}

func (c *cache) read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > c.limit {
		return nil, fmt.Errorf("%s of %d bytes", info.Mode(), info.Size())
	}
	return os.ReadFile(path)
}

// drop deletes an entry that is of no use.
func (c *cache) drop(key cacheKey, why error) {
	if c == nil {
		return
	}
	path := c.path(key)
	c.log.Warn("cuda: compiled kernels are dropped", "file", path, "error", why)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.log.Warn("cuda: compiled kernels cannot be deleted", "file", path, "error", err)
	}
}

// put keeps a payload, and deletes the oldest ones if there are too many.
func (c *cache) put(key cacheKey, payload []byte) {
	if c == nil {
		return
	}
	path := c.path(key)
	if err := c.write(path, encodeEntry(key, payload)); err != nil {
		c.log.Warn("cuda: compiled kernels cannot be kept", "file", path, "error", err)
		return
	}
	c.log.Debug("cuda: compiled kernels are kept", "file", path, "bytes", len(payload))
	if err := c.shrink(); err != nil {
		c.log.Warn("cuda: old compiled kernels cannot be deleted", "directory", c.dir, "error", err)
	}
}

func (c *cache) write(path string, data []byte) error {
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(c.dir, tempPrefix) // with mode 0o600
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// shrink deletes the least recently used entries until the rest is small enough, and temporary files of dead writers.
func (c *cache) shrink() error {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return err
	}
	var entries []fs.FileInfo
	total := int64(0)
	for _, e := range list {
		entry, left := strings.HasSuffix(e.Name(), cacheSuffix), strings.HasPrefix(e.Name(), tempPrefix)
		info, err := e.Info()
		if err != nil || !info.Mode().IsRegular() || !entry && !left {
			continue // another process has deleted it, or it is not ours
		}
		if left {
			if time.Since(info.ModTime()) > tempAge {
				_ = os.Remove(filepath.Join(c.dir, e.Name()))
			}
			continue
		}
		entries, total = append(entries, info), total+info.Size()
	}
	slices.SortFunc(entries, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for i, e := range entries {
		if total <= c.limit && len(entries)-i <= c.files {
			break
		}
		if err := os.Remove(filepath.Join(c.dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		total -= e.Size()
	}
	return nil
}

// An entry is: the magic, the format, the key, the payload's length and hash, the payload.
var cacheMagic = []byte("wavelane")

const entryHeader = 8 + 4 + sha256.Size + 8 + sha256.Size

func encodeEntry(key cacheKey, payload []byte) []byte {
	b := append(make([]byte, 0, entryHeader+len(payload)), cacheMagic...)
	b = binary.LittleEndian.AppendUint32(b, cacheFormat)
	b = append(b, key[:]...)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(payload)))
	sum := sha256.Sum256(payload)
	return append(append(b, sum[:]...), payload...)
}

// decodeEntry returns the payload, or says what is wrong with the entry.
func decodeEntry(b []byte, key cacheKey) ([]byte, error) {
	if len(b) < entryHeader {
		return nil, fmt.Errorf("%d bytes are no entry", len(b))
	}
	if !bytes.Equal(b[:8], cacheMagic) {
		return nil, errors.New("not an entry")
	}
	if f := binary.LittleEndian.Uint32(b[8:]); f != cacheFormat {
		return nil, fmt.Errorf("format %d", f)
	}
	if !bytes.Equal(b[12:12+len(key)], key[:]) {
		return nil, errors.New("the entry of another module")
	}
	payload, rest := b[entryHeader:], b[12+len(key):]
	if n := binary.LittleEndian.Uint64(rest); n != uint64(len(payload)) || n == 0 {
		return nil, fmt.Errorf("%d bytes of %d", len(payload), n)
	}
	if sum := sha256.Sum256(payload); !bytes.Equal(rest[8:8+len(sum)], sum[:]) {
		return nil, errors.New("the hash is wrong")
	}
	return payload, nil
}
