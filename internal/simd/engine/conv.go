package engine

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/gemm"
	"github.com/wavelane/wavelane/internal/simd/kernels"
)

// Convolution is a conv2d planned for the active tier.
//
// Every unit of work is a band of rows of the result. It first spreads out the rows of the input that the band needs, with
// zeros for the padding, and with a stride as one plane for each remainder of a column modulo the stride. Lines whose remainder no tap
// reads are left out. After that tap (c, ky, kx) reads, for successive pixels of a row of the result, successive elements from a fixed
// offset on, whatever stride, dilation and padding are. The result is a product of the weights with those rows of elements, of which
// only a panel at a time exists; with few channels it is a sum of rows, and of one channel with a square window several rows are
// computed at once, so that they share what they read.
type Convolution struct {
	catalogue.ConvDims
	perGroup int // input channels of a group
	outs     int // output channels of a group
	taps     int // weights of an output channel
	pixels   int // of an output plane
	act      span
	Finish   func(d *ConvData, y []float32, at int) // changes y, which begins at element at of the result; nil for nothing
	FinishNS float64                                // of both

	whole   bool     // the input is read as it lies: there is neither padding nor a stride
	product bool     // it is computed as a product
	filter  bool     // several rows are summed at once
	narrow  bool     // some channels at a time are spread out, as they are needed
	slow    bool     // it is computed tap by tap from the input: there is none, or more than offsets can tell
	rests   [2][]int // remainders that occur, down and across
	step    int      // lines that are spread out between what successive rows of the result read
	lines   int      // steps of a plane that is spread out
	wide    int      // elements of a line
	band    int      // rows of the result in a unit
	bands   int
	parts   int     // units that share the channels of a band
	offsets []int32 // of taps, from what the first pixel reads at tap 0
	runs    []run   // of rows of the result
	windows gemm.Windows
}

// run is rows of the result, up to those of the next run, that have the same taps: others read padding above or below the input.
type run struct{ row, lo, hi int }

// ConvData is the data of a convolution.
type ConvData struct {
	X, W, Bias, Y []float32
	Packed        []float32 // weights
	Stop          *atomic.Bool
	Data          any // for finish
}

// Plan prepares v for a number of threads, reusing its memory.
func (v *Convolution) Plan(d catalogue.ConvDims, act compute.Activation, threads int) {
	*v = Convolution{ConvDims: d, rests: v.rests, offsets: v.offsets, runs: v.runs[:0]}
	v.perGroup, v.outs, v.pixels = d.C/d.Groups, d.OutC/d.Groups, d.OutH*d.OutW
	v.taps = v.perGroup * d.KH * d.KW
	v.act, v.FinishNS = activation(act)
	v.whole = d.Stride == [2]int{1, 1} && d.Pad == [2]int{}
	for axis, size := range [2]int{d.KH, d.KW} {
		v.rests[axis] = v.rests[axis][:0]
		for k := range size {
			if r := k * d.Dilation[axis] % d.Stride[axis]; !slices.Contains(v.rests[axis], r) {
				v.rests[axis] = append(v.rests[axis], r)
			}
		}
	}
	above := (d.KH - 1) * d.Dilation[0] / d.Stride[0]
	v.wide = d.OutW + (d.KW-1)*d.Dilation[1]/d.Stride[1]
	v.step = max(1, len(v.rests[0]))
	v.product = v.outs >= 4 && v.taps >= 4
	v.filter = gemm.Filters && !v.product && v.perGroup == 1 && d.KH == d.KW && d.Dilation[0] == 1 && v.step == d.Stride[0] && gemm.HasFilter(d.KH, v.step)
	v.cut(above, threads)
	v.lines = v.band + above
	if v.whole {
		v.lines = d.H
	}
	if v.slow = v.taps == 0 || v.spreadSize() > math.MaxInt32; v.slow {
		v.product, v.parts = false, 1
		return
	}
	v.place()
	v.windows = gemm.Windows{M: v.outs, AM: v.taps, Offsets: v.offsets, Width: d.OutW, Step: v.step * v.wide, LDC: v.pixels}
	if v.step*v.wide == d.OutW { // lines follow each other without a gap
		v.windows.Width = v.pixels
	}
	if !v.product && !(gemm.Filters && v.filter) {
		for oy := range v.OutH {
			if lo, hi := v.tapsOf(oy); oy == 0 || lo != v.runs[len(v.runs)-1].lo || hi != v.runs[len(v.runs)-1].hi {
				v.runs = append(v.runs, run{oy, lo, hi})
			}
		}
	}
	if v.product {
		v.windows.Once = v.N*v.bands <= fewUnits // units that use the same weights
		v.windows.Apart = v.pixels <= leastColumns
		v.windows.Plan(v.parts)
		v.parts = min(v.parts, v.windows.Down())
		if gemm.Fills && v.far() && !v.windows.Once && v.parts == 1 {
			v.narrow = true
			v.windows.Taps, v.windows.Together = d.KH*d.KW, min(v.perGroup, max(1, spreadTogether*v.perGroup/v.spreadSize()))
		}
	}
}

// spreadTogether is how many elements are spread out at a time if each is read for one panel: half of an L1 of 32 KB.
const spreadTogether = 4096

// cut chooses the band: as much as a part of L2 holds, but enough units for all threads, and such that none waits for the others.
func (v *Convolution) cut(above, threads int) {
	const most = 1 << 16 // elements that are spread out
	mr, nr := gemm.TileSize()
	least := 1
	if v.product {
		least = CeilDiv(leastColumns, v.OutW)
	}
	least = min(least, v.OutH)
	images := v.N * v.Groups
	v.band = most/max(1, v.perGroup*v.step*len(v.rests[1])*v.wide) - above
	if near := max(least, mostPanels/max(1, gemm.Steps(v.taps)*v.OutW)); gemm.Fills && v.product && v.band >= 2*near && (v.far() || v.N*CeilDiv(v.OutH, v.band) <= fewUnits) {
		v.band = near
	}
	units := 1
	if work := float64(v.N*v.OutC) * float64(v.pixels) * (0.01*float64(v.taps) + v.FinishNS); threads > 1 && work > SplitTime {
		units = min(4, max(1, int(work/unitTime)/threads)) * threads
	}
	v.band = min(v.band, CeilDiv(v.OutH, CeilDiv(units, images)))
	v.band = min(max(v.band, least), v.OutH)
	if v.product {
		best, least := v.band, max(least, v.band/2)
		for b := v.band - 1; b >= least; b-- {
			if v.columns(b, images, threads, nr) < v.columns(best, images, threads, nr) {
				best = b
			}
		}
		v.band = best
	}
	v.bands = CeilDiv(v.OutH, v.band)
	v.parts = 1
	if v.product {
		v.parts = max(1, min(CeilDiv(min(units, threads), images*v.bands), v.outs/(4*mr))) // each gathers the panels for itself
	}
}

// mostPanels is how many elements the panels of a band have if all of them are packed before they are multiplied: in L2. It is so if
// panels are far, or if there are fewUnits, which pack the weights for themselves.
const (
	mostPanels = 1 << 17
	fewUnits   = 3
)

// far reports whether a panel is more than L1 holds. Then nothing is lost if some channels of all panels are packed at a time.
func (v *Convolution) far() bool {
	_, nr := gemm.TileSize()
	return !v.whole && gemm.Steps(v.taps)*nr > 1<<13
}

// leastColumns is the least width of a band: a narrower one takes longer to read the weights than to multiply them.
const leastColumns = 96

// unitTime is how long a unit takes at least, in ns, while each thread has one: short bands read the weights more often.
const unitTime = 140_000

// columns is how many columns of panels, which the last of a band need not fill, a thread computes if bands have so many rows.
func (v *Convolution) columns(band, images, threads, nr int) int {
	whole, rest := images*(v.OutH/band), 0
	if left := v.OutH % band; left > 0 {
		rest = images * Padded(left*v.OutW, nr)
	}
	each := Padded(band*v.OutW, nr)
	return max(CeilDiv(whole*each+rest, threads), CeilDiv(whole, threads)*each)
}

// spreadSize is the number of elements that a band needs.
func (v *Convolution) spreadSize() int {
	return v.perGroup * len(v.rests[1]) * v.lines * v.step * v.wide
}

// place computes the offsets of the taps.
func (v *Convolution) place() {
	v.offsets = Grow(v.offsets, v.taps)[:0]
	for c := range v.perGroup {
		for ky := range v.KH {
			down := ky * v.Dilation[0]
			row := slices.Index(v.rests[0], down%v.Stride[0])
			for kx := range v.KW {
				across := kx * v.Dilation[1]
				col := slices.Index(v.rests[1], across%v.Stride[1])
				line := ((c*len(v.rests[1])+col)*v.lines+down/v.Stride[0])*v.step + row
				at := line*v.wide + across/v.Stride[1]
				v.offsets = append(v.offsets, int32(at))
			}
		}
	}
}

// Phases is the number of phases: packing the weights, if that is done in advance, and computing.
func (v *Convolution) Phases() int {
	if v.product && !v.windows.Once {
		return 2
	}
	return 1
}

func (v *Convolution) Phase(i int) (units int, ns float64) {
	if i < v.Phases()-1 {
		blocks := v.windows.Blocks()
		return v.Groups * blocks, 10 + 0.5*float64(v.outs*v.taps)/float64(blocks)
	}
	pixels := float64(v.band * v.OutW)
	ns = 0.2 * float64(v.spreadSize())
	if v.product {
		ns += pixels * (v.windows.NS() + float64(v.outs)*v.FinishNS) / float64(v.parts)
	} else {
		ns += pixels * float64(v.outs) * (0.1*float64(v.taps) + v.FinishNS)
	}
	return v.N * v.Groups * v.bands * v.parts, 20 + ns
}

// Scratch is the number of elements of convData.packed.
func (v *Convolution) Scratch() int {
	if v.Phases() < 2 {
		return 0
	}
	return v.Groups * v.windows.Packed()
}

// Do computes units of a phase.
func (v *Convolution) Do(i, lo, hi int, a *ConvData) {
	if i < v.Phases()-1 {
		v.pack(lo, hi, a)
		return
	}
	var spread []float32
	if !v.whole && !v.slow {
		size := v.spreadSize()
		if gemm.Fills && v.narrow {
			size = size / v.perGroup * v.windows.Together
		}
		b := Borrow(size)
		defer Scratch.Put(b)
		spread = *b
		clear(spread)
	}
	before := -1 // band that is spread out
	done := finished{v: v, a: a}
	defer done.flush()
	for u := lo; u < hi && !(a.Stop != nil && a.Stop.Load()); u++ {
		part, unit := u%v.parts, u/v.parts
		from := unit % v.bands * v.band
		group, n := unit/v.bands%v.Groups, unit/v.bands/v.Groups
		rows := min(v.band, v.OutH-from)
		x := a.X[(n*v.C+group*v.perGroup)*v.H*v.W:][:v.perGroup*v.H*v.W]
		at := (n*v.OutC+group*v.outs)*v.pixels + from*v.OutW
		y := a.Y[at:]
		first, last := 0, v.outs
		if !v.slow {
			planes := x
			if v.whole {
				x = x[from*v.W:]
			} else {
				if before != unit && !(gemm.Fills && v.narrow) {
					v.spread(spread, x, from, rows)
				}
				x, before = spread, unit
			}
			if v.product {
				down := v.windows.Down()
				lo, hi := down*part/v.parts, down*(part+1)/v.parts
				first, last = v.windows.Rows(lo, hi)
				w := a.W[group*v.outs*v.taps:]
				if !v.windows.Once {
					w = a.Packed[group*v.windows.Packed():]
				}
				if gemm.Fills && v.narrow {
					v.windows.Multiply(y, w, x, rows*v.OutW, lo, hi, a.Stop, func(c, n int) {
						v.spread(x, planes[c*v.H*v.W:][:n*v.H*v.W], from, rows)
					})
				} else {
					v.windows.Multiply(y, w, x, rows*v.OutW, lo, hi, a.Stop, nil)
				}
			} else {
				v.sum(y, x, a.W[group*v.outs*v.taps:], from, rows)
			}
		}
		run := 1 // channels that are finished at once: those of a single pixel are neighbours
		if v.pixels == 1 {
			run = max(1, last-first)
		}
		for c := first; c < last; c += run {
			channel := group*v.outs + c
			y := y[c*v.pixels:][:run*rows*v.OutW]
			for i := range run {
				w := a.W[(channel+i)*v.taps:][:v.taps]
				if y := y[i*rows*v.OutW:][:rows*v.OutW]; v.slow || v.poisoned(y, w) {
					for r := range rows {
						v.row(y[r*v.OutW:][:v.OutW], a.X[(n*v.C+group*v.perGroup)*v.H*v.W:], w, from+r)
					}
				}
			}
			switch {
			case a.Bias != nil && run > 1:
				kernels.Add(y, y, a.Bias[channel:][:run])
			case a.Bias != nil:
				kernels.AddScalar(y, y, a.Bias[channel])
			}
			done.add(at+c*v.pixels, len(y))
		}
	}
}

// finished are elements of the result that have their sums and wait for the activation: small planes that follow each other get it in
// one call.
type finished struct {
	v      *Convolution
	a      *ConvData
	at, to int
}

// together is the most elements that wait, so that they are in L1 yet.
const together = 2048

func (f *finished) add(at, n int) {
	if at != f.to || at+n-f.at > together {
		f.flush()
		f.at = at
	}
	f.to = at + n
}

func (f *finished) flush() {
	if f.at == f.to {
		return
	}
	y := f.a.Y[f.at:f.to]
	if f.v.act != nil {
		f.v.act(y, y, nil, nil, Numbers{})
	}
	if f.v.Finish != nil {
		f.v.Finish(f.a, y, f.at)
	}
	f.at = f.to
}

// pack packs blocks of the weights.
func (v *Convolution) pack(lo, hi int, a *ConvData) {
	blocks := v.windows.Blocks()
	for u := lo; u < hi; u++ {
		group := u / blocks
		v.windows.Pack(a.Packed[group*v.windows.Packed():], a.W[group*v.outs*v.taps:], u%blocks)
	}
}

// poisoned reports whether weights that are not finite may have been multiplied with zeros of the padding: then there is NaN
// in y.
func (v *Convolution) poisoned(y, w []float32) bool {
	if v.whole {
		return false
	}
	if len(w) < len(y) {
		y, w = w, y
	}
	return !(kernels.MaxAbs(y) <= math.MaxFloat32) && !(kernels.MaxAbs(w) <= math.MaxFloat32)
}

// sum computes the rows of a band, which begins at row from, for each channel of a group, tap by tap.
func (v *Convolution) sum(y, x, w []float32, from, rows int) {
	if gemm.Filters && v.filter {
		for c := range v.outs {
			gemm.Filter(y[c*v.pixels:], x, w[c*v.taps:][:v.taps], v.offsets[:v.KW], v.OutW, rows, v.OutW, v.wide, v.step)
		}
		return
	}
	for i, t := range v.runs {
		first, last := max(0, t.row-from), rows
		if i+1 < len(v.runs) {
			last = min(last, v.runs[i+1].row-from)
		}
		if first >= last {
			continue
		}
		n, lines, step := v.OutW, last-first, v.step*v.wide
		if n == step { // lines follow each other without a gap
			n, lines = lines*n, 1
		}
		for c := range v.outs {
			gemm.Taps(y[c*v.pixels+first*v.OutW:], x[first*v.step*v.wide:], w[c*v.taps+t.lo:], v.offsets[t.lo:t.hi], n, lines, n, step)
		}
	}
}

// tapsOf returns the taps that read something else than padding above or below the input, for a row of the result. Those of several
// channels do not follow each other: then it is all of them.
func (v *Convolution) tapsOf(oy int) (lo, hi int) {
	top, d := oy*v.Stride[0]-v.Pad[0], v.Dilation[0]
	if v.perGroup > 1 || top >= 0 && top+(v.KH-1)*d < v.H {
		return 0, v.taps
	}
	first := CeilDiv(max(0, -top), d)
	last := min(v.KH, CeilDiv(max(0, v.H-top), d))
	return min(first, last) * v.KW, last * v.KW
}

// spread copies what rows of the result from a row on read of planes. What lies beside the planes is 0 already.
func (v *Convolution) spread(to, x []float32, from, rows int) {
	ahead := 0 // the next channel
	if v.perGroup > 1 {
		ahead = v.H * v.W
	}
	for ; len(x) > 0; x = x[v.H*v.W:] {
		plane := x[:v.H*v.W]
		for _, across := range v.rests[1] {
			lo, hi, at := v.inside(across - v.Pad[1])
			lines := rows + v.lines - v.band
			for i, down := range v.rests[0] {
				shift := from*v.Stride[0] + down - v.Pad[0] // line is the input's line·stride + shift
				first := min(CeilDiv(max(0, -shift), v.Stride[0]), lines)
				last := max(first, min(CeilDiv(max(0, v.H-shift), v.Stride[0]), lines))
				for line := range first {
					clear(to[(line*v.step+i)*v.wide:][:v.wide])
				}
				for line := last; line < lines; line++ {
					clear(to[(line*v.step+i)*v.wide:][:v.wide])
				}
				if first < last && lo < hi {
					gemm.Spread(to[(first*v.step+i)*v.wide+lo:], plane[(first*v.Stride[0]+shift)*v.W+at:],
						hi-lo, last-first, v.step*v.wide, v.Stride[0]*v.W, v.Stride[1], ahead)
				}
			}
			to = to[v.lines*v.step*v.wide:]
		}
	}
}

// inside returns which elements i of a line that is spread out are elements i·stride + shift of the input's line and not
// padding, and the one that the first of them is.
func (v *Convolution) inside(shift int) (lo, hi, at int) {
	s := v.Stride[1]
	lo = CeilDiv(max(0, -shift), s)
	if left := v.W - 1 - shift; left >= 0 {
		hi = min(left/s+1, v.wide)
	}
	return lo, hi, lo*s + shift
}

// row computes a row of the result without bias and activation. Taps over padding are left out, so that no weight is
// multiplied with a zero of the padding.
func (v *Convolution) row(y, x, w []float32, oy int) {
	clear(y)
	for c := range v.perGroup {
		plane := x[c*v.H*v.W:][:v.H*v.W]
		filter := w[c*v.KH*v.KW:]
		for ky := range v.KH {
			iy := oy*v.Stride[0] - v.Pad[0] + ky*v.Dilation[0]
			if iy < 0 || iy >= v.H {
				continue
			}
			line := plane[iy*v.W : (iy+1)*v.W]
			for kx := range v.KW {
				f := filter[ky*v.KW+kx]
				at := kx*v.Dilation[1] - v.Pad[1]
				for i := range y {
					if at >= 0 && at < v.W {
						y[i] += f * line[at]
					}
					at += v.Stride[1]
				}
			}
		}
	}
}
