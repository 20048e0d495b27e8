package cpu

import (
	"math"
	"unsafe"

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

// narrowRow is the width of a row below which the updates themselves are sorted by their rows, not their numbers: the sums then read
// memory in order, where reading one element here and there would be a cache miss each.
const narrowRow = 8

// rowLists are the updates of each row in their order: those of row r begin at start[r] and end before start[r+1]. Each is width words of
// order: its number, or the update itself.
type rowLists struct {
	start, order []int32
	width        int
}

func (l *rowLists) Of(row int) []int32 {
	return l.order[int(l.start[row])*l.width : int(l.start[row+1])*l.width]
}

// listed is the lists of so many updates in a step's scratch memory.
func listed(a *args, rows, count, width int) *rowLists {
	w := cells[int32](a.scratch, rows+2+count*width)
	return &rowLists{w[:rows+2], w[rows+2:], width}
}

// fill sorts the updates by their rows, by counting. Without updates it sorts their numbers, which begin with first.
func (l *rowLists) fill(ids, updates []int32, first int) {
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
		if uint(id) >= uint(rows) {
			continue
		}
		at := int(l.start[id+1]) // start[row+1] runs from the first index of the row to that of the next
		l.start[id+1]++
		if updates == nil {
			l.order[at] = int32(first + j)
			continue
		}
		for i := range l.width {
			l.order[at*l.width+i] = updates[j*l.width+i]
		}
	}
}

// rowUpdates are updates of one row of the result.
type rowUpdates struct {
	at         int // of the row in y
	own        []int32
	first, all bool // whether they are the row's first, and all that there can be
}

// fewUpdates are sorted at a time, and more where there are many rows, whose counters they clear. Sorted updates that fill the
// second-level cache are read again from there, and are a small part of what large updates need in memory.
const fewUpdates = 1 << 16

// scatterWork sorts some updates at a time, or their numbers if width is 0, then has a unit for each row of the result: row changes y, given
// its list. ns is the time for an element of an update.
func scatterWork(c *call, ns float64, width int, row func(y, updates view, d catalogue.GatherDims, u rowUpdates)) work {
	d := catalogue.GatherRows(c.in[0].Shape, c.in[1].Shape)
	words, most := max(width, 1), min(d.Count, max(fewUpdates, 8*d.Rows))
	w := work{scratch: 8 * ((d.Rows + 3 + most*words) / 2)}
	for begin := 0; begin == 0 || begin < d.Count; begin += most {
		n := min(most, d.Count-begin)
		w.phases = append(w.phases, phase{units: 1, ns: 4 * float64(d.Rows+n*words), do: func(a *args, _, _ int) {
			var updates []int32
			if width > 0 {
				updates = a.in[2].i32()[begin*width:][:n*width]
			}
			listed(a, d.Rows, n, words).fill(a.in[1].i32()[begin:begin+n], updates, begin)
		}}, phase{units: d.Rows, ns: 5 + ns*float64(n*d.Inner)/float64(max(d.Rows, 1)), do: func(a *args, lo, hi int) {
			l := listed(a, d.Rows, n, words)
			for r := lo; r < hi; r++ {
				row(a.out, a.in[2], d, rowUpdates{r * d.Inner, l.Of(r), begin == 0, n == d.Count})
			}
		}})
		if most == 0 {
			break
		}
	}
	return w
}

func scatter(c *call) work {
	return scatterWork(c, moveNS, 0, func(y, updates view, d catalogue.GatherDims, u rowUpdates) {
		if n := len(u.own); n > 0 {
			copy(y.u32()[u.at:][:d.Inner], updates.u32()[int(u.own[n-1])*d.Inner:])
		}
	})
}

func scatterAdd(c *call) work { return sumsByRow(c, false) }

func embeddingBackward(c *call) work { return sumsByRow(c, true) }

// sumsByRow adds the updates to their rows, which begin as zeros if cleared.
func sumsByRow(c *call, cleared bool) work {
	width, add := 0, addRows
	if inner := catalogue.GatherRows(c.in[0].Shape, c.in[1].Shape).Inner; 0 < inner && inner < narrowRow {
		width, add = inner, addNarrowRows
	}
	return scatterWork(c, moveNS, width, func(y, updates view, d catalogue.GatherDims, u rowUpdates) {
		if cleared && u.first {
			clear(y.f32()[u.at:][:d.Inner])
		}
		add(y, updates, d, u)
	})
}

// partRows is the most rows that are added one by one. More are added in parts, of no more than this, which keeps errors small.
const partRows = 32

// addRows adds the updates with these numbers in their order: the first few to y, then sums of as many.
func addRows(y, updates view, d catalogue.GatherDims, list rowUpdates) {
	row, u, own := y.f32()[list.at:][:d.Inner], updates.f32(), list.own
	update := func(j int32) []float32 { return u[int(j)*d.Inner:][:d.Inner] }
	if len(own) <= partRows && list.all {
		for _, j := range own {
			kernels.Add(row, row, update(j))
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
			kernels.Add(part, part, update(j))
		}
		kernels.Add(row, row, part)
		own = own[n:]
	}
}

// addNarrowRows is addRows for updates that have been sorted themselves, whose memory it uses for the sums.
func addNarrowRows(y, _ view, d catalogue.GatherDims, list rowUpdates) {
	own := list.own
	if len(own) == 0 {
		return
	}
	row, u := y.f32()[list.at:][:d.Inner], unsafe.Slice((*float32)(unsafe.Pointer(&own[0])), len(own))
	part := partRows * d.Inner
	if len(u) <= part && list.all {
		part = d.Inner
	}
	for len(u) > 0 {
		n := min(part, len(u))
		for k := d.Inner; k < n; k += d.Inner {
			for i := range d.Inner {
				u[i] += u[k+i]
			}
		}
		for i := range d.Inner {
			row[i] += u[i]
		}
		u = u[n:]
	}
}
