package exec

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// Operators that take samples between the elements of pictures, and others of detection, on the host.

// corners returns the elements around a position and their weights, linear along each axis; positions outside have no element.
func corners(shape []int, at []float64, visit func(index int, w float64)) {
	st := host.Strides(shape)
	for corner := range 1 << len(shape) {
		index, w := 0, 1.0
		for d := range shape {
			low := math.Floor(at[d])
			frac := at[d] - low
			p := low
			if corner>>d&1 == 1 {
				p, w = low+1, w*frac
			} else {
				w *= 1 - frac
			}
			if p < 0 || p >= float64(shape[d]) {
				w = 0
				break
			}
			index += int(p) * st[d]
		}
		if w != 0 {
			visit(index, w)
		}
	}
}

// reflected brings a position into [low, high].
func reflected(x, low, high float64) float64 {
	span := high - low
	if span <= 0 {
		return low
	}
	if x < low {
		d := low - x
		n := math.Floor(d / span)
		r := d - n*span
		if int64(n)%2 == 0 {
			return low + r
		}
		return high - r
	}
	if x > high {
		d := x - high
		n := math.Floor(d / span)
		r := d - n*span
		if int64(n)%2 == 0 {
			return high - r
		}
		return low + r
	}
	return x
}

func gridSample(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	x, grid := c.in[0], c.in[1]
	n := len(x.shape) - 2
	if n < 1 || len(grid.shape) != n+2 || grid.shape[n+1] != n || grid.shape[0] != x.shape[0] {
		return nil, fmt.Errorf("samples of %v at %v: %w", x, grid, compute.ErrShape)
	}
	align, padding := c.int("align_corners", 0) != 0, c.text("padding_mode", "zeros")
	mode := c.text("mode", "linear")
	switch mode {
	case "bilinear":
		mode = "linear"
	case "bicubic":
		mode = "cubic"
	}
	if mode == "cubic" && n != 2 {
		return nil, fmt.Errorf("cubic samples of %d axes: %w", n, compute.ErrUnsupported)
	}
	spatial := x.shape[2:]
	out := slices.Concat(x.shape[:2], grid.shape[1:n+1])
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		xs, gs := in[0].Floats(), in[1].Floats()
		y := make([]float64, host.Len(out))
		elements, cells := host.Len(spatial), host.Len(out[2:])
		st := host.Strides(spatial)
		bring := func(p float64, d int) float64 {
			size := float64(spatial[d])
			switch padding {
			case "border":
				return min(max(p, 0), size-1)
			case "reflection":
				if align {
					return reflected(p, 0, size-1)
				}
				return min(max(reflected(p, -0.5, size-0.5), 0), size-1)
			}
			return p
		}
		at := make([]float64, n)
		for i := range y {
			cell, ch := i%cells, i/cells
			b := ch / x.shape[1]
			plane := xs[ch*elements:][:elements]
			pos := gs[(b*cells+cell)*n:][:n]
			bad := false
			for d := range n {
				g, size := pos[n-1-d], float64(spatial[d])
				if align {
					at[d] = (g + 1) / 2 * (size - 1)
				} else {
					at[d] = ((g+1)*size - 1) / 2
				}
				bad = bad || at[d] != at[d]
			}
			if bad {
				y[i] = math.NaN()
				continue
			}
			read := func(index []float64) float64 {
				o := 0
				for d, p := range index {
					p = math.Round(bring(p, d))
					if p < 0 || p >= float64(spatial[d]) {
						return 0
					}
					o += int(p) * st[d]
				}
				return plane[o]
			}
			switch mode {
			case "nearest":
				for d := range at {
					at[d] = math.RoundToEven(bring(at[d], d))
				}
				y[i] = read(at)
			case "cubic":
				r := resizing{mode: "cubic", cubic: -0.75}
				y0, x0 := math.Floor(at[0]), math.Floor(at[1])
				for dy := -1.0; dy <= 2; dy++ {
					for dx := -1.0; dx <= 2; dx++ {
						w := r.kernel(at[0]-(y0+dy)) * r.kernel(at[1]-(x0+dx))
						y[i] += w * read([]float64{y0 + dy, x0 + dx})
					}
				}
			default:
				for d := range at {
					at[d] = bring(at[d], d)
				}
				corners(spatial, at, func(index int, w float64) { y[i] += w * plane[index] })
			}
		}
		return host.FromFloats(in[0].Kind, y, out...), nil
	}, x, grid)
}

func roiAlign(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, rois, ids := c.in[0], c.in[1], c.in[2]
	h, w := int(c.int("output_height", 1)), int(c.int("output_width", 1))
	if len(x.shape) != 4 || len(rois.shape) != 2 || rois.shape[1] != 4 || host.Len(ids.shape) != rois.shape[0] || h < 1 || w < 1 || h > mostWindow || w > mostWindow {
		return nil, fmt.Errorf("regions %v of %v: %w", rois, x, compute.ErrShape)
	}
	out := []int{rois.shape[0], x.shape[1], h, w}
	if err := host.CheckShape(out); err != nil {
		return nil, err
	}
	ratio, scale := c.int("sampling_ratio", 0), float64(c.float("spatial_scale", 1))
	largest := c.text("mode", "avg") == "max"
	mode := "half_pixel"
	if c.Version < 16 {
		mode = "output_half_pixel"
	}
	half := 0.0
	if c.text("coordinate_transformation_mode", mode) == "half_pixel" {
		half = 0.5
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		xs, rs, batch := in[0].Floats(), in[1].Floats(), in[2].Ints()
		y := make([]float64, host.Len(out))
		plane := x.shape[2:]
		elements := host.Len(plane)
		for i := range y {
			px, py, ch, r := i%w, i/w%h, i/w/h%x.shape[1], i/w/h/x.shape[1]
			if batch[r] < 0 || batch[r] >= int64(x.shape[0]) {
				return nil, fmt.Errorf("picture %d of %d: %w", batch[r], x.shape[0], compute.ErrArgument)
			}
			x1, y1 := rs[r*4]*scale-half, rs[r*4+1]*scale-half
			rw, rh := rs[r*4+2]*scale-half-x1, rs[r*4+3]*scale-half-y1
			if half == 0 {
				rw, rh = max(rw, 1), max(rh, 1)
			}
			bw, bh := rw/float64(w), rh/float64(h)
			nx, ny := int(ratio), int(ratio)
			if ratio <= 0 {
				nx, ny = int(math.Ceil(bw)), int(math.Ceil(bh))
			}
			if nx > mostWindow || ny > mostWindow {
				return nil, fmt.Errorf("region %d is too large: %w", r, compute.ErrTooLarge)
			}
			sum, top, first := 0.0, 0.0, true
			data := xs[(int(batch[r])*x.shape[1]+ch)*elements:][:elements]
			for iy := range ny {
				for ix := range nx {
					sy := y1 + float64(py)*bh + (float64(iy)+0.5)*bh/float64(ny)
					sx := x1 + float64(px)*bw + (float64(ix)+0.5)*bw/float64(nx)
					value := 0.0
					if sy >= -1 && sy <= float64(plane[0]) && sx >= -1 && sx <= float64(plane[1]) {
						at := []float64{min(max(sy, 0), float64(plane[0]-1)), min(max(sx, 0), float64(plane[1]-1))}
						corners(plane, at, func(index int, w float64) {
							if largest {
								value = max(value, w*data[index])
							} else {
								value += w * data[index]
							}
						})
					}
					sum += value
					if first || value > top {
						top, first = value, false
					}
				}
			}
			if y[i] = sum / float64(max(nx*ny, 1)); largest {
				y[i] = top
			}
		}
		return host.FromFloats(in[0].Kind, y, out...), nil
	}, x, rois, ids)
}

// nonMaxSuppression chooses boxes by score that do not overlap a better one.
func nonMaxSuppression(c *call) ([]*Value, error) {
	if err := c.need(2); err != nil {
		return nil, err
	}
	center := c.int("center_point_box", 0) == 1
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		in = append(in, nil, nil, nil)
		boxes, scores := in[0], in[1]
		if len(boxes.Shape) != 3 || boxes.Shape[2] != 4 || len(scores.Shape) != 3 || scores.Shape[2] != boxes.Shape[1] || scores.Shape[0] != boxes.Shape[0] {
			return nil, fmt.Errorf("boxes %v and scores %v: %w", boxes.Shape, scores.Shape, compute.ErrShape)
		}
		number := func(t *host.Tensor, def float64) float64 {
			if t == nil || t.Len() == 0 {
				return def
			}
			return t.Floats()[0]
		}
		most, overlap, least := number(in[2], 0), number(in[3], 0), number(in[4], math.Inf(-1))
		b, s := boxes.Floats(), scores.Floats()
		n := boxes.Shape[1]
		corner := func(batch, i int) (y1, x1, y2, x2 float64) {
			p := b[(batch*n+i)*4:][:4]
			if center {
				return p[1] - p[3]/2, p[0] - p[2]/2, p[1] + p[3]/2, p[0] + p[2]/2
			}
			return min(p[0], p[2]), min(p[1], p[3]), max(p[0], p[2]), max(p[1], p[3])
		}
		var out []int64
		for batch := range scores.Shape[0] {
			for class := range scores.Shape[1] {
				row := s[(batch*scores.Shape[1]+class)*n:][:n]
				order := make([]int, 0, n)
				for i := range n {
					if row[i] > least || in[4] == nil || in[4].Len() == 0 {
						order = append(order, i)
					}
				}
				sort.SliceStable(order, func(i, j int) bool { return row[order[i]] > row[order[j]] })
				var chosen []int
				for _, i := range order {
					if float64(len(chosen)) >= most {
						break
					}
					y1, x1, y2, x2 := corner(batch, i)
					keep := true
					for _, j := range chosen {
						v1, u1, v2, u2 := corner(batch, j)
						inter := max(0, min(y2, v2)-max(y1, v1)) * max(0, min(x2, u2)-max(x1, u1))
						union := (y2-y1)*(x2-x1) + (v2-v1)*(u2-u1) - inter
						if union > 0 && inter/union > overlap {
							keep = false
							break
						}
					}
					if keep {
						chosen = append(chosen, i)
						out = append(out, int64(batch), int64(class), int64(i))
					}
				}
			}
		}
		return host.OfInts(append([]int64{}, out...), len(out)/3, 3), nil
	}, c.in...)
}

// deformConv is a convolution whose windows have offsets for each element.
func deformConv(c *call) ([]*Value, error) {
	if err := c.need(3); err != nil {
		return nil, err
	}
	x, weights, offset := c.in[0], c.in[1], c.in[2]
	if len(x.shape) != 4 || len(weights.shape) != 4 || len(offset.shape) != 4 {
		return nil, fmt.Errorf("deformed convolution of %v with %v: %w", x, weights, compute.ErrShape)
	}
	w, err := c.windowOf(x.shape[2:], slices.Clone(weights.shape[2:]))
	if err != nil {
		return nil, err
	}
	spatial, err := w.output(x.shape[2:])
	if err != nil {
		return nil, err
	}
	groups, offsets := int(c.int("group", 1)), int(c.int("offset_group", 1))
	taps := host.Len(w.size)
	out := slices.Concat([]int{x.shape[0], weights.shape[0]}, spatial)
	if groups < 1 || offsets < 1 || weights.shape[1]*groups != x.shape[1] || x.shape[1]%offsets != 0 || weights.shape[0]%groups != 0 ||
		!slices.Equal(offset.shape, slices.Concat([]int{x.shape[0], offsets * taps * 2}, spatial)) {
		return nil, fmt.Errorf("deformed convolution of %v with %v and offsets %v: %w", x, weights, offset, compute.ErrShape)
	}
	return c.hosted(func(in []*host.Tensor) (*host.Tensor, error) {
		in = append(in, nil, nil)
		xs, ws, os := in[0].Floats(), in[1].Floats(), in[2].Floats()
		var bias, mask []float64
		if in[3] != nil {
			bias = in[3].Floats()
		}
		if in[4] != nil {
			if mask = in[4].Floats(); len(mask)*2 != len(os) {
				return nil, fmt.Errorf("mask %v: %w", in[4].Shape, compute.ErrShape)
			}
		}
		if bias != nil && len(bias) != out[1] {
			return nil, fmt.Errorf("bias %v: %w", in[3].Shape, compute.ErrShape)
		}
		y := make([]float64, host.Len(out))
		plane := x.shape[2:]
		elements, cells, per := host.Len(plane), host.Len(spatial), weights.shape[1]
		for i := range y {
			cell, o, n := i%cells, i/cells%out[1], i/cells/out[1]
			oy, ox := cell/spatial[1], cell%spatial[1]
			g := o / (out[1] / groups)
			for ch := range per {
				channel := g*per + ch
				og := channel / (x.shape[1] / offsets)
				data := xs[(n*x.shape[1]+channel)*elements:][:elements]
				for k := range taps {
					ky, kx := k/w.size[1], k%w.size[1]
					at := ((n*offsets+og)*taps + k) * 2
					pos := []float64{float64(oy*w.stride[0]-w.before[0]+ky*w.dilation[0]) + os[at*cells+cell],
						float64(ox*w.stride[1]-w.before[1]+kx*w.dilation[1]) + os[(at+1)*cells+cell]}
					v := 0.0
					corners(plane, pos, func(index int, w float64) { v += w * data[index] })
					if mask != nil {
						v *= mask[((n*offsets+og)*taps+k)*cells+cell]
					}
					y[i] += v * ws[(o*per+ch)*taps+k]
				}
			}
			if bias != nil {
				y[i] += bias[o]
			}
		}
		return host.FromFloats(in[0].Kind, y, out...), nil
	}, c.in...)
}
