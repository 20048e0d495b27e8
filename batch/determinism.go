package batch

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/catalogue/reference"
	"github.com/wavelane/wavelane/internal/program"
)

// WithDeterminismCheck runs the plan twice each time and compares the bits of everything that is read or kept. Where they
// differ the run ends with a [*DivergenceError] for the first such value in the order of recording, and results are not
// delivered. Tensors of [Batch.Keep] are those of the first run. A batch that updates tensors in place cannot run twice and
// fails with compute.ErrUnsupported.
func WithDeterminismCheck() Option { return func(o *options) { o.repeated = (*Batch).repeated } }

// twiceRun is the executable of a program that runs twice. It also reads the retained outputs, after the others.
type twiceRun struct {
	program.Executable
	batch   *Batch // as it was when the plan was compiled, for the names of values
	program *program.Program
}

func (x *twiceRun) unwrap() program.Executable { return x.Executable }

// repeated makes a program one that can be compared with itself.
func (rec *Batch) repeated(p *program.Program) (*program.Program, wrap, error) {
	if len(p.Changed()) > 0 {
		return nil, nil, fmt.Errorf("determinism check of a batch that updates tensors in place: %w", compute.ErrUnsupported)
	}
	q := *p
	q.Read = slices.Concat(p.Read, p.Keep)
	then := &Batch{program: *rec.snapshot(), sites: maps.Clone(rec.sites)}
	return &q, func(x program.Executable) program.Executable { return &twiceRun{x, then, &q} }, nil
}

// Start runs the program, then runs it again.
func (x *twiceRun) Start(io *program.IO) *compute.Future {
	runs := [2]program.IO{*io, *io}
	for i := range runs {
		r := &runs[i]
		r.Read, r.Keep = nil, nil
		for _, s := range x.program.Read {
			r.Read = append(r.Read, program.MakeSlice(x.program.Values[s].Type))
		}
	}
	read := slices.Clone(io.Read)
	first := x.Executable.Start(&runs[0])
	second := x.Executable.Start(&runs[1])
	io.Keep = runs[0].Keep
	for _, t := range runs[1].Keep {
		t.Close()
	}
	return then(first, func(err error) (func(), error) {
		<-second.Done()
		if err == nil {
			err = second.Err()
		}
		if err == nil {
			if d := x.compare(runs[0].Read, runs[1].Read); d != nil {
				err = d
			}
		}
		return func() {
			for i, to := range read {
				copy(program.Bytes(to), program.Bytes(runs[0].Read[i]))
			}
		}, err
	})
}

// compare returns where two runs differ.
func (x *twiceRun) compare(first, second []any) (found *DivergenceError) {
	for i, s := range x.program.Read {
		a, b := program.Bytes(first[i]), program.Bytes(second[i])
		if bytes.Equal(a, b) {
			continue
		}
		byteAt := 0
		for a[byteAt] == b[byteAt] {
			byteAt++
		}
		t := x.program.Values[s].Type
		at := byteAt / t.DType.Size()
		d := x.batch.divergence(x.program, s, at, reference.ArrayOf(first[i], t.Shape).Data[at], reference.ArrayOf(second[i], t.Shape).Data[at])
		if found == nil || d.Step < found.Step {
			found = d
		}
	}
	return found
}
