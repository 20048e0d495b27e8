package exec

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// number is an operand of one element that the walk depends on.
func (c *call) number(i int, def float64) (float64, error) {
	v := c.arg(i)
	if v == nil {
		return def, nil
	}
	t, err := c.constant(v)
	if err != nil {
		return 0, err
	}
	if t.Len() != 1 {
		return 0, fmt.Errorf("operand %d has shape %v, one number is needed: %w", i, t.Shape, compute.ErrShape)
	}
	return t.Floats()[0], nil
}

// source makes the random numbers of a node: by its seed, else others each time.
func (c *call) source() func() *rand.Rand {
	if !c.has("seed") {
		return func() *rand.Rand { return rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())) }
	}
	seed := uint64(math.Float32bits(c.float("seed", 0))) | uint64(c.int("seed", 0))
	return func() *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
}

// dropout is the identity but in training, where it hides elements at random.
func dropout(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	training := false
	ratio := float64(c.float("ratio", 0.5))
	if c.Version >= 12 {
		var err error
		if ratio, err = c.number(1, 0.5); err != nil {
			return nil, err
		}
		t, err := c.number(2, 0)
		if err != nil {
			return nil, err
		}
		training = t != 0
	}
	kind := host.Bool
	if c.Version < 10 {
		kind = x.kind
	}
	if !training || ratio == 0 {
		all, err := c.filled(host.Dims(x.shape).Ints(), host.FromFloats(kind, []float64{1}))
		if err != nil {
			return nil, err
		}
		return []*Value{x, all[0]}, nil
	}
	source := c.source()
	mask, err := c.onHost(c.Node.String(), 1, false, func([]*host.Tensor) ([]*host.Tensor, error) {
		r, m := source(), make([]float64, host.Len(x.shape))
		for i := range m {
			if r.Float64() >= ratio {
				m[i] = 1
			}
		}
		return []*host.Tensor{host.FromFloats(host.Bool, m, x.shape...)}, nil
	})
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(x, mask[0])
	if err != nil {
		return nil, err
	}
	b := c.rec()
	return []*Value{c.device(x.kind, b.Select(d[1], b.Scale(d[0], float32(1/(1-ratio))), b.Scalar(0))), mask[0]}, nil
}

// random are the operators that make numbers of a distribution.
func random(c *call) ([]*Value, error) {
	kind, shape := host.Float, toInts(c.ints("shape"))
	if c.Op == "RandomNormalLike" || c.Op == "RandomUniformLike" || c.Op == "Bernoulli" || c.Op == "Multinomial" {
		if err := c.need(1); err != nil {
			return nil, err
		}
		kind, shape = c.in[0].kind, c.in[0].shape
	}
	if c.Op == "Multinomial" {
		kind = host.Int32
	}
	if c.has("dtype") {
		kind = host.Kind(c.int("dtype", 0))
	}
	if !kind.Known() || kind == host.String {
		return nil, fmt.Errorf("random numbers of type %v: %w", kind, compute.ErrUnsupported)
	}
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	source := c.source()
	mean, deviation := float64(c.float("mean", 0)), float64(c.float("scale", 1))
	low, high := float64(c.float("low", 0)), float64(c.float("high", 1))
	var in []*Value
	if c.Op == "Bernoulli" || c.Op == "Multinomial" {
		in = c.in[:1]
	}
	samples := int(c.int("sample_size", 1))
	if c.Op == "Multinomial" && (len(shape) != 2 || samples < 1 || samples > host.Most || shape[1] == 0) {
		return nil, fmt.Errorf("%d samples of %v: %w", samples, c.in[0], compute.ErrShape)
	}
	return c.onHost(c.Node.String(), 1, false, func(in []*host.Tensor) ([]*host.Tensor, error) {
		r := source()
		if c.Op == "Multinomial" {
			p, out := in[0].Floats(), make([]int64, shape[0]*samples)
			for i := range out {
				row := p[i/samples*shape[1]:][:shape[1]]
				sum := 0.0
				for _, l := range row {
					sum += math.Exp(l)
				}
				at := r.Float64() * sum
				for k, l := range row {
					out[i] = int64(k)
					if at -= math.Exp(l); at < 0 {
						break
					}
				}
			}
			return []*host.Tensor{host.FromInts(kind, out, shape[0], samples)}, nil
		}
		x := make([]float64, host.Len(shape))
		var p []float64
		if len(in) > 0 {
			p = in[0].Floats()
		}
		for i := range x {
			switch {
			case p != nil:
				if r.Float64() < p[i] {
					x[i] = 1
				}
			case c.Op == "RandomNormal" || c.Op == "RandomNormalLike":
				x[i] = mean + deviation*r.NormFloat64()
			default:
				x[i] = low + (high-low)*r.Float64()
			}
		}
		return []*host.Tensor{host.FromFloats(kind, x, shape...)}, nil
	}, in...)
}

func unique(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x, axis := c.in[0], -1
	if c.has("axis") {
		var err error
		if axis, err = c.axis("axis", 0, len(x.shape)); err != nil {
			return nil, err
		}
	}
	sorted := c.flag("sorted", true)
	return c.onHost(c.Node.String(), 4, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		y, first, inverse, counts := host.Unique(in[0], axis, sorted)
		return []*host.Tensor{y, first, inverse, counts}, nil
	}, x)
}

func bitCast(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	to := host.Kind(c.int("to", 0))
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) { return host.BitCast(in[0], to) }, c.in[0])
}

func centerCropPad(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x := c.in[0]
	want, err := c.intsArg(1, "")
	if err != nil {
		return nil, err
	}
	axes := c.ints("axes")
	if axes == nil {
		for d := range x.shape {
			axes = append(axes, int64(d))
		}
	}
	if len(axes) != len(want) {
		return nil, fmt.Errorf("shape %v for axes %v: %w", want, axes, compute.ErrShape)
	}
	start, size, step := make([]int, len(x.shape)), slices.Clone(x.shape), slices.Repeat([]int{1}, len(x.shape))
	before, after := make([]int, len(x.shape)), make([]int, len(x.shape))
	for i, a := range axes {
		d, err := host.Axis(a, len(x.shape))
		if err != nil {
			return nil, err
		}
		if want[i] < 0 || want[i] > host.Most {
			return nil, fmt.Errorf("shape %v: %w", want, compute.ErrShape)
		}
		if more := int(want[i]) - x.shape[d]; more > 0 {
			before[d], after[d] = more/2, more-more/2
		} else {
			start[d], size[d] = -more/2, int(want[i])
		}
	}
	y, err := c.sliced(x, start, size, step)
	if err != nil {
		return nil, err
	}
	return c.padded(y, before, after, "constant", nil)
}

// col2Im adds columns of blocks up to a picture.
func col2Im(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x := c.in[0]
	image, err := c.intsArg(1, "")
	if err != nil {
		return nil, err
	}
	block, err := c.intsArg(2, "")
	if err != nil {
		return nil, err
	}
	spatial := toInts(image)
	w, err := c.windowOf(spatial, toInts(block))
	if err != nil {
		return nil, err
	}
	out, err := w.output(spatial)
	if err != nil {
		return nil, err
	}
	taps, cells := host.Len(w.size), host.Len(out)
	if len(x.shape) != 3 || x.shape[1]%taps != 0 || x.shape[2] != cells || !deviceFloat(x.kind) {
		return nil, fmt.Errorf("columns %v of blocks %v: %w", x, block, compute.ErrShape)
	}
	planes, elements := x.shape[0]*x.shape[1]/taps, host.Len(spatial)
	index, _ := w.taps(spatial, out)
	ids := make([]int64, 0, planes*len(index))
	for p := range planes {
		for k := range taps {
			for cell := range cells {
				if at := index[cell*taps+k]; at >= 0 {
					ids = append(ids, int64(p*elements+at))
				} else {
					ids = append(ids, int64(planes*elements)) // outside: ignored
				}
			}
		}
	}
	d, err := c.devAll(x, constant(host.OfInts(ids)))
	if err != nil {
		return nil, err
	}
	b := c.rec()
	y := b.ScatterAdd(b.Fill(0, planes*elements), d[1], b.Reshape(d[0], len(ids)))
	return c.made(x.kind, b.Reshape(y, slices.Concat([]int{x.shape[0], x.shape[1] / taps}, spatial)...))
}

func affineGrid(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	theta := c.in[0]
	size, err := c.intsArg(1, "")
	if err != nil {
		return nil, err
	}
	n := len(size) - 2
	if n != 2 && n != 3 || len(theta.shape) != 3 || theta.shape[1] != n || theta.shape[2] != n+1 || int64(theta.shape[0]) != size[0] {
		return nil, fmt.Errorf("grid of %v by %v: %w", size, theta, compute.ErrShape)
	}
	spatial := toInts(size[2:])
	if err := host.CheckShape(append(slices.Clone(spatial), n+1)); err != nil {
		return nil, err
	}
	align := c.int("align_corners", 0) != 0
	points := make([]float64, 0, host.Len(spatial)*(n+1))
	host.Positions(spatial, func(_ int, pos []int) {
		for d := n - 1; d >= 0; d-- { // x first
			m := float64(spatial[d])
			if align {
				if m == 1 {
					points = append(points, -1)
				} else {
					points = append(points, -1+2*float64(pos[d])/(m-1))
				}
			} else {
				points = append(points, -1+(2*float64(pos[d])+1)/m)
			}
		}
		points = append(points, 1)
	})
	grid := constant(host.FromFloats(host.Float, points, host.Len(spatial), n+1))
	if !deviceFloat(theta.kind) {
		return nil, fmt.Errorf("grid of %v: %w", theta.kind, compute.ErrUnsupported)
	}
	d, err := c.devAll(grid, theta)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	y := b.MatMul(d[0], d[1], compute.MatMulOptions{TransB: true})
	return c.made(theta.kind, b.Reshape(y, slices.Concat([]int{theta.shape[0]}, spatial, []int{n})...))
}

func maxUnpool(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, index := c.in[0], c.in[1]
	n := len(x.shape) - 2
	if n < 1 || !slices.Equal(x.shape, index.shape) {
		return nil, fmt.Errorf("%v at %v: %w", x, index, compute.ErrShape)
	}
	w, err := c.windowOf(x.shape[2:], toInts(c.ints("kernel_shape")))
	if err != nil {
		return nil, err
	}
	natural, shape := slices.Clone(x.shape), slices.Clone(x.shape)
	for d := range n {
		natural[2+d] = (x.shape[2+d]-1)*w.stride[d] + w.size[d] - w.before[d] - w.after[d]
	}
	copy(shape, natural)
	if c.arg(2) != nil {
		given, err := c.intsArg(2, "")
		if err != nil {
			return nil, err
		}
		if shape = toInts(given); len(shape) != len(x.shape) {
			return nil, fmt.Errorf("output %v of %v: %w", given, x, compute.ErrShape)
		}
	}
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	if err := host.CheckShape(natural); err != nil {
		return nil, err
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		at := host.Index{Shape: in[1].Shape, From: toInts(in[1].Ints())}
		st := host.Strides(shape)
		for i, a := range at.From { // indices count in the shape that the window gives
			if a < 0 || a >= host.Len(natural) {
				return nil, fmt.Errorf("index %d of %v: %w", a, natural, compute.ErrArgument)
			}
			to, rest := 0, a
			for d, s := range host.Strides(natural) {
				p := rest / s
				rest %= s
				if p >= shape[d] {
					return nil, fmt.Errorf("index %d of %v: %w", a, shape, compute.ErrArgument)
				}
				to += p * st[d]
			}
			at.From[i] = to
		}
		return host.New(in[0].Kind, shape...).Put(at, in[0], "none")
	}, x, index)
}

func det(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	r := len(x.shape)
	if r < 2 || x.shape[r-1] != x.shape[r-2] || !x.kind.IsFloat() {
		return nil, fmt.Errorf("%v has no square matrices: %w", x, compute.ErrShape)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		n, data := x.shape[r-1], in[0].Floats()
		out := make([]float64, host.Len(x.shape[:r-2]))
		for g := range out {
			a := data[g*n*n:][:n*n]
			out[g] = 1
			for i := range n {
				p := i
				for k := i + 1; k < n; k++ {
					if math.Abs(a[k*n+i]) > math.Abs(a[p*n+i]) {
						p = k
					}
				}
				if a[p*n+i] == 0 {
					out[g] = 0
					break
				}
				if p != i {
					for k := range n {
						a[i*n+k], a[p*n+k] = a[p*n+k], a[i*n+k]
					}
					out[g] = -out[g]
				}
				out[g] *= a[i*n+i]
				for k := i + 1; k < n; k++ {
					f := a[k*n+i] / a[i*n+i]
					for m := i; m < n; m++ {
						a[k*n+m] -= f * a[i*n+m]
					}
				}
			}
		}
		return host.FromFloats(in[0].Kind, out, x.shape[:r-2:r-2]...), nil
	}, x)
}

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

// optimizers are steps of training: operands are a rate, a count, then each of parameters, gradients and states.
func optimizer(c *call) ([]*Value, error) {
	states := map[string]int{"Adagrad": 1, "Momentum": 1, "Adam": 2}[c.Op]
	if err := c.need(max(len(c.in), 2)); err != nil {
		return nil, err
	}
	n := (len(c.in) - 2) / (2 + states)
	if n < 1 || len(c.in) != 2+n*(2+states) {
		return nil, fmt.Errorf("%d operands: %w", len(c.in), compute.ErrArgument)
	}
	t, err := c.number(1, 0)
	if err != nil {
		return nil, err
	}
	d, err := c.devAll(slices.Concat(c.in[:1], c.in[2:])...)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	rate := b.Reshape(d[0], []int{}...)
	decay := b.Scalar(c.float("norm_coefficient", 0))
	values, state1, state2 := make([]*Value, n), make([]*Value, n), make([]*Value, n)
	for i := range n {
		x, g, s := d[1+i], d[1+n+i], d[1+2*n+i]
		k := c.in[2+i].kind
		g = b.Add(b.Mul(decay, x), g)
		var next, s2 batch.Value
		switch c.Op {
		case "Adagrad":
			s = b.Add(s, b.Mul(g, g))
			r := b.Scale(rate, 1/(1+float32(t)*c.float("decay_factor", 0)))
			next = b.Sub(x, b.Div(b.Mul(r, g), b.Add(b.Sqrt(s), b.Scalar(c.float("epsilon", 1e-6)))))
		case "Momentum":
			alpha, beta := c.float("alpha", 0), c.float("beta", 0)
			if t == 0 {
				beta = 1
			}
			s = b.Add(b.Scale(s, alpha), b.Scale(g, beta))
			step := s
			if c.text("mode", "standard") == "nesterov" {
				step = b.Add(g, b.Scale(s, alpha))
			}
			next = b.Sub(x, b.Mul(rate, step))
		case "Adam":
			alpha, beta := c.float("alpha", 0.9), c.float("beta", 0.999)
			h := d[1+3*n+i]
			s = b.Add(b.Scale(s, alpha), b.Scale(g, 1-alpha))
			s2 = b.Add(b.Scale(h, beta), b.Scale(b.Mul(g, g), 1-beta))
			r := rate
			if t > 0 {
				r = b.Scale(rate, float32(math.Sqrt(1-math.Pow(float64(beta), t))/(1-math.Pow(float64(alpha), t))))
			}
			next = b.Sub(x, b.Div(b.Mul(r, s), b.Add(b.Sqrt(s2), b.Scalar(c.float("epsilon", 1e-6)))))
			next = b.Scale(next, 1-c.float("norm_coefficient_post", 0))
			state2[i] = c.device(k, s2)
		}
		values[i], state1[i] = c.device(k, next), c.device(k, s)
	}
	if states == 2 {
		return slices.Concat(values, state1, state2), nil
	}
	return slices.Concat(values, state1), nil
}
