package wgslkernels

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

func addNorm(s *step) error { return (&rowsStep{step: s, y: resultAt(1)}).lower() }

// rowsOfPart is how many rows an invocation adds up at most.
const rowsOfPart = 64

func normBackward(s *step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	dy := operand(len(s.Operands) - 1)
	r := &rowsStep{step: s, y: result, norms: s.NewScratch(8 * max(rows, 1))}
	if rows > 0 {
		if err := r.lower(); err != nil {
			return err
		}
	}
	if err := s.columns(rows, cols, dy, r.norms, resultAt(1)); err != nil || len(s.Results) == 2 {
		return err
	}
	return s.columns(rows, cols, dy, Buffer{}, resultAt(2))
}

// columns adds up the rows of x, each times the norm that x's operand 0 has where there are norms.
func (s *step) columns(rows, cols int, x, norms, y Buffer) error {
	norm, lanes := norms != Buffer{}, min(64, s.workgroup())
	k := cached(fmt.Sprintf("norm_columns/%v/%d", norm, lanes), func() *wgsl.Kernel {
		k := &wgsl.Kernel{Bindings: []wgsl.Access{wgsl.Read, wgsl.ReadWrite}, Uniform: 64, Workgroup: [3]uint32{uint32(lanes), 1, 1}}
		if norm {
			k.Bindings = []wgsl.Access{wgsl.Read, wgsl.Read, wgsl.Read, wgsl.ReadWrite}
		}
		k.Source = render("norm_columns.wgsl", struct {
			Norm                bool
			Bindings, Workgroup int
		}{norm, len(k.Bindings), lanes})
		return k
	})
	run := func(first, end int, bound []part, to Buffer, row, rows, low, high int) {
		blocks := ceilDiv(high-low, lanes)
		more := 0
		if row > 0 {
			more = 1
		}
		params := words(first, end, rows, cols, rowsOfPart, blocks, bound[0].base/4, bound[1].base/8, bound[2].base/4, row, low, high, more)
		bind := []Buffer{bound[0].of(x)}
		if norm {
			bind = append(bind, bound[0].of(operand(0)), bound[1].of(norms))
		}
		s.dispatch(k, s.linear((end-first)*blocks), params, append(bind, bound[2].of(to))...)
	}
	if most := (int(s.caps.MaxBinding) - s.align()) / 4; cols*min(rows, rowsOfPart) > most && cols > most/rowsOfPart {
		// Row by row, in pieces that can be bound.
		for low := 0; low < cols; low += most {
			high := min(low+most, cols)
			for row := range rows {
				run(0, 1, []part{s.part(4*(row*cols+low), 4*(row*cols+high)), s.part(8*row, 8*row+8), s.part(4*low, 4*high)}, y,
					row, row+1, low, high)
			}
		}
		return nil
	}
	parts, to := max(1, ceilDiv(rows, rowsOfPart)), y
	if parts > 1 {
		to = s.NewScratch(4 * parts * cols)
	}
	each := func(bytes int) extent { // rows of parts
		return func(first, end int) (from, to int) {
			return first * rowsOfPart * bytes, min(end*rowsOfPart, rows) * bytes
		}
	}
	err := s.ranges(parts, func(first, end int, bound []part) { run(first, end, bound, to, 0, rows, 0, cols) },
		each(4*cols), each(8), perTask(4*cols))
	if err != nil || parts == 1 {
		return err
	}
	return s.columns(parts, cols, to, Buffer{}, y)
}
