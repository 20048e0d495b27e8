package wgslkernels

import (
	"fmt"
	"math"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/wgsl"
)

// swiGLUBackward is the code of [catalogue.SwiGLUBackward].
func swiGLUBackward(s *step) error {
	return s.severalResults(pointwise{file: "swiglu_backward.wgsl", reads: []string{"gate", "up", "dy"}, writes: []string{"dgate", "dup"},
		buffers: []Buffer{operand(0), operand(1), operand(2), resultAt(0), resultAt(1)}})
}

// pointwise is an entry of several results: see pointwise.wgsl.
type pointwise struct {
	file          string
	reads, writes []string // bindings; those in both are changed in place
	buffers       []Buffer // those of reads, then those only in writes
	uniforms      []string // names of further uniforms, float32
	params        []uint32 // their values
	step          bool     // binds operand 4, the number of the step
}

func (s *step) severalResults(d pointwise) error {
	type binding struct {
		Name    string
		Written bool
	}
	workgroup := s.workgroup()
	var bindings []binding
	for _, name := range d.reads {
		bindings = append(bindings, binding{name, strings.Contains(" "+strings.Join(d.writes, " ")+" ", " "+name+" ")})
	}
	for _, name := range d.writes[len(d.writes)-(len(d.buffers)-len(d.reads)):] {
		bindings = append(bindings, binding{name, true})
	}
	k := cached(fmt.Sprintf("%s/%v/%d", s.Entry.Name, d.step, workgroup), func() *wgsl.Kernel {
		k := &wgsl.Kernel{Uniform: (4*(3+len(d.uniforms)) + 15) &^ 15, Workgroup: [3]uint32{uint32(workgroup), 1, 1}}
		for _, b := range bindings {
			access := wgsl.Read
			if b.Written {
				access = wgsl.ReadWrite
			}
			k.Bindings = append(k.Bindings, access)
		}
		if d.step {
			k.Bindings = append(k.Bindings, wgsl.Read)
		}
		data := struct {
			Bindings                            []binding
			Reads, Writes, Uniforms, Components []string
			Step                                bool
			Workgroup                           int
			Functions, Text                     string
		}{bindings, d.reads, d.writes, d.uniforms, []string{"x", "y", "z", "w"}, d.step, workgroup, "", ""}
		var text strings.Builder
		if err := sources().ExecuteTemplate(&text, d.file, data); err != nil {
			panic(err) // our own text: every kernel is rendered in a test
		}
		data.Text, data.Functions = text.String(), functionsOf(text.String())
		k.Source = render("pointwise.wgsl", data)
		return k
	})
	units := ceilDiv(s.Result.Len(), 4)
	return s.ranges(units, func(first, end int, parts []part) {
		var bind []Buffer
		for _, b := range d.buffers {
			bind = append(bind, parts[0].of(b))
		}
		if d.step {
			bind = append(bind, operand(4))
		}
		// What is changed in place must not be changed twice: a part may begin before its first unit.
		params := []uint32{uint32(first - parts[0].base/16), uint32(end - first), infBits}
		s.dispatch(k, s.linear(ceilDiv(end-first, workgroup)), append(params, d.params...), bind...)
	}, func(first, end int) (from, to int) { return 16 * first, 16 * end })
}

func adam(s *step) error {
	o := s.Attr.Options.(compute.AdamOptions)
	c := catalogue.AdamOf(o, 0)
	d := pointwise{file: "adam.wgsl", reads: []string{"w", "m", "v", "grad"}, writes: []string{"w", "m", "v"},
		buffers:  []Buffer{resultAt(0), resultAt(1), resultAt(2), operand(3)},
		uniforms: []string{"beta1", "rest1", "beta2", "rest2", "eps", "decay", "rate", "root", "log_beta1"}, step: len(s.Operands) == 5}
	rate, root := c.Rate, c.Root
	if d.step {
		rate, root = c.LR, math.Log(c.Beta2)
	}
	for _, v := range []float64{c.Beta1, 1 - c.Beta1, c.Beta2, 1 - c.Beta2, c.Eps, c.Decay, rate, root, math.Log(c.Beta1)} {
		d.params = append(d.params, bits(float32(v)))
	}
	return s.severalResults(d)
}
