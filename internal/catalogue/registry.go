package catalogue

import (
	"fmt"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

var (
	all    []*program.Entry
	byName = map[string]*program.Entry{}
)

func register(e *program.Entry) *program.Entry {
	if byName[e.Name] != nil {
		panic("op: two entries named " + e.Name)
	}
	all = append(all, e)
	byName[e.Name] = e
	return e
}

// All returns the catalogue in its order of declaration.
func All() []*program.Entry { return slices.Clone(all) }

// Lookup returns the entry of that name, or nil.
func Lookup(name string) *program.Entry { return byName[name] }

// ActivationEntry returns the unary entry that an activation stands for; nil for none.
func ActivationEntry(a compute.Activation) (*program.Entry, error) {
	if a > compute.Tanh {
		return nil, fmt.Errorf("activation %d: %w", a, compute.ErrArgument)
	}
	return Lookup(a.String()), nil
}
