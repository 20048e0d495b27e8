package softgpu

import (
	"crypto/sha256"
	"sync"

	"github.com/wavelane/wavelane/ptx/ir"
)

// checkedModule is PTX that has been parsed and found right, and what it needs.
type checkedModule struct {
	module  *ir.Module // shared, not to be changed
	version ir.Version
	target  ir.Target
	text    int // bytes
}

// checkedModules keeps modules by the checksum of their text, the most recent ones of together at most maxChecked bytes:
// programs load the same ones again and again, for each device that they open, and parsing takes most of the time.
var checkedModules struct {
	sync.Mutex
	by    map[[sha256.Size]byte]*checkedModule
	order [][sha256.Size]byte // oldest first
	bytes int
}

const maxChecked = 16 << 20

// check is the module of a text, from an earlier time if it was right then.
func check(text []byte) (*checkedModule, error) {
	c := &checkedModules
	key := sha256.Sum256(text)
	c.Lock()
	found := c.by[key]
	c.Unlock()
	if found != nil {
		return found, nil
	}
	m, err := parseAndValidate(text)
	if err != nil {
		return nil, err
	}
	c.Lock()
	defer c.Unlock()
	if c.by == nil {
		c.by = map[[sha256.Size]byte]*checkedModule{}
	}
	if c.by[key] != nil { // by another goroutine meanwhile
		return m, nil
	}
	c.by[key], c.order, c.bytes = m, append(c.order, key), c.bytes+m.text
	for c.bytes > maxChecked {
		old := c.order[0]
		c.order = c.order[1:]
		c.bytes -= c.by[old].text
		delete(c.by, old)
	}
	return m, nil
}
