package exec

import (
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Resizing goes axis by axis. Each is a product with a matrix whose rows hold the weights of an element of the result, or, where every
// row has one weight of 1, a gather.

// resizeAxis is how one axis changes.
type resizeAxis struct {
	axis, from, to int
	scale          float64
	start, end     float64 // of the region, as a part of the axis
}

// resizing are the attributes.
type resizing struct {
	mode, transform, nearest string
	cubic                    float64
	antialias, exclude       bool
	extrapolation            float32
}

// at is the coordinate in the input of element i of the result.
func (r *resizing) at(a *resizeAxis, i int) float64 {
	x, from, to := float64(i), float64(a.from), float64(a.to)
	switch r.transform {
	case "align_corners":
		if a.to == 1 {
			return 0
		}
		return x * (from - 1) / (from*a.scale - 1)
	case "asymmetric":
		return x / a.scale
	case "pytorch_half_pixel":
		if a.to == 1 {
			return 0
		}
	case "tf_half_pixel_for_nn":
		return (x + 0.5) / a.scale
	case "tf_crop_and_resize":
		if a.to == 1 {
			return 0.5 * (a.start + a.end) * (from - 1)
		}
		return a.start*(from-1) + x*(a.end-a.start)*(from-1)/(to-1)
	case "half_pixel_symmetric":
		size := from * a.scale
		adjust := to / size
		center := from / 2
		return center*(1-adjust) + (x+0.5)/a.scale - 0.5
	}
	return (x+0.5)/a.scale - 0.5
}

func (r *resizing) round(x float64) float64 {
	switch r.nearest {
	case "round_prefer_ceil":
		return math.Floor(x + 0.5)
	case "floor":
		return math.Floor(x)
	case "ceil":
		return math.Ceil(x)
	}
	return math.Ceil(x - 0.5)
}

// kernel is the weight at a distance.
func (r *resizing) kernel(x float64) float64 {
	x = math.Abs(x)
	if r.mode == "linear" {
		return max(0, 1-x)
	}
	a := r.cubic
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

// rows are the weights of the elements of the result: matrix[to][from]; outside are those beyond the input.
func (r *resizing) rows(a *resizeAxis) (matrix []float32, single []int64, outside []bool) {
	matrix, outside = make([]float32, a.to*a.from), make([]bool, a.to)
	if r.mode == "nearest" {
		single = make([]int64, a.to)
	}
	for i := range a.to {
		x := r.at(a, i)
		if r.transform == "tf_crop_and_resize" && (x < 0 || x > float64(a.from-1)) {
			outside[i] = true
		}
		if r.mode == "nearest" {
			single[i] = int64(min(max(r.round(x), 0), float64(a.from-1)))
			continue
		}
		stretch := 1.0
		if r.antialias && a.scale < 1 {
			stretch = a.scale
		}
		radius := 1.0
		if r.mode == "cubic" {
			radius = 2
		}
		radius /= stretch
		row := matrix[i*a.from : (i+1)*a.from]
		sum, weights := 0.0, map[int]float64{}
		for k := int(math.Floor(x-radius)) - 1; k <= int(math.Ceil(x+radius))+1; k++ {
			w := r.kernel((float64(k) - x) * stretch)
			if w == 0 || r.exclude && (k < 0 || k >= a.from) {
				continue
			}
			weights[k] = w
			sum += w
		}
		for k, w := range weights {
			if r.exclude || stretch != 1 {
				w /= sum
			}
			row[min(max(k, 0), a.from-1)] += float32(w)
		}
	}
	return matrix, single, outside
}

func resize(c *call) ([]*Value, error) {
	if err := c.need(1); err != nil {
		return nil, err
	}
	x := c.in[0]
	rank := len(x.shape)
	r := resizing{mode: c.text("mode", "nearest"), transform: c.text("coordinate_transformation_mode", "half_pixel"),
		nearest: c.text("nearest_mode", "round_prefer_floor"), cubic: float64(c.float("cubic_coeff_a", -0.75)),
		antialias: c.int("antialias", 0) != 0, exclude: c.int("exclude_outside", 0) != 0, extrapolation: c.float("extrapolation_value", 0)}
	roiAt, scaleAt, sizeAt := 1, 2, 3
	if c.Op == "Upsample" || c.Version < 11 {
		roiAt, scaleAt, sizeAt = -1, 1, -1
		r.transform, r.nearest = "asymmetric", "floor"
		if r.mode == "bilinear" {
			r.mode = "linear"
		}
	}
	numbers := func(i int) ([]float64, error) {
		if i < 0 || c.arg(i) == nil || host.Len(c.arg(i).shape) == 0 {
			return nil, nil
		}
		t, err := c.constant(c.arg(i))
		if err != nil {
			return nil, err
		}
		return t.Floats(), nil
	}
	roi, err := numbers(roiAt)
	if err != nil {
		return nil, err
	}
	scales, err := numbers(scaleAt)
	if err != nil {
		return nil, err
	}
	if scales == nil {
		for _, s := range c.floats("scales") {
			scales = append(scales, float64(s))
		}
	}
	sizes, err := numbers(sizeAt)
	if err != nil {
		return nil, err
	}
	axes := make([]int, 0, rank)
	for d := range rank {
		axes = append(axes, d)
	}
	if given := c.ints("axes"); given != nil {
		axes = axes[:0]
		for _, a := range given {
			d, err := host.Axis(a, rank)
			if err != nil {
				return nil, err
			}
			axes = append(axes, d)
		}
	}
	if len(scales) != len(axes) && len(sizes) != len(axes) {
		return nil, fmt.Errorf("scales %v and sizes %v for %d axes: %w", scales, sizes, len(axes), compute.ErrArgument)
	}
	policy := c.text("keep_aspect_ratio_policy", "stretch")
	if sizes != nil && policy != "stretch" {
		scale := math.Inf(1)
		if policy == "not_smaller" {
			scale = 0
		}
		for i, d := range axes {
			s := sizes[i] / float64(x.shape[d])
			if policy == "not_larger" {
				scale = min(scale, s)
			} else {
				scale = max(scale, s)
			}
		}
		scales = make([]float64, len(axes))
		for i, d := range axes {
			scales[i], sizes[i] = scale, math.Floor(scale*float64(x.shape[d])+0.5)
		}
	}
	shape := slices.Clone(x.shape)
	var changes []resizeAxis
	for i, d := range axes {
		a := resizeAxis{axis: d, from: x.shape[d], end: 1}
		if roi != nil && r.transform == "tf_crop_and_resize" {
			if len(roi) != 2*len(axes) {
				return nil, fmt.Errorf("region %v for %d axes: %w", roi, len(axes), compute.ErrArgument)
			}
			a.start, a.end = roi[i], roi[i+len(axes)]
		}
		size := 0.0
		if sizes != nil {
			size = sizes[i]
			a.scale = size / float64(a.from)
			if policy != "stretch" {
				a.scale = scales[i]
			}
		} else {
			a.scale = scales[i]
			size = math.Floor(float64(a.from) * (a.end - a.start) * a.scale)
			if r.transform != "tf_crop_and_resize" {
				size = math.Floor(float64(a.from) * a.scale)
			}
		}
		if !(size >= 0 && size <= host.Most) || !(a.scale > 0) || a.from == 0 && size > 0 {
			return nil, fmt.Errorf("axis %d of %v becomes %v elements by %v: %w", d, x, size, a.scale, compute.ErrShape)
		}
		a.to = int(size)
		shape[d] = a.to
		if a.to != a.from || a.scale != 1 || a.start != 0 || a.end != 1 {
			changes = append(changes, a)
		}
	}
	if err := host.CheckShape(shape); err != nil {
		return nil, err
	}
	if len(changes) == 0 {
		return []*Value{x}, nil
	}
	if !deviceFloat(x.kind) {
		if r.mode != "nearest" {
			return nil, fmt.Errorf("%s resizing of %v: %w", r.mode, x.kind, compute.ErrUnsupported)
		}
		y := []*Value{x}
		for i := range changes {
			_, single, _ := r.rows(&changes[i])
			axis := changes[i].axis
			if y, err = c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
				index, err := host.GatherIndex(in[0].Shape, axis, host.OfInts(single))
				if err != nil {
					return nil, err
				}
				return in[0].Pick(index), nil
			}, y[0]); err != nil {
				return nil, err
			}
		}
		return y, nil
	}
	d, err := c.dev(x)
	if err != nil {
		return nil, err
	}
	b := c.rec()
	slices.SortStableFunc(changes, func(a, b resizeAxis) int { // axes that shrink first; of those that grow the last first: rows are copied faster
		switch growsA, growsB := a.to > a.from, b.to > b.from; {
		case growsA != growsB && growsA:
			return 1
		case growsA != growsB:
			return -1
		case growsA:
			return b.axis - a.axis
		}
		return a.axis - b.axis
	})
	var masks []batch.Value
	for i := range changes {
		a := &changes[i]
		if int64(a.from)*int64(a.to) > 1<<28 {
			return nil, fmt.Errorf("resizing an axis of %d to %d: %w", a.from, a.to, compute.ErrTooLarge)
		}
		matrix, single, outside := r.rows(a)
		now := b.Shape(d)
		if single != nil {
			table, err := c.dev(constant(host.OfInts(single, a.to)))
			if err != nil {
				return nil, err
			}
			d = b.Gather(d, table, compute.GatherOptions{Axis: a.axis})
		} else {
			w, err := c.dev(constant(&host.Tensor{Kind: host.Float, Shape: []int{a.to, a.from}, Data: matrix}))
			if err != nil {
				return nil, err
			}
			inner := host.Len(now[a.axis+1:])
			if inner == 1 {
				d = b.MatMul(b.Reshape(d, host.Len(now[:a.axis]), a.from), b.Reshape(w, a.to, a.from), compute.MatMulOptions{TransB: true})
			} else {
				d = b.MatMul(b.Reshape(w, a.to, a.from), b.Reshape(d, host.Len(now[:a.axis]), a.from, inner))
			}
			now[a.axis] = a.to
			d = b.Reshape(d, now...)
		}
		if slices.Contains(outside, true) {
			mask := make([]float32, a.to)
			for k, o := range outside {
				if o {
					mask[k] = 1
				}
			}
			line := slices.Repeat([]int{1}, rank)
			line[a.axis] = a.to
			m, err := c.dev(constant(&host.Tensor{Kind: host.Float, Shape: line, Data: mask}))
			if err != nil {
				return nil, err
			}
			masks = append(masks, m)
		}
	}
	for _, m := range masks {
		d = b.Select(m, b.Scalar(r.extrapolation), d)
	}
	return c.made(x.kind, d)
}
