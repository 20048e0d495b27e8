package batch

import (
	"context"
	"slices"
	"sync"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// guardedRun is the executable of a program with guards.
type guardedRun struct {
	program.Executable
	*watch

	mu   sync.Mutex
	idle []*guardMemory
}

// guardMemory is where a run reads to.
type guardMemory struct {
	io    program.IO
	words [][]int32
	of    words
}

func (x *guardedRun) unwrap() program.Executable { return x.Executable }

// take returns memory for a run whose results go to read.
func (x *guardedRun) take() *guardMemory {
	x.mu.Lock()
	defer x.mu.Unlock()
	if n := len(x.idle); n > 0 {
		m := x.idle[n-1]
		x.idle = x.idle[:n-1]
		return m
	}
	m := &guardMemory{of: words{}}
	reads := len(x.program.Read) - len(x.looks)
	for i, s := range x.program.Read {
		if i < reads && x.delivers() {
			m.io.Read = append(m.io.Read, nil) // the caller's
			continue
		}
		m.io.Read = append(m.io.Read, program.MakeSlice(x.program.Values[s].Type))
	}
	for i, l := range x.looks {
		m.of[l.slot] = m.io.Read[reads+i].([]int32)
	}
	return m
}

func (x *guardedRun) give(m *guardMemory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle = append(x.idle, m)
}

// delivers reports whether results are delivered whatever is found.
func (w *watch) delivers() bool {
	return !slices.ContainsFunc(w.guards, func(g guard) bool { return g.action == Stop })
}

// Start runs the program, looks at what the guards tell and delivers the results.
func (x *guardedRun) Start(io *program.IO) *compute.Future {
	m := x.take()
	own := m.io.Read
	read := slices.Clone(io.Read)
	if x.delivers() {
		own = slices.Concat(read, own[len(read):])
	}
	if x.coarse { // the caller may change all but the slices' contents
		m.io.Host, m.io.Tensors, m.io.Scalars = slices.Clone(io.Host), slices.Clone(io.Tensors), slices.Clone(io.Scalars)
	}
	inner := *io
	inner.Read = own
	run := x.Executable.Start(&inner)
	io.Keep = inner.Keep
	return then(run, func(err error) (func(), error) {
		if err == nil {
			if found := x.verdict(m); found != nil {
				err = found
			}
		}
		m.io.Host, m.io.Tensors = nil, nil
		if err != nil {
			x.give(m)
			return nil, err
		}
		return func() {
			if !x.delivers() {
				for i := range read {
					copy(program.Bytes(read[i]), program.Bytes(own[i]))
				}
			}
			x.give(m)
		}, nil
	})
}

// verdict is what the guards find of a run.
func (x *guardedRun) verdict(m *guardMemory) *GuardError {
	if !x.coarse {
		return x.find(x.recorded, m.of)
	}
	found := x.find(x.program, m.of)
	if found == nil {
		return nil
	}
	if exact := x.again(&m.io); exact != nil {
		return exact
	}
	return found // of a fused step, or of one that does not do the same again
}

// again runs the recorded program, with all values in memory. It returns nil if that finds nothing, or cannot be done.
func (x *guardedRun) again(io *program.IO) *GuardError {
	p := without(x.recorded, 0)
	p.Keep = nil
	var looks []look
	for _, s := range values(p) {
		if visible(p, s) {
			looks = append(looks, look{s, s})
		}
	}
	q, err := inspect(p, looks)
	if err != nil {
		return nil
	}
	run, err := x.device.Compile(context.Background(), q)
	if err != nil {
		return nil
	}
	defer run.Close()
	of, data := words{}, program.IO{Host: io.Host, Tensors: io.Tensors, Scalars: io.Scalars}
	for _, l := range looks {
		of[l.slot] = make([]int32, catalogue.InspectWords)
		data.Read = append(data.Read, of[l.slot])
	}
	if run.Start(&data).Await(context.Background()) != nil {
		return nil
	}
	return x.find(p, of)
}
