package simd

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/op"
	"github.com/wavelane/wavelane/simd/internal/kernels"
)

// convolution is a conv2d as its kernels see it.
type convolution struct {
	op.ConvDims
	perGroup int // input channels of a group
	outs     int // output channels of a group
	taps     int // inner dimension: weights of one output channel
	pixels   int // of an output plane
	bias     bool
	epilogue
}

func conv2d(c *call) work {
	o := c.attr.Options.(compute.Conv2DOptions)
	d, _ := op.ConvShape(c.in[0].Shape, c.in[1].Shape, o) // checked
	v := &convolution{ConvDims: d, perGroup: d.C / d.Groups, outs: d.OutC / d.Groups, pixels: d.OutH * d.OutW, bias: len(c.in) == 3}
	v.taps = v.perGroup * d.KH * d.KW
	v.act, v.actNS = activation(o.Act)
	if v.outs >= 4 && v.taps >= 4 {
		return v.implicit()
	}
	return v.direct()
}

func (v *convolution) biasAt(a *args, channel int) []float32 {
	if !v.bias {
		return nil
	}
	return a.in[2].f32()[channel : channel+1]
}

// direct adds up shifted and scaled rows of the input; each unit is one row of one output channel.
func (v *convolution) direct() work {
	return one(v.N*v.OutC*v.OutH, 10+float64(v.OutW)*(0.5*float64(v.taps)+1+v.actNS), func(a *args, lo, hi int) {
		for u := lo; u < hi && !a.stop.Load(); u++ {
			channel := u / v.OutH % v.OutC
			y := a.out.f32()[u*v.OutW : (u+1)*v.OutW]
			v.row(a, y, u/v.OutH/v.OutC, channel, u%v.OutH, 0)
			v.apply(y, v.biasAt(a, channel))
		}
	})
}

// row computes part of an output row, from column ox on, without bias and activation. Taps over padding are left out, so that
// no weight meets a zero that is not there.
func (v *convolution) row(a *args, y []float32, n, channel, oy, ox int) {
	clear(y)
	first := n*v.C + channel/v.outs*v.perGroup
	for c := range v.perGroup {
		plane := a.in[0].f32()[(first+c)*v.H*v.W:][:v.H*v.W]
		filter := a.in[1].f32()[(channel*v.perGroup+c)*v.KH*v.KW:]
		for ky := range v.KH {
			iy := oy*v.Stride[0] - v.Pad[0] + ky*v.Dilation[0]
			if iy < 0 || iy >= v.H {
				continue
			}
			line := plane[iy*v.W : (iy+1)*v.W]
			for kx := range v.KW {
				lo, hi, at := v.inside(ox, ox+len(y), kx)
				if lo >= hi {
					continue
				}
				f, to := filter[ky*v.KW+kx], y[lo-ox:hi-ox]
				if v.Stride[1] == 1 {
					axpy(to, line[at:], f)
					continue
				}
				for i := range to {
					to[i] += f * line[at]
					at += v.Stride[1]
				}
			}
		}
	}
}

// inside returns which output columns from lo to hi read the input at filter column kx and not the padding, and the input
// column that the first of them reads.
func (v *convolution) inside(lo, hi, kx int) (from, to, at int) {
	shift := kx*v.Dilation[1] - v.Pad[1] // input column = output column·stride + shift
	s := v.Stride[1]
	if shift < 0 {
		lo = max(lo, (s-1-shift)/s)
	}
	if v.W-1-shift < 0 {
		return 0, 0, 0
	}
	hi = min(hi, (v.W-1-shift)/s+1)
	return lo, hi, lo*s + shift
}

// convTile is the number of output pixels that a unit of the implicit product works on.
const convTile = 256

// implicit is a matrix product of the weights with the input's windows, which are packed tile by tile and never exist as a
// whole. Zeros stand for the padding, which is right only for finite weights: packing the weights looks for others, and if
// there are any the tiles are computed directly.
func (v *convolution) implicit() work {
	blocks := ceilDiv(v.taps, kc)
	high := padded(v.outs, mr)
	sizeA := high * v.taps // of the packed weights of a group
	units := v.Groups * blocks
	odd := v.Groups * sizeA // offset of one flag per packing unit: not all finite
	tile := min(convTile, padded(v.pixels, nr))
	for v.N*v.Groups*ceilDiv(v.pixels, tile) < enoughTiles && tile > 32 {
		tile = padded(tile/2, nr)
	}
	across := ceilDiv(v.pixels, tile)

	packing := phase{units: units, ns: float64(min(kc, v.taps) * high), do: func(a *args, lo, hi int) {
		to := words32(a)
		for u := lo; u < hi; u++ {
			group, k := u/blocks, u%blocks*kc
			steps := min(kc, v.taps-k)
			part := to[group*sizeA+k*high:][:steps*high]
			pack(part, a.in[1].f32()[group*v.outs*v.taps+k:], v.taps, 1, v.outs, steps, mr)
			to[odd+u] = 0
			if !finite(part) {
				to[odd+u] = 1
			}
		}
	}}
	product := phase{units: v.N * v.Groups * across, ns: float64(tile) * float64(v.taps) * (0.25*float64(v.outs) + 1),
		do: func(a *args, lo, hi int) {
			packed := words32(a)
			var windows []float32
			if kernels.Max(packed[odd:odd+units]) == 0 {
				b := borrow(kc * tile)
				defer scratch.Put(b)
				windows = *b
			}
			for u := lo; u < hi; u++ {
				n, group, p := u/across/v.Groups, u/across%v.Groups, u%across*tile
				count := min(tile, v.pixels-p)
				y := a.out.f32()[(n*v.OutC+group*v.outs)*v.pixels+p:]
				for k := 0; k < v.taps && windows != nil && !a.stop.Load(); k += kc {
					steps := min(kc, v.taps-k)
					v.windows(a, windows, n*v.C+group*v.perGroup, k, steps, p, count)
					gemmTile(y, v.pixels, v.outs, count, steps, packed[group*sizeA+k*high:], windows, k > 0)
				}
				for c := range v.outs {
					channel := group*v.outs + c
					to := y[c*v.pixels:][:count]
					if windows == nil {
						v.segments(p, count, func(at, n2, oy, ox int) { v.row(a, to[at:at+n2], n, channel, oy, ox) })
					}
					v.apply(to, v.biasAt(a, channel))
				}
			}
		}}
	return work{scratch: (odd + units + 1) / 2 * 8, phases: []phase{packing, product}}
}

// segments cuts count output pixels from p on into parts of rows: offset, length, row, first column.
func (v *convolution) segments(p, count int, visit func(at, n, oy, ox int)) {
	for at := 0; at < count; {
		oy, ox := (p+at)/v.OutW, (p+at)%v.OutW
		n := min(v.OutW-ox, count-at)
		visit(at, n, oy, ox)
		at += n
	}
}

// windows packs what count output pixels from p on read at taps k to k+steps: panels of nr pixels. Channel is the first
// input plane of the group.
func (v *convolution) windows(a *args, dst []float32, channel, k, steps, p, count int) {
	wide := padded(count, nr)
	if wide > count {
		clear(dst[(wide-nr)*steps : wide*steps])
	}
	x := a.in[0].f32()
	for step := range steps {
		tap := k + step
		c, ky, kx := tap/(v.KH*v.KW), tap/v.KW%v.KH, tap%v.KW
		plane := x[(channel+c)*v.H*v.W:][:v.H*v.W]
		for at := 0; at < count; {
			oy, ox := (p+at)/v.OutW, (p+at)%v.OutW
			n := min(v.OutW-ox, count-at)
			lo, hi, from := v.inside(ox, ox+n, kx)
			iy := oy*v.Stride[0] - v.Pad[0] + ky*v.Dilation[0]
			if iy < 0 || iy >= v.H || lo >= hi {
				lo, hi, iy, from = ox, ox, 0, 0
			}
			spread(dst, steps, step, at, lo-ox, nil, 0)
			if lo < hi {
				spread(dst, steps, step, at+lo-ox, hi-lo, plane[iy*v.W+from:], v.Stride[1])
			}
			spread(dst, steps, step, at+hi-ox, n-(hi-ox), nil, 0)
			at += n
		}
	}
}

// spread writes n elements of one step to panels of nr, from lane at on: every stride-th of x, or 0 for no x.
func spread(dst []float32, steps, step, at, n int, x []float32, stride int) {
	i := at/nr*nr*steps + step*nr + at%nr
	lane := at % nr
	for j := range n {
		v := float32(0)
		if x != nil {
			v = x[j*stride]
		}
		dst[i] = v
		i++
		if lane++; lane == nr {
			lane = 0
			i += nr * (steps - 1)
		}
	}
}

func finite(x []float32) bool {
	for _, v := range x {
		if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
			return false
		}
	}
	return true
}
