package kernels

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/compute"
)

// Tier is a set of instructions that kernels are written in.
type Tier uint8

// Tiers. Those of one processor are ordered: later ones are faster.
const (
	Scalar  Tier = iota // portable Go
	SSE                 // SSE2: every amd64
	AVX2                // with FMA and F16C
	AVX512              // F, BW, DQ and VL
	NEON                // every arm64
	SIMD128             // WebAssembly
)

var names = [...]string{"scalar", "sse", "avx2", "avx512", "neon", "simd128"}

// String returns the tier's name, as it stands in the environment variable WAVELANE_SIMD.
func (t Tier) String() string {
	if int(t) < len(names) {
		return names[t]
	}
	return fmt.Sprintf("tier %d", uint8(t))
}

// Variable is the environment variable that forces a tier: "scalar", "sse", "avx2", "avx512", "neon" or "simd128".
const Variable = "WAVELANE_SIMD"

var (
	available         = detect() // from Scalar up
	active, forcedErr = forced(os.Getenv(Variable))
)

// forced returns the tier of that name, or the best one for none.
func forced(name string) (Tier, error) {
	best := available[len(available)-1]
	if name == "" {
		return best, nil
	}
	t, err := ParseTier(name)
	if err == nil {
		err = possible(t)
	}
	if err != nil {
		return best, fmt.Errorf("%s: %w", Variable, err)
	}
	return t, nil
}

// ParseTier returns the tier of a name.
func ParseTier(name string) (Tier, error) {
	if i := slices.Index(names[:], name); i >= 0 {
		return Tier(i), nil
	}
	return Scalar, fmt.Errorf("unknown instruction set %q, possible here are %s: %w", name, list(), compute.ErrArgument)
}

// possible returns an error for a tier that this machine does not have.
func possible(t Tier) error {
	if slices.Contains(available, t) {
		return nil
	}
	return fmt.Errorf("instruction set %s: this machine has %s: %w", t, list(), compute.ErrUnavailable)
}

func list() string {
	var l []string
	for _, t := range available {
		l = append(l, t.String())
	}
	return strings.Join(l, ", ")
}

// Err says what is wrong with WAVELANE_SIMD: it wraps compute.ErrArgument for a name that there is not and
// compute.ErrUnavailable for a tier that this machine does not have. The best tier is active then.
func Err() error { return forcedErr }

// Active returns the tier that kernels run on.
func Active() Tier { return active }

// Available returns the tiers of this machine, the slowest, Scalar, first.
func Available() []Tier { return slices.Clone(available) }

// SetTier makes a tier active. It is for tests, and for times at which no kernel runs.
func SetTier(t Tier) error {
	if err := possible(t); err != nil {
		return err
	}
	active = t
	return nil
}

// Lanes is the number of elements that a kernel which stopped leaves to its portable fallback, and of numbers that an accumulator has in
// a kernel that hands them out one by one. It is that of the generator.
const Lanes = 64
