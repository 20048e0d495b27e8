// Package kernelcase has a case for each kernel of package ptx/kernels, for whatever executes PTX: what to launch it with, and
// what has to come of it, computed in float64.
package kernelcase

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"

	"github.com/wavelane/wavelane/ptx/kernels"
)

// Memory is that of the machine. What fails in Upload or Empty ends the test.
type Memory interface {
	// Upload puts bytes into a buffer of exactly that size.
	Upload(p []byte) (address uint64)
	// Empty is a buffer that nobody has written.
	Empty(bytes int) (address uint64)
	Read(p []byte, address uint64) error
}

// Job is a launch, and what has to come of it.
type Job struct {
	Args   []any // in the order of the parameters: uint32, float32, or uint64 for addresses
	Shared int   // bytes of dynamic shared memory
	// Check reads the results and says what is wrong with them.
	Check func() error
}

// Shapes are what every kernel is executed with, by the names of its sizes.
var Shapes = map[string][][]int{
	"n":         {{1}, {2}, {3}, {4}, {5}, {31}, {32}, {33}, {255}, {256}, {257}, {1000}, {1023}, {1024}, {1025}, {4099}, {9000}},
	"rows cols": {{1, 1}, {1, 2}, {2, 31}, {3, 32}, {32, 3}, {31, 33}, {33, 65}, {1, 257}, {2, 1000}, {64, 64}, {70, 5}, {1, 5000}},
	"m n k": {{1, 1, 1}, {1, 5, 3}, {5, 1, 17}, {16, 16, 16}, {17, 15, 33}, {33, 65, 7}, {64, 64, 32}, {65, 66, 67}, {8, 72, 40},
		{130, 70, 9}, {3, 3, 0}},
}

// cases makes a job for a kernel, by the beginning of its name.
var cases = map[string]func(m *rig, k kernels.Kernel, sizes []int) Job{
	"vector_add": vectorAdd, "saxpy": saxpy, "block_sum": blockSum, "grid_sum": gridSum, "softmax": softmax, "scan": scan,
	"histogram": histogram, "transpose": transpose, "sgemm": sgemm, "hgemm": hgemm,
}

// New fills memory with random inputs for a kernel and sizes. A kernel that nobody says how to test is an error.
func New(m Memory, rng *rand.Rand, k kernels.Kernel, sizes []int) (Job, error) {
	for prefix, c := range cases {
		if strings.HasPrefix(k.Name, prefix) {
			return c(&rig{m, rng}, k, sizes), nil
		}
	}
	return Job{}, fmt.Errorf("no case for kernel %s", k.Name)
}

// rig is memory with what cases do to it.
type rig struct {
	Memory
	rng *rand.Rand
}

func (m *rig) floats(x []float32) uint64 { return m.Upload(bytesOf(x, math.Float32bits)) }

func (m *rig) words(x []uint32) uint64 {
	return m.Upload(bytesOf(x, func(v uint32) uint32 { return v }))
}

func bytesOf[T any](x []T, bits func(T) uint32) []byte {
	var p []byte
	for _, v := range x {
		p = binary.LittleEndian.AppendUint32(p, bits(v))
	}
	return p
}

// read fetches n words.
func (m *rig) read(at uint64, n int) ([]uint32, error) {
	p := make([]byte, 4*n)
	if err := m.Read(p, at); err != nil {
		return nil, err
	}
	x := make([]uint32, n)
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	return x, nil
}

// normals are n numbers around zero.
func (m *rig) normals(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(m.rng.NormFloat64())
	}
	return x
}

// compare says where the float32 at an address differ from want by more than within.
func (m *rig) compare(at uint64, want, within []float64) error {
	got, err := m.read(at, len(want))
	if err != nil {
		return err
	}
	for i, bits := range got {
		g := float64(math.Float32frombits(bits))
		if math.IsNaN(want[i]) && math.IsNaN(g) || g == want[i] {
			continue
		}
		if d := math.Abs(g - want[i]); !(d <= within[i]) {
			return fmt.Errorf("element %d is %g, not %g ± %g", i, g, want[i], within[i])
		}
	}
	return nil
}
