package simd

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
)

func conv2d(c *call) work {
	d, _ := catalogue.ConvShape(c.in[0].Shape, c.in[1].Shape, c.attr.Options.(compute.Conv2DOptions)) // checked
	return convolve(c, d)
}

// conv1d lowers a convolution of sequences as one of planes of one line.
func conv1d(c *call) work {
	d, _ := catalogue.Conv1DShape(c.in[0].Shape, c.in[1].Shape, c.attr.Options.(compute.Conv1DOptions)) // checked
	return convolve(c, d)
}

// convolve lowers a convolution with its bias and activation.
func convolve(c *call, d catalogue.ConvDims) work {
	v := &convolution{}
	v.plan(d, c.attr.Activation(), runtime.GOMAXPROCS(0))
	if c.behind != nil {
		v.finish, v.finishNS = func(d *convData, y []float32, at int) {
			c.finish(d.data.(*args), view{unsafe.Pointer(&y[0]), len(y)}, at, at, at+len(y))
		}, v.finishNS+c.behind.ns
	}
	w := work{scratch: (v.scratch() + 1) / 2 * 8}
	for i := range v.phases() {
		units, ns := v.phase(i)
		w.phases = append(w.phases, phase{units: units, ns: ns, do: func(a *args, lo, hi int) {
			d := convDatas.Get().(*convData)
			*d = convData{x: a.in[0].f32(), w: a.in[1].f32(), y: a.out.f32(), packed: words32(a), stop: a.stop, data: a}
			if len(c.in) == 3 {
				d.bias = a.in[2].f32()
			}
			v.do(i, lo, hi, d)
			*d = convData{}
			convDatas.Put(d)
		}})
	}
	return w
}

// convDatas are at hand so that replays allocate nothing.
var convDatas = sync.Pool{New: func() any { return new(convData) }}
