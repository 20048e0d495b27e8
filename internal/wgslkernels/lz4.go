package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// A page is a workgroup's: with page, table and block it has 12 KiB of workgroup memory.

// lz4 runs a kernel over pages. Every operand and result has a page or a word of each.
func (s *step) lz4(file string, shared int, counted bool) error {
	if s.caps.MaxInvocations < catalogue.LZ4Lanes || s.caps.MaxWorkgroupSize[0] < catalogue.LZ4Lanes || int(s.caps.MaxShared) < shared {
		return fmt.Errorf("needs workgroups of %d with %d bytes: %w", catalogue.LZ4Lanes, shared, compute.ErrUnsupported)
	}
	key := file
	if counted {
		key += "/counted"
	}
	k := cached(key, func() *wgsl.Kernel {
		k := &wgsl.Kernel{Uniform: 16, Workgroup: [3]uint32{catalogue.LZ4Lanes, 1, 1}, Shared: shared, Source: render(file, struct {
			Last, End, Hash, Shift, Truncated, BadSize, BadOffset, Overflow int
			Counted                                                         bool
		}{catalogue.LZ4Last, catalogue.LZ4End, catalogue.LZ4Hash, catalogue.LZ4Shift, -catalogue.LZ4Truncated,
			-catalogue.LZ4BadSize, -catalogue.LZ4BadOffset, -catalogue.LZ4Overflow, counted})}
		for range s.Operands {
			k.Bindings = append(k.Bindings, wgsl.Read)
		}
		for range s.Results {
			k.Bindings = append(k.Bindings, wgsl.ReadWrite)
		}
		return k
	})
	const words = catalogue.LZ4Page / 4
	pages := s.Operands[0].Shape[0]
	some, err := s.planes(pages, words, words, "a page", "open the device with larger limits")
	if err != nil {
		return err
	}
	for i := 0; i < pages; i += some {
		n := min(some, pages-i)
		params := []uint32{uint32(n), 0, catalogue.LZ4Last/catalogue.LZ4Least + 1}
		var bind []Buffer
		add := func(b Buffer, t program.Type) {
			if len(t.Shape) == 2 {
				b, _ = s.window(b, i*words, n*words) // pages are aligned to any offset
			} else {
				var first int
				b, first = s.window(b, i, n)
				params[1] = uint32(first) // the same for all
			}
			bind = append(bind, b)
		}
		for j, t := range s.Operands {
			add(operand(j), t)
		}
		for j, t := range s.Results {
			add(resultAt(j), t)
		}
		s.dispatch(k, s.linear(n), params, bind...)
	}
	return nil
}
