package wgslkernels

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// pass gathers something of rows and finishes them by it: see pass.wgsl.
type pass struct {
	name, file string   // of the entry and its functions
	acc        string   // the gathered elements, in bytes
	bytes      int      // of acc
	perRow     bool     // the result has one element per row, not one per element
	uniforms   []string // beyond those of all passes: WGSL declarations
	params     []uint32 // their values
	operands   []passBinding
	result     passBinding
}

// passBinding is a buffer of four-byte elements as a pass binds it.
type passBinding struct {
	Name, Element string
	Written       bool
	buffer        Buffer
	bytes         int // of an element
	extent        func(w work) extent
	stages        string // that bind it: whole, part, finish
}

// full is a binding of a tensor of the rows' elements.
func full(name string, b Buffer, stages string) passBinding {
	return passBinding{Name: name, Element: "f32", buffer: b, bytes: 4, stages: stages, extent: func(w work) extent { return w.extent(4) }}
}

// perRowOf is a binding of a tensor of one element per row, of which tasks need those of their rows and more beyond.
func perRowOf(name, element string, b Buffer, more int, stages string) passBinding {
	return passBinding{Name: name, Element: element, buffer: b, bytes: 4, stages: stages, extent: func(w work) extent {
		return func(first, end int) (from, to int) {
			return 4 * (first / w.parts), 4 * min(ceilDiv(end, w.parts)+more, w.rows)
		}
	}}
}

const (
	longestLane = 64 // batches of four elements that a thread gathers one after the other, which bounds rounding errors
	fewReads    = 4  // batches for which more lanes do not pay
)

// rows lowers a pass.
func (s *step) pass(d pass, rows, cols int) error {
	workgroup := s.workgroup()
	w := s.split(rows, cols, 4*longestLane*workgroup)
	if w.parts == 1 {
		return s.passStage(d, "whole", w, 0, lanes(rows, cols, 4, fewReads, workgroup))
	}
	partial := passBinding{Name: "partial", Element: d.acc, buffer: s.NewScratch(w.tasks() * d.bytes), bytes: d.bytes, stages: "part finish"}
	states := w.parts
	write := d
	d.result = partial
	d.result.Written, d.result.extent = true, func(w work) extent { return perTask(d.bytes) }
	if err := s.passStage(d, "part", w, states, workgroup); err != nil {
		return err
	}
	if d.perRow {
		w = work{rows: rows, cols: cols, parts: 1, chunk: cols}
	}
	partial.extent = func(w work) extent {
		return func(first, end int) (from, to int) {
			return d.bytes * states * (first / w.parts), d.bytes * states * ceilDiv(end, w.parts)
		}
	}
	write.operands = append(write.operands[:len(write.operands):len(write.operands)], partial)
	return s.passStage(write, "finish", w, states, workgroup)
}

// passStage runs one stage over every task of w.
func (s *step) passStage(d pass, stage string, w work, states, lanes int) error {
	workgroup := s.workgroup()
	var bindings []passBinding
	for _, b := range append(d.operands[:len(d.operands):len(d.operands)], d.result) {
		if strings.Contains(b.stages, stage) {
			bindings = append(bindings, b)
		}
	}
	t := newTree(d.acc, mergeOf(d.acc), lanes, workgroup, s.inSubgroups("rows", d.name+"/"+stage, w, lanes))
	k := cached(fmt.Sprintf("%s/%s/%d/%d%s", d.name, stage, lanes, workgroup, t.key()), func() *wgsl.Kernel {
		k := &wgsl.Kernel{Uniform: (4*(7+len(bindings)+len(d.uniforms)) + 15) &^ 15, Workgroup: [3]uint32{uint32(workgroup), 1, 1}}
		for _, b := range bindings {
			access := wgsl.Read
			if b.Written {
				access = wgsl.ReadWrite
			}
			k.Bindings = append(k.Bindings, access)
		}
		if lanes > 1 {
			k.Shared = d.bytes * workgroup
		}
		data := struct {
			Stage, Functions, Text string
			PerRow                 bool
			Bindings               []passBinding
			Uniforms               []string
			tree
		}{Stage: stage, PerRow: d.perRow, Bindings: bindings, Uniforms: d.uniforms, tree: t}
		var text strings.Builder
		if err := sources().ExecuteTemplate(&text, d.file, data); err != nil {
			panic(err) // our own text: every kernel is rendered in a test
		}
		data.Text, data.Functions = text.String(), functionsOf(text.String())
		k.Source = render("pass.wgsl", data, t.enable()...)
		return k
	})
	extents := make([]extent, len(bindings))
	for i, b := range bindings {
		extents[i] = b.extent(w)
	}
	return s.ranges(w.tasks(), func(first, end int, parts []part) {
		params := append(w.params(first, end), infBits, uint32(states))
		bind := make([]Buffer, len(bindings))
		for i, b := range bindings {
			bind[i] = parts[i].of(b.buffer)
			params = append(params, uint32(parts[i].base/b.bytes))
		}
		s.dispatch(k, s.linear(ceilDiv(end-first, workgroup/lanes)), append(params, d.params...), bind...)
	}, extents...)
}

func softmaxBackward(s *step) error {
	rows, cols := program.RowsCols(s.Operands[0].Shape)
	dx := full("dx", result, "whole finish")
	dx.Written = true
	return s.pass(pass{name: "softmax_backward", file: "softmax_backward.wgsl", acc: "f32", bytes: 4, result: dx,
		operands: []passBinding{full("y", operand(0), "whole part finish"), full("dy", operand(1), "whole part finish")}}, rows, cols)
}

// scores is what cross-entropy and its gradient have in common.
func (s *step) scores() (d pass, rows, cols int) {
	o := s.Attr.Options.(compute.CrossEntropyOptions)
	rows, cols = program.RowsCols(s.Operands[0].Shape)
	_, sequence := program.RowsCols(s.Operands[1].Shape)
	flag := func(b bool) uint32 {
		if b {
			return 1
		}
		return 0
	}
	return pass{file: "cross_entropy.wgsl", acc: "vec4<f32>", bytes: 16,
		uniforms: []string{"smoothing: f32", "shift: u32", "sequence: u32", "ignore: u32", "ignored: i32"},
		params:   []uint32{bits(o.LabelSmoothing), flag(o.Shift), uint32(sequence), flag(o.Ignore), uint32(o.IgnoreIndex)},
		operands: []passBinding{perRowOf("targets", "i32", operand(1), int(flag(o.Shift)), "whole part finish")}}, rows, cols
}

func crossEntropy(s *step) error {
	d, rows, cols := s.scores()
	d.name, d.perRow = "cross_entropy", true
	d.operands = append(d.operands, full("logits", operand(0), "whole part"))
	d.result = perRowOf("loss_of", "f32", result, 0, "whole finish")
	d.result.Written = true
	return s.pass(d, rows, cols)
}

func crossEntropyBackward(s *step) error {
	d, rows, cols := s.scores()
	d.name = "cross_entropy_backward"
	d.operands = append(d.operands, full("logits", operand(0), "whole part finish"), perRowOf("dloss", "f32", operand(2), 0, "whole finish"))
	d.result = full("dx", result, "whole finish")
	d.result.Written = true
	return s.pass(d, rows, cols)
}
