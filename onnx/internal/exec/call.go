package exec

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/onnx/internal/format"
	"github.com/wavelane/wavelane/onnx/internal/host"
)

// operator is how an operator of ONNX is computed.
type operator struct {
	run    func(c *call) ([]*Value, error)
	since  int64 // oldest operator set whose rules it follows
	impure bool  // results depend on more than operands
}

type opKey struct{ domain, name string }

// call is a node that is computed.
type call struct {
	*walk
	*Node
	in []*Value
}

// arg is operand i, nil if it is absent.
func (c *call) arg(i int) *Value {
	if i < len(c.in) {
		return c.in[i]
	}
	return nil
}

// need reports operands that are absent.
func (c *call) need(n int) error {
	for i := range n {
		if c.arg(i) == nil {
			return fmt.Errorf("operand %d is absent: %w", i, compute.ErrArgument)
		}
	}
	return nil
}

// The attributes: of the type that is asked for, or the default.

func (c *call) attribute(name string, t format.AttributeType) *format.Attribute {
	if a := c.Attributes[name]; a != nil && a.Type == t {
		return a
	}
	return nil
}

func (c *call) int(name string, def int64) int64 {
	if a := c.attribute(name, format.IntAttribute); a != nil {
		return a.I
	}
	return def
}

func (c *call) flag(name string, def bool) bool {
	if a := c.attribute(name, format.IntAttribute); a != nil {
		return a.I != 0
	}
	return def
}

func (c *call) float(name string, def float32) float32 {
	if a := c.attribute(name, format.FloatAttribute); a != nil {
		return a.F
	}
	return def
}

func (c *call) text(name, def string) string {
	if a := c.attribute(name, format.StringAttribute); a != nil {
		return string(a.S)
	}
	return def
}

func (c *call) ints(name string) []int64 {
	if a := c.attribute(name, format.IntsAttribute); a != nil {
		return a.Ints
	}
	return nil
}

func (c *call) floats(name string) []float32 {
	if a := c.attribute(name, format.FloatsAttribute); a != nil {
		return a.Floats
	}
	return nil
}

func (c *call) texts(name string) []string {
	var out []string
	if a := c.attribute(name, format.StringsAttribute); a != nil {
		for _, b := range a.Texts {
			out = append(out, string(b))
		}
	}
	return out
}

// has reports whether the node has an attribute.
func (c *call) has(name string) bool { return c.Attributes[name] != nil }

// axis is an attribute that names an axis.
func (c *call) axis(name string, def int64, rank int) (int, error) {
	return host.Axis(c.int(name, def), rank)
}

// intsArg is an operand whose elements the walk depends on, or the attribute that old operator sets have instead of it.
func (c *call) intsArg(i int, attribute string) ([]int64, error) {
	if v := c.arg(i); v != nil {
		t, err := c.constant(v)
		if err != nil {
			return nil, err
		}
		return t.Ints(), nil
	}
	if attribute == "" {
		return nil, nil
	}
	return c.ints(attribute), nil
}

// results counts the names that the node gives its results.
func (c *call) results() int { return max(len(c.Outputs), 1) }

// wants reports whether anything uses result i.
func (c *call) wants(i int) bool { return i < len(c.Outputs) && c.Outputs[i] != "" }

// onDevice reports whether an operator on these operands is for the device: all are there with elements that it computes with, and
// not all are known.
func onDevice(vs ...*Value) bool {
	known := true
	for _, v := range vs {
		if v == nil {
			continue
		}
		if v.sequence || v.absent || !deviceFloat(v.kind) {
			return false
		}
		known = known && v.known
	}
	return !known
}

// anyOnDevice reports whether one of the operands is on the device now.
func anyOnDevice(vs ...*Value) bool {
	return slices.ContainsFunc(vs, func(v *Value) bool { return v != nil && v.t == nil && !v.sequence && !v.absent })
}

// movable reports whether moving elements of v is for the device: they are there, or they are floats that depend on data.
func movable(v *Value) bool {
	if v.sequence || v.absent {
		return false
	}
	return v.t == nil || deviceFloat(v.kind) && !v.known
}

// devs are values in the current stage.
func (c *call) devAll(vs ...*Value) ([]batch.Value, error) {
	out := make([]batch.Value, len(vs))
	for i, v := range vs {
		if v == nil {
			continue
		}
		var err error
		if out[i], err = c.dev(v); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// one makes the results of an operator with one.
func one(v *Value, err error) ([]*Value, error) {
	if err != nil {
		return nil, err
	}
	return []*Value{v}, nil
}

// made makes the result of what was recorded.
func (c *call) made(k host.Kind, x batch.Value) ([]*Value, error) {
	return []*Value{c.device(k, x)}, nil
}

// hosted runs an operator of one result on the host.
func (c *call) hosted(f func(in []*host.Tensor) (*host.Tensor, error), in ...*Value) ([]*Value, error) {
	return c.onHost(c.Node.String(), 1, true, func(in []*host.Tensor) ([]*host.Tensor, error) {
		t, err := f(in)
		return []*host.Tensor{t}, err
	}, in...)
}

// known makes the results of an operator from a tensor that depends on shapes only.
func knownResult(t *host.Tensor) ([]*Value, error) { return []*Value{constant(t)}, nil }

func toInts(n []int64) []int {
	out := make([]int, len(n))
	for i, x := range n {
		out[i] = int(x)
	}
	return out
}
