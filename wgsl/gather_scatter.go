package wgsl

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/catalogue"
)

// What puts rows by index finds the updates of each row with integer atomics, whose outcome does not depend on their order, or
// (the links of a list) is put in order afterwards.

func init() {
	lowerings[catalogue.Scatter] = func(s *step) error { return s.scatter(false) }
	lowerings[catalogue.ScatterAdd] = func(s *step) error { return s.scatter(true) }
	lowerings[catalogue.EmbeddingBackward] = func(s *step) error {
		s.fill(0)
		return s.scatter(true)
	}
}

// scatterPart is how many updates are added up before their sum is added to the row.
const scatterPart = 32

// scatter puts the updates into rows of the result, which hold what was there before, or adds them.
func (s *step) scatter(add bool) error {
	d := catalogue.GatherRows(s.in[0].Shape, s.in[1].Shape)
	if d.Count == 0 {
		return nil
	}
	// Parts of the rows, and for each of them parts of the updates, one after the other.
	const wayOut = "put narrower rows"
	rows, err := s.planes(d.Rows, d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	some, err := s.planes(d.Count, d.Inner, d.Inner, "a row", wayOut)
	if err != nil {
		return err
	}
	lanes, unit := s.workgroup(), 1
	if d.Inner%4 == 0 {
		unit = 4
	}
	head := s.scratch(4 * rows)
	var next, order Buffer
	if add {
		next, order = s.scratch(4*some), s.scratch(4*some)
	}
	for low := 0; low < d.Rows; low += rows {
		high := min(low+rows, d.Rows)
		y, y0 := s.window(result, low*d.Inner, (high-low)*d.Inner)
		for i := 0; i < d.Count; i += some {
			n := min(some, d.Count-i)
			indices, indices0 := s.window(operand(1), i, n)
			x, x0 := s.window(operand(2), i*d.Inner, n*d.Inner)
			mark := func(mode string, access []Access, bind ...Buffer) {
				s.dispatch(scatterKernel(mode, lanes, access), s.linear(ceilDiv(n, lanes)), words(n, low, high, indices0), bind...)
			}
			s.fillWords(head, high-low, 0)
			found := head
			if add {
				mark("link", []Access{Read, ReadWrite, ReadWrite}, indices, head, next)
				mark("order", []Access{Read, Read, Read, ReadWrite}, indices, head, next, order)
				found = order
			} else {
				mark("last", []Access{Read, ReadWrite}, indices, head)
			}
			total := n * d.Inner / unit
			s.dispatch(scatterRows(add, unit == 4, lanes), s.linear(ceilDiv(total, lanes)),
				words(total, d.Inner/unit, low, high, indices0, x0/unit, y0/unit), indices, found, x, y)
		}
	}
	return nil
}

func scatterKernel(mode string, lanes int, access []Access) *Kernel {
	return cached(fmt.Sprintf("scatter/%s/%d", mode, lanes), func() *Kernel {
		return &Kernel{Bindings: access, Uniform: 16, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("scatter.wgsl", struct {
				Mode  string
				Lanes int
			}{mode, lanes})}
	})
}

func scatterRows(add, vec bool, lanes int) *Kernel {
	return cached(fmt.Sprintf("scatter_rows/%v/%v/%d", add, vec, lanes), func() *Kernel {
		return &Kernel{Bindings: []Access{Read, Read, Read, ReadWrite}, Uniform: 32, Workgroup: [3]uint32{uint32(lanes), 1, 1},
			Source: render("scatter_rows.wgsl", struct {
				Add, Vec    bool
				Lanes, Part int
			}{add, vec, lanes, scatterPart})}
	})
}
