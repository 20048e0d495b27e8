package program

import (
	"context"
	"io"
	"time"

	"github.com/wavelane/wavelane/compute"
)

// Executor is a device as programs see it.
type Executor interface {
	// Compile validates and prepares a program. Compiling is pure preparation: nothing runs. It may have to wait for whoever compiles the
	// same code, and for a driver's compiler: until ctx ends, whose error it then returns. With [Now] it succeeds where it need not wait.
	Compile(ctx context.Context, p *Program) (Executable, error)
	// Fuses reports whether the device runs a step with expressions in fewer passes over memory than the steps that it was made of.
	// The rewrites that fuse steps ask about each that they would like to make; the others stay separate.
	Fuses(s *Step, in, out []Type) bool
	// Code writes the sources of what each step runs. The error wraps compute.ErrUnsupported on devices whose functions are compiled
	// already.
	Code(w io.Writer, p *Program) error
	// Tune measures the variants that every step of a program could run, and keeps the fastest for later compilations. It returns the
	// measurements taken so far where it fails, and none on devices whose kernels have no variants.
	Tune(ctx context.Context, p *Program) ([]Measurement, error)
}

// Executable is a compiled program. Start may be called again while earlier runs are in flight.
type Executable interface {
	// Start begins one run and returns at once. Errors, also of arguments, come through the future. Host and Tensors are not read
	// any more once it has returned, and Read is not before the run is done; what the slices hold is in use until then.
	Start(io *IO) *compute.Future
	// Memory returns the memory that one run needs.
	Memory() Memory
	// Launches lists for each step what a run launches, in order; nil on devices that launch nothing.
	Launches() [][]Launch
	// Close releases what the executable holds. Runs in flight finish.
	Close() error
}

// Direct is an Executable that can run synchronously without allocating a future.
type Direct interface {
	// Begin is Start for such a caller.
	Begin(io *IO) (Waiter, error)
}

// Waiter is a run that was begun. Wait is called once and does what compute.Future.AwaitOrAbandon does.
type Waiter interface {
	Wait(ctx context.Context) error
}

// Device is what batches are recorded for. Types implement it by embedding [Sealed], so that users see no internal type.
type Device interface{ executor() Executor }

// Sealed is a device's executor.
type Sealed struct{ of Executor }

// Seal returns the executor as part of a device.
func Seal(x Executor) Sealed { return Sealed{x} }

func (s Sealed) executor() Executor { return s.of }

// ExecutorOf returns what compiles and runs programs on a device.
func ExecutorOf(d Device) Executor { return d.executor() }

// Within returns what do makes, or ctx.Err() when ctx ends first: what is made after that is given to discard. A context that cannot
// end costs nothing; for others do runs in a goroutine.
func Within[T any](ctx context.Context, do func() (T, error), discard func(T)) (T, error) {
	if ctx.Done() == nil {
		return do()
	}
	type result struct {
		value T
		err   error
	}
	made := make(chan result)
	go func() {
		x, err := do()
		select {
		case made <- result{x, err}:
		case <-ctx.Done():
			if err == nil {
				discard(x)
			}
		}
	}()
	select {
	case r := <-made:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// Placer is a device that gives each program to one of others. Rewrites ask that one about it, not the placer.
type Placer interface {
	// Place returns the device for a program as it was recorded. It may have to measure devices first, for which it waits until ctx ends.
	Place(ctx context.Context, p *Program) (Executor, error)
	// ExplainPlace says which device that is, and why.
	ExplainPlace(p *Program) string
	// Peaks returns the rates of one of these devices, as far as they are known.
	Peaks(of Executor) Peaks
}

// Measurement is the outcome of measuring the variants of one problem.
type Measurement struct {
	Class    string
	Problem  string
	Winner   string
	Variants []string
	Median   []time.Duration // by variant; 0 if it was not possible
}

// Memory is the memory that one run of a compiled program needs, in bytes, without the tensors that it is given.
type Memory struct {
	Peak    int // memory of the device, which values share that are not needed at the same time, and steps' scratch memory
	Inputs  int // host data that the run reads
	Results int // host data that it writes, and the tensors that it makes
	Step    int // where most of Peak is in use, as an index of Program.Steps; −1 if Peak is 0
}

// Traffic returns the bytes of the program's inputs and results, as [Memory] counts them.
func (p *Program) Traffic() (inputs, results int) {
	for _, s := range p.Host {
		inputs += p.Values[s].Bytes()
	}
	for _, slots := range [][]Slot{p.Read, p.Keep} {
		for _, s := range slots {
			results += p.Values[s].Bytes()
		}
	}
	return inputs, results
}

// Peaks are the rates that a device can reach, in bytes and floating-point operations a second; 0 where they are not known.
type Peaks struct {
	Memory  float64 // of operands and results in the device's memory
	Math    float64 // of steps that compute anything but products
	Product float64 // of matrix products, convolutions and attention
}

// Launch is a kernel on a grid of blocks of threads, or "copy" or "fill" for memory without a kernel.
type Launch struct {
	Kernel string
	Grid   [3]uint32
	Block  [3]uint32
}

// Traffic is the number of bytes that a step has to read and write: its operands and results, of tables only what rows are taken
// from or put into.
func (e *Entry) Traffic(in, out []Type) float64 {
	results := 0.0
	for _, t := range out {
		results += float64(t.Bytes())
	}
	if e.Class == Move && e.Updates > 0 { // the rest of what is updated stays as it is
		results = 0
		for _, t := range in[e.Updates:] {
			results += float64(t.Bytes())
		}
		return 2 * results
	}
	n := results
	for _, t := range in {
		if b := float64(t.Bytes()); e.Class == Move {
			n += min(b, results)
		} else {
			n += b
		}
	}
	return n
}
