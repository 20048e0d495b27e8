package simd

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/internal/simd/pool"
)

// Functions that move elements, and those over windows. Matrices and images are in row-major order. Options and shapes that do
// not fit cause a panic like wrong lengths do, with the error that the device returns for them.

// Transpose exchanges rows and columns: dst, cols×rows, is the transposed x, rows×cols. Dst may be x itself if rows = cols,
// else they must not overlap.
func Transpose(dst, x []float32, rows, cols int) {
	n := area("Transpose", rows, cols)
	engine.MustLen("Transpose", len(x), n)
	engine.MustLen("Transpose", len(dst), n)
	if rows == cols && engine.Address(dst) == engine.Address(x) {
		kernels.TransposeInPlace(engine.Words(x), rows, rows)
		return
	}
	engine.MustApart("Transpose", dst, x)
	const band = 64
	if n := engine.ThreadsFor(0.4 * float64(len(x))); n > 1 {
		engine.InParts(engine.CeilDiv(cols, band), n, func(part int) {
			j := part * band
			kernels.Transpose(engine.Words(dst[j*rows:]), rows, engine.Words(x[j:]), cols, rows, min(band, cols-j))
		})
		return
	}
	kernels.Transpose(engine.Words(dst), rows, engine.Words(x), cols, rows, cols)
}

// Identity sets dst to the n×n matrix with ones on its diagonal and zeros elsewhere.
func Identity(dst []float32, n int) {
	engine.MustLen("Identity", len(dst), area("Identity", n, n))
	clear(dst)
	for i := 0; i < len(dst); i += n + 1 {
		dst[i] = 1
	}
}

// Pad sets dst to x, of the given shape, with elements of one value added around it: the result's size along each axis is the
// shape's plus Before and After. They must not overlap.
func Pad(dst, x []float32, shape []int, o compute.PadOptions) {
	if len(o.Before) != len(shape) || len(o.After) != len(shape) || len(shape) > program.MaxRank {
		badPad(shape, o)
	}
	in, out, before := [program.MaxRank + 1]int{1}, [program.MaxRank + 1]int{1}, [program.MaxRank + 1]int{} // an axis more, for no axes
	for i, d := range shape {
		if o.Before[i] < 0 || o.After[i] < 0 || o.Before[i] > program.MaxElements || o.After[i] > program.MaxElements {
			badPad(shape, o)
		}
		in[i+1], out[i+1], before[i+1] = d, d+o.Before[i]+o.After[i], o.Before[i]
	}
	rank := len(shape) + 1
	engine.MustLen("Pad", len(x), elements("Pad", in[:rank]...))
	engine.MustLen("Pad", len(dst), elements("Pad", out[:rank]...))
	engine.MustApart("Pad", dst, x)
	if len(dst) > 0 {
		engine.PadRows(engine.Words(dst), engine.Words(x), in[:rank], out[:rank], before[:rank], math.Float32bits(o.Value), 0, len(dst)/out[rank-1])
	}
}

//go:noinline // keeps what it prints from escaping in Pad
func badPad(shape []int, o compute.PadOptions) {
	panic(fmt.Errorf("simd.Pad: before %v, after %v for shape %v: %w", slices.Clone(o.Before), slices.Clone(o.After),
		slices.Clone(shape), compute.ErrArgument))
}

// Gather sets dst[i] = x[ids[i]]; an id outside x gives NaN. Dst must not overlap x.
func Gather(dst, x []float32, ids []int32) {
	engine.MustLen("Gather", len(dst), len(ids))
	engine.MustApart("Gather", dst, x)
	for i, id := range ids {
		if uint(id) < uint(len(x)) {
			dst[i] = x[id]
		} else {
			dst[i] = float32(math.NaN())
		}
	}
}

// Embedding copies rows of table, of width elements each, by their ids: dst has len(ids) rows. An id outside the table gives
// a row of NaN. Dst must not overlap table.
func Embedding(dst, table []float32, ids []int32, width int) {
	engine.MustLen("Embedding", len(dst), area("Embedding", len(ids), width))
	if width > 0 && len(table)%width != 0 {
		panic(fmt.Errorf("simd.Embedding: a table of %d elements has no rows of %d: %w", len(table), width, compute.ErrShape))
	}
	engine.MustApart("Embedding", dst, table)
	if width == 0 {
		return
	}
	const grain = 1 << 14 // elements
	if n := engine.ThreadsFor(0.3 * float64(len(dst))); n > 1 {
		rows := max(1, grain/width)
		engine.InParts(engine.CeilDiv(len(ids), rows), n, func(part int) {
			lo, hi := part*rows, min((part+1)*rows, len(ids))
			engine.Embed(dst[lo*width:hi*width], table, ids[lo:hi], width, float32(math.NaN()))
		})
		return
	}
	engine.Embed(dst, table, ids, width, float32(math.NaN()))
}

// UniqueIDs appends the distinct ids to dst, in ascending order: the rows that an [Embedding] reads and its gradient changes.
// It allocates only if the capacity of dst is less than the number of ids, repeated ones included. Dst must not overlap ids.
func UniqueIDs(dst, ids []int32) []int32 {
	n := len(dst)
	dst = append(dst, ids...)
	slices.Sort(dst[n:])
	return dst[:n+len(slices.Compact(dst[n:]))]
}

// Conv2DShape returns the shape [n, o, h, w] of the result of [Conv2D].
func Conv2DShape(x, weights [4]int, o compute.Conv2DOptions) ([4]int, error) {
	d, err := convShape(x, weights, o)
	if err != nil {
		return [4]int{}, fmt.Errorf("simd.Conv2D: %v with %v: %w", x, weights, err)
	}
	return [4]int{d.N, d.OutC, d.OutH, d.OutW}, nil
}

func convShape(x, weights [4]int, o compute.Conv2DOptions) (catalogue.ConvDims, error) {
	for i := range x {
		if x[i] < 0 || weights[i] < 0 {
			return catalogue.ConvDims{}, compute.ErrShape
		}
	}
	if _, err := catalogue.ActivationEntry(o.Act); err != nil {
		return catalogue.ConvDims{}, err
	}
	return catalogue.ConvShape(x[:], weights[:], o)
}

// Conv2D cross-correlates x, of shape [n, c, h, w], with weights [o, c/groups, kh, kw], adds the bias, one element for each
// output channel or nil, and applies the activation of the options. Dst has the elements of the shape that [Conv2DShape]
// returns and must not overlap an operand.
func Conv2D(dst, x, weights, bias []float32, xShape, weightsShape [4]int, o compute.Conv2DOptions) {
	d, err := convShape(xShape, weightsShape, o)
	if err != nil {
		panic(fmt.Errorf("simd.Conv2D: %v with %v: %w", xShape, weightsShape, err))
	}
	engine.MustLen("Conv2D", len(x), elements("Conv2D", xShape[:]...))
	engine.MustLen("Conv2D", len(weights), elements("Conv2D", weightsShape[:]...))
	engine.MustLen("Conv2D", len(dst), elements("Conv2D", d.N, d.OutC, d.OutH, d.OutW))
	engine.MustApart("Conv2D", dst, x)
	engine.MustApart("Conv2D", dst, weights)
	if bias != nil {
		engine.MustLen("Conv2D", len(bias), d.OutC)
		engine.MustApart("Conv2D", dst, bias)
	}
	if len(dst) == 0 {
		return
	}
	c := convCalls.Get().(*convCall)
	defer convCalls.Put(c)
	n := pool.Limit()
	c.Plan(d, o.Act, n)
	c.Packed = engine.Grow(c.Packed, c.Scratch())
	c.ConvData = engine.ConvData{X: x, W: weights, Bias: bias, Y: dst, Packed: c.Packed}
	for i := range c.Phases() {
		units, ns := c.Phase(i)
		if n < 2 || ns*float64(units) < engine.SplitTime {
			c.Convolution.Do(i, 0, units, &c.ConvData)
			continue
		}
		c.current, c.units, c.grain = i, units, max(1, min(units, int(engine.PartTime/ns)))
		pool.Shared().EachN(c, engine.CeilDiv(units, c.grain), n)
	}
	c.ConvData = engine.ConvData{Packed: c.Packed}
}

// convCall is a call of Conv2D, a task of the pool.
type convCall struct {
	engine.Convolution
	engine.ConvData
	current, units, grain int
}

func (c *convCall) Do(part int) {
	lo := part * c.grain
	c.Convolution.Do(c.current, lo, min(lo+c.grain, c.units), &c.ConvData)
}

var convCalls = sync.Pool{New: func() any { return new(convCall) }}

// Pool2DShape returns the size of the planes that [MaxPool2D] and [AvgPool2D] make of planes of h×w elements.
func Pool2DShape(h, w int, o compute.PoolOptions) (outH, outW int, err error) {
	d, err := poolShape(1, h, w, o)
	if err != nil {
		return 0, 0, fmt.Errorf("simd.Pool2D: [%d %d]: %w", h, w, err)
	}
	return d.OutH, d.OutW, nil
}

func poolShape(planes, h, w int, o compute.PoolOptions) (catalogue.ConvDims, error) {
	if planes < 0 || h < 0 || w < 0 {
		return catalogue.ConvDims{}, compute.ErrShape
	}
	shape := [3]int{planes, h, w}
	return catalogue.PoolShape(shape[:], o)
}

// MaxPool2D sets dst to the largest element of each window over planes of h×w elements, NaN where a window has NaN. The
// planes of dst have the size that [Pool2DShape] returns. Dst must not overlap x.
func MaxPool2D(dst, x []float32, planes, h, w int, o compute.PoolOptions) {
	pool2D("MaxPool2D", false, dst, x, planes, h, w, o)
}

// AvgPool2D sets dst to the mean of each window over planes of h×w elements; padding does not count. The planes of dst have
// the size that [Pool2DShape] returns. Dst must not overlap x.
func AvgPool2D(dst, x []float32, planes, h, w int, o compute.PoolOptions) {
	pool2D("AvgPool2D", true, dst, x, planes, h, w, o)
}

func pool2D(name string, mean bool, dst, x []float32, planes, h, w int, o compute.PoolOptions) {
	d, err := poolShape(planes, h, w, o)
	if err != nil {
		panic(fmt.Errorf("simd.%s: [%d %d %d]: %w", name, planes, h, w, err))
	}
	engine.MustLen(name, len(x), elements(name, planes, h, w))
	engine.MustLen(name, len(dst), elements(name, planes, d.OutH, d.OutW))
	engine.MustApart(name, dst, x)
	p := engine.Pooling{ConvDims: d, Mean: mean}
	units := d.N * d.OutH
	if units == 0 || d.OutW == 0 {
		return
	}
	if n := engine.ThreadsFor(p.Ns() * float64(units)); n > 1 {
		grain := max(1, int(engine.PartTime/p.Ns()))
		p := p // for the closure
		engine.InParts(engine.CeilDiv(units, grain), n, func(part int) { p.Do(dst, x, part*grain, min((part+1)*grain, units)) })
		return
	}
	p.Do(dst, x, 0, units)
}

// elements is the product of sizes.
func elements(name string, sizes ...int) int {
	n := 1
	for _, d := range sizes {
		high, low := bits.Mul(uint(n), uint(d)) // a division takes longer than a small product
		if d < 0 || high > 0 || low > math.MaxInt {
			panic(fmt.Errorf("simd.%s: no slice has a shape of %v: %w", name, slices.Clone(sizes), compute.ErrShape))
		}
		n = int(low)
	}
	return n
}

// area is elements of a matrix, without a slice of sizes.
func area(name string, rows, cols int) int {
	high, n := bits.Mul(uint(rows), uint(cols))
	if high > 0 || int(n)|rows|cols < 0 {
		elements(name, rows, cols) // panics
	}
	return int(n)
}
