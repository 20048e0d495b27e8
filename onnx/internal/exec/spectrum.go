package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// fourier are the cosines and sines of a transform of n elements: [n, count].
func fourier(n, count int, inverse bool) (cosines, sines []float64) {
	cosines, sines = make([]float64, n*count), make([]float64, n*count)
	sign, scale := -1.0, 1.0
	if inverse {
		sign, scale = 1, 1/float64(n)
	}
	for i := range n {
		for k := range count {
			angle := sign * 2 * math.Pi * float64(i*k%n) / float64(n)
			cosines[i*count+k], sines[i*count+k] = scale*math.Cos(angle), scale*math.Sin(angle)
		}
	}
	return cosines, sines
}

// transformed is a discrete transform of the rows of [rows, n, parts], by products with cosines and sines, to [rows, count, 2].
func (c *call) transformed(x batch.Value, n, count int, inverse bool) (batch.Value, error) {
	if n > 1<<13 {
		return x, fmt.Errorf("Fourier transform of %d elements: %w", n, compute.ErrTooLarge)
	}
	cs, sn := fourier(n, count, inverse)
	d, err := c.devAll(constant(host.FromFloats(host.Float, cs, n, count)), constant(host.FromFloats(host.Float, sn, n, count)))
	if err != nil {
		return x, err
	}
	b := c.rec()
	shape := b.Shape(x)
	rows, parts := shape[0], shape[2]
	part := func(i int) batch.Value {
		return b.Reshape(b.Slice(x, compute.SliceOptions{Start: []int{0, 0, i}, Size: []int{rows, n, 1}}), rows, n)
	}
	cosine, sine := b.Reshape(d[0], n, count), b.Reshape(d[1], n, count)
	re, im := b.MatMul(part(0), cosine), b.MatMul(part(0), sine)
	if parts == 2 {
		re, im = b.Sub(re, b.MatMul(part(1), sine)), b.Add(im, b.MatMul(part(1), cosine))
	}
	return b.Concat(2, b.Reshape(re, rows, count, 1), b.Reshape(im, rows, count, 1)), nil
}

func dft(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	rank := len(x.shape)
	axisDefault := int64(-2)
	if c.Version < 20 {
		axisDefault = 1
	}
	a, err := c.number(2, float64(c.int("axis", axisDefault)))
	if err != nil {
		return nil, err
	}
	axis, err := host.Axis(int64(a), rank)
	if err != nil || rank < 2 || axis == rank-1 || x.shape[rank-1] < 1 || x.shape[rank-1] > 2 || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("Fourier transform of %v along axis %v: %w", x, a, compute.ErrShape)
	}
	inverse, half := c.int("inverse", 0) != 0, c.int("onesided", 0) != 0
	given := float64(x.shape[axis])
	if inverse && half {
		given = float64(2 * (x.shape[axis] - 1))
	}
	length, err := c.number(1, given)
	if err != nil {
		return nil, err
	}
	n := int(length)
	if n < 1 || n > host.Most {
		return nil, fmt.Errorf("Fourier transform of %d elements: %w", n, compute.ErrArgument)
	}
	y := x
	if inverse && half { // the other half is its conjugate
		return c.halfInverse(x, axis, n)
	}
	if n < x.shape[axis] {
		y, err = c.part(x, axis, 0, n)
	} else if n > x.shape[axis] {
		after := make([]int, rank)
		after[axis] = n - x.shape[axis]
		var p []*Value
		if p, err = c.padded(x, make([]int, rank), after, "constant", nil); err == nil {
			y = p[0]
		}
	}
	if err != nil {
		return nil, err
	}
	perm := []int{}
	for d := range rank - 1 {
		if d != axis {
			perm = append(perm, d)
		}
	}
	perm = append(perm, axis, rank-1)
	if y, err = c.transposed(y, perm); err != nil {
		return nil, err
	}
	shape := slices.Clone(y.shape)
	if y, err = c.reshaped(y, []int{host.Len(shape[:rank-2]), n, x.shape[rank-1]}); err != nil {
		return nil, err
	}
	d, err := c.dev(y)
	if err != nil {
		return nil, err
	}
	count := n
	if half {
		count = n/2 + 1
	}
	if d, err = c.transformed(d, n, count, inverse); err != nil {
		return nil, err
	}
	shape[rank-2], shape[rank-1] = count, 2
	back := make([]int, rank)
	for i, p := range perm {
		back[p] = i
	}
	return c.made(x.kind, transposed(c.rec(), c.rec().Reshape(d, shape...), back))
}

// halfInverse gives the real signal of n elements whose spectrum is given as far as it is no repetition.
func (c *call) halfInverse(x *Value, axis, n int) ([]*Value, error) {
	rank := len(x.shape)
	have := x.shape[axis]
	shape := slices.Clone(x.shape)
	shape[axis], shape[rank-1] = n, 1
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		f := in[0].Floats()
		parts := x.shape[rank-1]
		inner := host.Len(x.shape[axis+1 : rank-1])
		out := make([]float64, host.Len(shape))
		for i := range out {
			j, t, o := i%inner, i/inner%n, i/inner/n
			for k := range n {
				m, sign := k, 1.0
				if k > n/2 {
					m, sign = n-k, -1
				}
				if m >= have {
					continue
				}
				at := ((o*have+m)*inner + j) * parts
				re, im := f[at], 0.0
				if parts == 2 {
					im = sign * f[at+1]
				}
				angle := 2 * math.Pi * float64(k*t%n) / float64(n)
				out[i] += (re*math.Cos(angle) - im*math.Sin(angle)) / float64(n)
			}
		}
		return host.FromFloats(in[0].Kind, out, shape...), nil
	}, x)
}

func stft(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, window := c.in[0], c.arg(2)
	if len(x.shape) == 2 {
		var err error
		if x, err = c.reshaped(x, append(slices.Clone(x.shape), 1)); err != nil {
			return nil, err
		}
	}
	step, err := c.number(1, 0)
	if err != nil {
		return nil, err
	}
	if len(x.shape) != 3 || x.shape[2] < 1 || x.shape[2] > 2 || !deviceFloat(x.kind) || !(step >= 1) || step > host.Most {
		return nil, fmt.Errorf("signal %v in steps of %v: %w", x, step, compute.ErrShape)
	}
	def := float64(x.shape[1])
	if window != nil {
		def = float64(host.Len(window.shape))
	}
	length, err := c.number(3, def)
	if err != nil {
		return nil, err
	}
	n := int(length)
	if n < 1 || n > x.shape[1] || window != nil && (host.Len(window.shape) != n || window.kind != x.kind) {
		return nil, fmt.Errorf("frames of %d of %v: %w", n, x, compute.ErrShape)
	}
	frames := (x.shape[1]-n)/int(step) + 1
	ids := make([]int64, frames*n)
	for i := range ids {
		ids[i] = int64(i/n*int(step) + i%n)
	}
	d, err := c.devAll(x, constant(host.OfInts(ids, frames*n)), window)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	y := b.Reshape(b.Gather(d[0], d[1], compute.GatherOptions{Axis: 1}), x.shape[0]*frames, n, x.shape[2])
	if window != nil {
		y = b.Mul(y, b.Reshape(d[2], n, 1))
	}
	count := n
	if c.int("onesided", 1) != 0 {
		count = n/2 + 1
	}
	if y, err = c.transformed(y, n, count, false); err != nil {
		return nil, err
	}
	return c.made(x.kind, b.Reshape(y, x.shape[0], frames, count, 2))
}

// cosineWindow is a window of signal processing, a sum of cosines.
func cosineWindow(a ...float64) func(c *call) ([]*Value, error) {
	return func(c *call) ([]*Value, error) {
		n, err := c.number(0, -1)
		if err != nil {
			return nil, err
		}
		kind := host.Kind(c.int("output_datatype", int64(host.Float)))
		if !(n >= 0 && n <= host.Most) || !kind.Known() || kind == host.String {
			return nil, fmt.Errorf("window of %v numbers of type %v: %w", n, kind, compute.ErrArgument)
		}
		period := n
		if c.int("periodic", 1) == 0 {
			period = n - 1
		}
		out := make([]float64, int(n))
		for i := range out {
			for k, w := range a {
				out[i] += w * math.Cos(2*math.Pi*float64(k*i)/period)
			}
		}
		return knownResult(host.FromFloats(kind, out, len(out)))
	}
}

func melWeightMatrix(c *call) ([]*Value, error) {
	if err := c.need(5); err != nil {
		return nil, err
	}
	var v [5]float64
	for i := range v {
		var err error
		if v[i], err = c.number(i, 0); err != nil {
			return nil, err
		}
	}
	bins, length, rate, low, high := v[0], v[1], v[2], v[3], v[4]
	kind := host.Kind(c.int("output_datatype", int64(host.Float)))
	rows := math.Floor(length/2) + 1
	if !(bins >= 1 && rows >= 1 && rate > 0 && bins*rows < host.Most) || !kind.Known() || kind == host.String {
		return nil, fmt.Errorf("%v bins of %v frequencies: %w", bins, rows, compute.ErrArgument)
	}
	mel := func(f float64) float64 { return 2595 * math.Log10(1+f/700) }
	hertz := func(m float64) float64 { return 700 * (math.Pow(10, m/2595) - 1) }
	n := int(bins)
	edges := make([]int, n+2)
	for i := range edges {
		m := mel(low) + float64(i)*(mel(high)-mel(low))/float64(n+2)
		edges[i] = int(math.Floor((length + 1) * hertz(m) / rate))
	}
	out := make([]float64, int(rows)*n)
	set := func(row, col int, x float64) {
		if row >= 0 && row < int(rows) {
			out[row*n+col] = x
		}
	}
	for i := range n {
		lo, mid, hi := edges[i], edges[i+1], edges[i+2]
		if mid == lo {
			set(mid, i, 1)
		} else {
			for j := lo; j <= mid; j++ {
				set(j, i, float64(j-lo)/float64(mid-lo))
			}
		}
		if hi > mid {
			for j := mid; j < hi; j++ {
				set(j, i, float64(hi-j)/float64(hi-mid))
			}
		}
	}
	return knownResult(host.FromFloats(kind, out, int(rows), n))
}
