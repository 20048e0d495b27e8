package wgsl

import (
	"fmt"
	"math"

	"github.com/wavelane/wavelane/internal/op"
)

func init() { lowerings[op.Embedding] = embedding }

func embedding(s *step) error {
	vocabulary, width := s.in[0].Shape[0], s.in[0].Shape[1]
	count, lanes, vec := s.in[1].Len(), s.workgroup(), width%4 == 0
	k := cached(fmt.Sprintf("embedding/%v/%d", vec, lanes), func() *Kernel {
		return &Kernel{Bindings: []Access{Read, Read, ReadWrite}, Uniform: 48, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("embedding.wgsl", struct {
				Vec   bool
				Lanes int
			}{vec, lanes})}
	})
	unit := 1
	if vec {
		unit = 4
	}
	// Parts of the result, and for each of them the parts of the table.
	rows, err := s.planes(count, width, width, "a row", "look up narrower tables")
	if err != nil {
		return err
	}
	shard, err := s.planes(max(vocabulary, 1), width, width, "a row", "look up narrower tables")
	if err != nil {
		return err
	}
	for i := 0; i < count; i += rows {
		n := min(rows, count-i)
		y, y0 := s.window(result, i*width, n*width)
		ids, ids0 := s.window(operand(1), i, n)
		for low := 0; low == 0 || low < vocabulary; low += shard {
			high := min(low+shard, vocabulary)
			table, table0 := s.window(operand(0), low*width, (high-low)*width)
			total := n * width / unit
			params := words(total, width/unit, low, high, vocabulary, int(math.Float32bits(float32(math.NaN()))), table0/unit, ids0, y0/unit)
			s.dispatch(k, s.linear(ceilDiv(total, lanes)), params, table, ids, y)
		}
	}
	return nil
}
