package cpu

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

func gather(c *call) work {
	d, _ := catalogue.GatherAxis(c.in[0].Shape, c.in[1].Shape, c.attr.Options.(compute.GatherOptions)) // checked
	return gatherWork(c, d)
}

func takeAlong(c *call) work {
	d, _ := catalogue.TakeAlongDims(c.in[0].Shape, c.in[1].Shape) // checked
	return gatherWork(c, d)
}

func embedding(c *call) work {
	return gatherWork(c, catalogue.GatherRows(c.in[0].Shape, c.in[1].Shape))
}

// gatherWork has a unit for each row of the result.
func gatherWork(c *call, d catalogue.GatherDims) work {
	other := uint32(0)
	if c.out.DType == compute.Float32 {
		other = math.Float32bits(float32(math.NaN()))
	}
	return one(d.Outer*d.Count, 10+moveNS*float64(d.Inner), func(a *args, lo, hi int) {
		y, x, ids := a.out.u32(), a.in[0].u32(), a.in[1].i32()
		for lo < hi {
			o, j := lo/d.Count, lo%d.Count
			n := min(d.Count-j, hi-lo)
			if d.Own {
				j = lo
			}
			engine.Embed(y[lo*d.Inner:(lo+n)*d.Inner], x[o*d.Rows*d.Inner:(o+1)*d.Rows*d.Inner], ids[j:j+n], d.Inner, other)
			lo += n
		}
	})
}

// rowLists are the updates of each row in their order: those of row r are order[start[r]] … order[start[r+1]−1].
type rowLists struct{ start, order []int32 }

func (l *rowLists) Of(row int) []int32 { return l.order[l.start[row]:l.start[row+1]] }

// listed is the lists in a step's scratch memory.
func listed(a *args, d catalogue.GatherDims) *rowLists {
	w := cells[int32](a.scratch, d.Rows+2+d.Count)
	return &rowLists{w[:d.Rows+2], w[d.Rows+2:]}
}

// fill sorts the updates by their rows, by counting.
func (l *rowLists) fill(ids []int32) {
	rows := len(l.start) - 2
	clear(l.start)
	for _, id := range ids {
		if uint(id) < uint(rows) {
			l.start[id+2]++
		}
	}
	for r := range rows {
		l.start[r+2] += l.start[r+1]
	}
	for j, id := range ids {
		if uint(id) < uint(rows) { // start[row+1] runs from the first index of the row to that of the next
			l.order[l.start[id+1]] = int32(j)
			l.start[id+1]++
		}
	}
}

// scatterWork sorts the updates, then has a unit for each row of the result: row changes y, given the numbers of its updates.
// ns is the time for an element of an update.
func scatterWork(c *call, ns float64, row func(y, updates view, at int, d catalogue.GatherDims, own []int32)) work {
	d := catalogue.GatherRows(c.in[0].Shape, c.in[1].Shape)
	return work{scratch: 8 * ((d.Rows + 3 + d.Count) / 2), phases: []phase{
		{units: 1, ns: 4 * float64(d.Rows+d.Count), do: func(a *args, _, _ int) { listed(a, d).fill(a.in[1].i32()) }},
		{units: d.Rows, ns: 5 + ns*float64(d.Count*d.Inner)/float64(max(d.Rows, 1)), do: func(a *args, lo, hi int) {
			l := listed(a, d)
			for r := lo; r < hi; r++ {
				row(a.out, a.in[2], r*d.Inner, d, l.Of(r))
			}
		}},
	}}
}

func scatter(c *call) work {
	return scatterWork(c, moveNS, func(y, updates view, at int, d catalogue.GatherDims, own []int32) {
		if n := len(own); n > 0 {
			copy(y.u32()[at:][:d.Inner], updates.u32()[int(own[n-1])*d.Inner:])
		}
	})
}

func scatterAdd(c *call) work { return scatterWork(c, moveNS, addRows) }

func embeddingBackward(c *call) work {
	return scatterWork(c, moveNS, func(y, updates view, at int, d catalogue.GatherDims, own []int32) {
		clear(y.f32()[at:][:d.Inner])
		addRows(y, updates, at, d, own)
	})
}

// partRows is the most rows that are added one by one. More are added in parts, which keeps errors small.
const partRows = 32

// addRows adds updates in their order: the first few to y, then sums of as many.
func addRows(y, updates view, at int, d catalogue.GatherDims, own []int32) {
	row, u := y.f32()[at:][:d.Inner], updates.f32()
	update := func(j int32) []float32 { return u[int(j)*d.Inner:][:d.Inner] }
	add := kernels.Add
	if d.Inner < 8 { // less than a call
		add = func(y, _, x []float32) {
			for i, v := range x {
				y[i] += v
			}
		}
	}
	if len(own) <= partRows {
		for _, j := range own {
			add(row, row, update(j))
		}
		return
	}
	b := engine.Borrow(d.Inner)
	defer engine.Scratch.Put(b)
	part := *b
	for len(own) > 0 {
		n := min(partRows, len(own))
		copy(part, update(own[0]))
		for _, j := range own[1:n] {
			add(part, part, update(j))
		}
		add(row, row, part)
		own = own[n:]
	}
}
