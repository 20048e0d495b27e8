package batch

import (
	"fmt"
	"strings"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Check is what a guard looks for; checks are combined with |.
type Check uint8

// Checks of guards. They apply to values of floating-point numbers; others always pass.
const (
	NaN Check = 1 << iota // any NaN
	Inf                   // any infinity, also one that came in with an input, such as the −Inf of masks
	// Overflow is an infinity in a result of a step whose operands are all finite: a sum, product or conversion beyond the range of
	// the element type, also 1/0 and log(0). An input is never an overflow.
	Overflow

	allChecks = NaN | Inf | Overflow
)

func (c Check) String() string {
	var names []string
	for i, name := range []string{"NaN", "Inf", "overflow"} {
		if c>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

// Action is what a guard does when it finds something. Either way the run ends with a [*GuardError].
type Action uint8

// Actions of guards.
const (
	Stop   Action = iota // results are not delivered
	Report               // results are delivered, and can be used in spite of the error
)

// WithGuard checks what the steps of the batch compute, on the device. A run in which a check fails ends with a [*GuardError]
// that names the first step, in the order of recording, with such a value. Tensors of [Batch.Keep] and tensors that the batch
// updates in place keep their new contents, whatever the action.
//
// Every value that the compiled program holds in memory is read once more, and Overflow reads the inputs as well; values
// within fused steps cost nothing. Only when a check fails does the plan run a second time, step by step and with all values
// checked, to find the step and the index. Hence a value within a fused step that is not finite goes unnoticed if the step's
// result does not show it, as with exp(−Inf); [Batch.Guard] keeps single values in memory. A batch that updates tensors in
// place cannot run again: all its values are in memory, and its elementwise steps are not fused.
func WithGuard(checks Check, action Action) Option {
	return func(o *options) {
		o.guard, o.guarded = &guard{slot: everything, checks: checks, action: action}, (*Batch).guarded
	}
}

// Guard checks one value, as [WithGuard] does all of them, and returns it. The value is computed into memory even if nothing else
// needs it there.
func (rec *Batch) Guard(v Value, checks Check, action Action) Value {
	slots, ok := rec.slots([]Value{v})
	if !ok {
		return Value{}
	}
	g := guard{slot: slots[0], checks: checks, action: action, site: caller()}
	if err := g.check(); err != nil {
		return rec.fail(err)
	}
	rec.guards = append(rec.guards, g)
	rec.options.guarded = (*Batch).guarded
	return v
}

// guard is a request to check a value, or everything.
type guard struct {
	slot   program.Slot
	checks Check
	action Action
	site   string // of the call of Guard
}

const everything program.Slot = -1

func (g *guard) check() error {
	if g.checks == 0 || g.checks&^allChecks != 0 || g.action > Report {
		return fmt.Errorf("guard with checks %#x and action %d: %w", uint8(g.checks), g.action, compute.ErrArgument)
	}
	return nil
}

// GuardError is what a guard has found: the first offending value in the order of recording. It wraps [compute.ErrNotFinite].
type GuardError struct {
	Step      int     // number of the step among those recorded, from 0; −1 for an input
	Operation string  // its name, such as "matmul"; "input"
	Operands  [][]int // shapes
	Shape     []int   // of the result that was checked
	Site      string  // file:line of the call that recorded the step or, with [Batch.Guard] alone, of Guard
	Check     Check   // that failed
	Count     int     // elements of the result that fail it
	Index     int     // of the first such element, in row-major order
	Position  []int   // the same as an index for each axis
	Delivered bool    // results can be used: no check with the action Stop failed
}

// Error returns all fields in one line.
func (e *GuardError) Error() string {
	where := "input"
	if e.Step >= 0 {
		where = fmt.Sprintf("step %d, %s %v", e.Step, e.Operation, e.Operands)
	}
	s := fmt.Sprintf("guard: %s: %d of %d elements of %v fail the check for %v, the first at %d %v", where, e.Count, program.Len(e.Shape),
		e.Shape, e.Check, e.Index, e.Position)
	if e.Site != "" {
		s += " (recorded at " + e.Site + ")"
	}
	return s + ": " + compute.ErrNotFinite.Error()
}

// Unwrap returns compute.ErrNotFinite.
func (e *GuardError) Unwrap() error { return compute.ErrNotFinite }
