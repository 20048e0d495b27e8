package gpu

import (
	"maps"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// tuneCache keeps measured choices, in memory and in one file per fingerprint. Whatever is wrong with the file costs new
// measurements, never an error: a damaged one is ignored and written anew. On js there is no file.
type tuneCache struct {
	fingerprint string
	path        string // empty: memory only
	log         compute.Logger

	mu      sync.Mutex
	loaded  bool
	choices map[string]string // variant by key
}

func newTuneCache(dir, fingerprint string, log compute.Logger) *tuneCache {
	return &tuneCache{fingerprint: fingerprint, path: cachePath(dir, fingerprint, log), log: log, choices: map[string]string{}}
}

func (c *tuneCache) lookup(key string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		c.loaded = true
		maps.Copy(c.choices, c.read())
	}
	v, ok := c.choices[key]
	return v, ok
}

// store adds a choice. Other processes may have added theirs in the meantime, so the file is read again before it is
// replaced; of two that write at the same moment one may lose its last choice, and will measure it again.
func (c *tuneCache) store(key, variant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choices[key] = variant
	if c.path == "" {
		return
	}
	merged := map[string]string{}
	maps.Copy(merged, c.read())
	maps.Copy(merged, c.choices)
	if err := c.write(merged); err != nil {
		c.log.Warn("gpu: tune cache not written", "file", c.path, "error", err)
	}
}
