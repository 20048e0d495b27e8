package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/quant"
	"github.com/wavelane/wavelane/wgsl"
)

// dequantize makes all rows, or those that indices name.
func dequantize(s *step) error {
	o := s.Attr.Options.(compute.DequantizeOptions)
	n, k, err := catalogue.PackedShape(s.Operands[0], o.Format)
	if err != nil {
		return err
	}
	lanes, chosen, half := s.workgroup(), len(s.Operands) == 2, o.Result == compute.Float16
	kernel := cached(fmt.Sprintf("dequantize/%v/%v/%d", o.Format, half, lanes), func() *wgsl.Kernel {
		b := blocksOf(o.Format, false, "w")
		return &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.ReadWrite}, Uniform: 64, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("dequantize.wgsl", struct {
				Half         bool
				Lanes, Apart int
				Blocks       *blocks
			}{half, lanes, b.apart(), b})}
	})
	words32, count := s.Operands[0].Shape[1], s.Result.Len()/k
	const wayOut = "dequantise narrower rows"
	rows, err := s.planes(count, k*s.Result.DType.Size()/4, 0, "a row", wayOut)
	if err != nil {
		return err
	}
	shard, err := s.planes(max(n, 1), words32, 0, "a row of weights", wayOut)
	if err != nil {
		return err
	}
	if !chosen {
		rows = min(rows, shard)
	}
	for i := 0; i < count; i += rows {
		m := min(rows, count-i)
		y, y0 := s.windowOf(o.Result, result, i*k, m*k)
		indices, indices0, named, low, last := operand(0), 0, 0, i, i+m
		if chosen {
			indices, indices0 = s.window(operand(1), i, m)
			named, low, last = 1, 0, n
		}
		for ; low == 0 || low < last; low += shard {
			high := min(low+shard, last)
			w, w0 := s.window(operand(0), low*words32, (high-low)*words32)
			if !chosen {
				indices = w // which nobody reads
			}
			total := m * k / 8
			s.dispatch(kernel, s.linear(ceilDiv(total, lanes)), words(total, k/32, k/quant.Type(o.Format).BlockLen(), words32/4,
				n, low, high, i, w0/4, y0/4, indices0, 0x7fc00000, named), w, indices, y)
		}
	}
	return nil
}
