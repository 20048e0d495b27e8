package tune

import (
	"maps"
	"sync"

	"github.com/wavelane/wavelane/compute"
)

// cache keeps measured choices, in memory and in one file per fingerprint.
type cache struct {
	file *file // nil: memory only
	log  compute.Logger

	mu      sync.Mutex
	loaded  bool
	choices map[string]string // variant by key
}

// version is raised when kernels change so much that old measurements mislead.
const version = 1

func newCache(c Config) *cache {
	k := &cache{log: c.Log, choices: map[string]string{}}
	if c.Memory {
		return k
	}
	var err error
	if k.file, err = newFile(c.Dir, c.Fingerprint); err != nil {
		c.Log.Debug("tune: no directory for the cache", "error", err)
	}
	return k
}

func (c *cache) lookup(key string) (string, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.loaded {
		c.loaded = true
		maps.Copy(c.choices, c.read())
	}
	v, ok := c.choices[key]
	return v, ok
}

// read returns the choices in the file, or none.
func (c *cache) read() map[string]string {
	if c.file == nil {
		return nil
	}
	choices, _, err := c.file.Read()
	if err != nil {
		c.log.Warn("tune: cache ignored", "file", c.file.Path(), "error", err)
	}
	return choices
}

// store adds a choice. Other processes may have added theirs in the meantime, so the file is read again before it is
// replaced; of two that write at the same moment one may lose its last choice, and will measure it again.
func (c *cache) store(key, variant string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.choices[key] = variant
	if c.file == nil {
		return
	}
	merged := map[string]string{}
	maps.Copy(merged, c.read())
	maps.Copy(merged, c.choices)
	if err := c.file.Write(merged); err != nil {
		c.log.Warn("tune: cache not written", "file", c.file.Path(), "error", err)
	}
}
