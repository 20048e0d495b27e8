package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

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
