package device

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// NewOps returns the operations of a device on slices of host memory. Each is a program of one step, so there is no second
// path beside programs.
func NewOps(d program.Executor) compute.Ops { return compute.NewOps(runner{d}) }

type runner struct{ device program.Executor }

func (r runner) Run(ctx context.Context, entry string, out []compute.Operand, in []compute.Operand, scalars []float32, options any) *compute.Future {
	p, io, err := single(entry, out, in, program.Attr{Scalars: scalars, Options: options})
	if err != nil {
		return compute.Failed(err)
	}
	waits := ctx != nil
	if !waits {
		ctx = program.Now
	}
	f, err := Start(ctx, r.device, p, io)
	switch {
	case err == nil:
		return f
	case !waits && errors.Is(err, program.ErrLater):
		return later(r.device, p, io, entry)
	}
	return compute.Failed(explained(err, p, entry))
}

// explained is an error of compiling the program of an entry.
func explained(err error, p *program.Program, entry string) error {
	return fmt.Errorf("%s %v: %w", entry, p.Types(p.Host), err)
}

func (r runner) Upload(ctx context.Context, data any, shape ...int) (compute.Tensor, *compute.Future) {
	return Upload(ctx, r.device, data, shape...)
}

// Later starts a program on host slices without waiting: where its code has to be compiled first, that is done in a goroutine, which then
// starts it. The slices have to stay as they are until the future is done.
func Later(d program.Executor, p *program.Program, io *program.IO) *compute.Future {
	f, err := Start(program.Now, d, p, io)
	switch {
	case err == nil:
		return f
	case errors.Is(err, program.ErrLater):
		return later(d, p, io, "")
	}
	return compute.Failed(err)
}

// later starts a program when its code has been compiled: that of an entry, for errors, unless it is a user's kernel.
func later(d program.Executor, p *program.Program, io *program.IO, entry string) *compute.Future {
	return program.Later(func() (program.Executable, error) {
		x, err := d.Compile(context.Background(), p)
		if err != nil && entry != "" {
			err = explained(err, p, entry)
		}
		return x, err
	}, io)
}

// Start compiles a program and begins one run of it. An error is that of the compilation, or ctx.Err() if ctx ended during it.
func Start(ctx context.Context, d program.Executor, p *program.Program, io *program.IO) (*compute.Future, error) {
	x, err := d.Compile(ctx, p)
	if err != nil {
		return nil, err
	}
	defer x.Close() // the run in flight finishes
	return x.Start(io), nil
}

// Once is [Start] with the error of the compilation in the future.
func Once(ctx context.Context, d program.Executor, p *program.Program, io *program.IO) *compute.Future {
	f, err := Start(ctx, d, p, io)
	if err != nil {
		return compute.Failed(err)
	}
	return f
}

// single builds the program of one operation on host slices.
func single(entry string, out []compute.Operand, in []compute.Operand, a program.Attr) (*program.Program, *program.IO, error) {
	e := catalogue.Lookup(entry)
	if e == nil {
		return nil, nil, fmt.Errorf("no operation is named %q: %w", entry, compute.ErrArgument)
	}
	p, io := &program.Program{}, &program.IO{}
	slots := make([]program.Slot, len(in))
	for i, x := range in {
		t, err := operandType(x)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: operand %d: %w", entry, i, err)
		}
		slots[i] = p.Add(t, program.FromHost)
		io.Host = append(io.Host, x.Data)
	}
	results, err := p.ApplyAll(e, a, slots...)
	if err != nil {
		return nil, nil, err
	}
	if len(out) != len(results) {
		return nil, nil, fmt.Errorf("%s %v: %d results, %d destinations: %w", entry, p.Types(slots), len(results), len(out),
			compute.ErrArgument)
	}
	for i, y := range results {
		want := p.Values[y].Type
		if out[i].Shape != nil && !slices.Equal(out[i].Shape, want.Shape) {
			return nil, nil, fmt.Errorf("%s %v: result is %v, destination %v: %w", entry, p.Types(slots), want, out[i].Shape, compute.ErrShape)
		}
		if err := program.CheckSlice(out[i].Data, want); err != nil {
			return nil, nil, fmt.Errorf("%s %v: destination: %w", entry, p.Types(slots), err)
		}
		io.Read = append(io.Read, out[i].Data)
	}
	p.Read = results
	return p, io, nil
}

func operandType(x compute.Operand) (program.Type, error) {
	d, _, err := program.TypeOf(x.Data)
	if err != nil {
		return program.Type{}, err
	}
	if err := program.CheckShape(x.Shape); err != nil {
		return program.Type{}, err
	}
	t := program.Type{DType: d, Shape: x.Shape}
	return t, program.CheckSlice(x.Data, t)
}
