package cpu

import (
	"runtime"
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/simd/engine"
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
	v := &engine.Convolution{}
	v.Plan(d, c.attr.Activation(), runtime.GOMAXPROCS(0))
	if c.epilogue != nil {
		v.Finish, v.FinishNS = func(d *engine.ConvData, y []float32, at int) {
			c.Finish(d.Data.(*args), view{unsafe.Pointer(&y[0]), len(y)}, at, at, at+len(y))
		}, v.FinishNS+c.epilogue.ns
	}
	w := work{scratch: (v.Scratch() + 1) / 2 * 8}
	for i := range v.Phases() {
		units, ns := v.Phase(i)
		w.phases = append(w.phases, phase{units: units, ns: ns, do: func(a *args, lo, hi int) {
			d := convDatas.Get().(*engine.ConvData)
			*d = engine.ConvData{X: a.in[0].f32(), W: a.in[1].f32(), Y: a.out.f32(), Packed: words32(a), Stop: a.stop, Data: a}
			if len(c.in) == 3 {
				d.Bias = a.in[2].f32()
			}
			v.Do(i, lo, hi, d)
			*d = engine.ConvData{}
			convDatas.Put(d)
		}})
	}
	return w
}

// convDatas are at hand so that replays allocate nothing.
var convDatas = sync.Pool{New: func() any { return new(engine.ConvData) }}
