package softgpu

import (
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/ptx/tensormap"
)

// TensorMapEncode writes the bytes that package sim reads.
func (g *GPU) TensorMapEncode(to []byte, m *tensormap.Map) driver.Result {
	if _, r := g.enter("TensorMapEncode", anyCall); r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	if m == nil || len(to) < tensormap.Size {
		return driver.InvalidValue
	}
	b, err := m.Encode()
	if err != nil {
		return driver.InvalidValue
	}
	copy(to, b[:])
	return driver.Success
}
