package cpu

import (
	"sync"
	"unsafe"

	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/simd/engine"
)

// sequence puts the work of several entries one after the other: a step that is made of others.
type sequence struct {
	work
	temporaries int // bytes at the start of the scratch memory
	most        int // bytes that a piece needs after them
	err         error
}

// source finds a value of a step.
type source func(a *args) view

func operandOf(i int) source { return func(a *args) view { return a.in[i] } }
func resultOf(i int) source  { return func(a *args) view { return a.outs[i] } }

// temporary is room for n float32. No pointer may point beyond the end of memory: the garbage collector takes it for one to
// whatever lies there.
func (s *sequence) temporary(n int) source {
	if n == 0 {
		return func(*args) view { return view{} }
	}
	at := s.temporaries
	s.temporaries += engine.CeilDiv(4*n, 64) * 64
	return func(a *args) view { return view{unsafe.Add(a.scratch.p, at), n} }
}

// value is an operand of a piece.
type value struct {
	program.Type
	source
}

// call appends an entry, whose result is out. All temporaries must have been made.
func (s *sequence) call(e *program.Entry, a program.Attr, out source, in ...value) {
	types := make([]program.Type, len(in))
	for i, v := range in {
		types[i] = v.Type
	}
	results, err := e.Check(types, a)
	if err != nil {
		s.err = err
		return
	}
	if results[0].Len() == 0 {
		return
	}
	w, err := lower(e, &call{in: types, outs: results, out: results[0], attr: a})
	if err != nil {
		s.err = err
		return
	}
	s.append(w, out, in...)
}

// append appends work on operands, whose result is out. All temporaries must have been made.
func (s *sequence) append(w work, out source, in ...value) {
	s.most = max(s.most, w.scratch)
	before := s.temporaries
	for _, p := range w.phases {
		do := p.do
		p.do = func(a *args, lo, hi int) {
			sub := pieces.Get().(*args)
			sub.stop, sub.out, sub.outs = a.stop, out(a), append(sub.outs, out(a))
			for _, v := range in {
				sub.in = append(sub.in, v.source(a))
			}
			if w.scratch > 0 {
				sub.scratch = view{unsafe.Add(a.scratch.p, before), a.scratch.n - before/8}
			}
			do(sub, lo, hi)
			clear(sub.in) // no memory is kept alive
			clear(sub.outs)
			*sub = args{in: sub.in[:0], outs: sub.outs[:0]}
			pieces.Put(sub)
		}
		s.phases = append(s.phases, p)
	}
}

// pieces lends the data of one part of a piece.
var pieces = sync.Pool{New: func() any { return new(args) }}

// done is the work of all pieces.
func (s *sequence) done() work {
	if s.err != nil { // pieces of a checked call are calls that pass the check
		panic(s.err)
	}
	s.scratch = s.temporaries + s.most
	return s.work
}
