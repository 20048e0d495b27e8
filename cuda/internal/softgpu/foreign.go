package softgpu

import (
	"slices"
	"unsafe"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

// foreignOp has another library work on copies of memory.
type foreignOp struct {
	done
	stream driver.Stream
	memory []driver.Memory
	call   func(at []unsafe.Pointer, s driver.Stream)
}

func (o *foreignOp) run(c *primary) error {
	copies, at := make([][]byte, len(o.memory)), make([]unsafe.Pointer, len(o.memory))
	for i, m := range o.memory {
		copies[i] = make([]byte, max(m.Bytes, 1))
		at[i] = unsafe.Pointer(&copies[i][0])
		if m.Written || m.Bytes == 0 {
			continue
		}
		if err := c.sim.Read(copies[i][:m.Bytes], uint64(m.At)); err != nil {
			return err
		}
	}
	o.call(at, o.stream)
	for i, m := range o.memory {
		if !m.Written || m.Bytes == 0 {
			continue
		}
		if err := c.sim.Write(uint64(m.At), copies[i][:m.Bytes]); err != nil {
			return err
		}
	}
	return nil
}

// LaunchForeign queues a call of another library.
func (g *GPU) LaunchForeign(h driver.Stream, memory []driver.Memory, call func(at []unsafe.Pointer, s driver.Stream)) driver.Result {
	c, s, r := g.order("LaunchForeign", h)
	if r != driver.Success {
		return r
	}
	defer g.mu.Unlock()
	for _, m := range memory {
		if _, ok := c.memory.around(uint64(m.At), m.Bytes); m.Bytes > 0 && !ok {
			return driver.InvalidValue
		}
	}
	if call == nil {
		return driver.InvalidValue
	}
	return s.submit(&foreignOp{stream: h, memory: slices.Clone(memory), call: call})
}
