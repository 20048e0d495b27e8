package compute

import "fmt"

// Reduction is what a collective makes of the elements of all members of a group.
type Reduction uint8

// The reductions. Integers have no mean.
const (
	ReduceSum Reduction = iota
	ReduceMean
	ReduceMax
	ReduceMin
)

func (r Reduction) String() string {
	if names := [...]string{"sum", "mean", "max", "min"}; int(r) < len(names) {
		return names[r]
	}
	return fmt.Sprintf("Reduction(%d)", uint8(r))
}
