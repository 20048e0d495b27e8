package kernels_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/conformance/kernelcase"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/kernels"
	"github.com/wavelane/wavelane/ptx/sim"
)

// machine is a software GPU as the cases see it.
type machine struct {
	t   testing.TB
	gpu *sim.GPU
	rng *rand.Rand
	all []buffer
}

type buffer struct {
	at    uint64
	bytes int
}

// Upload puts bytes into a buffer of exactly that size, which the checks guard.
func (m *machine) Upload(p []byte) uint64 {
	at := m.Empty(len(p))
	require.NoError(m.t, m.gpu.Write(at, p))
	return at
}

// Empty is a buffer that nobody has written: reading from it is an error.
func (m *machine) Empty(bytes int) uint64 {
	at, err := m.gpu.Alloc(max(1, bytes))
	require.NoError(m.t, err)
	m.all = append(m.all, buffer{at, bytes})
	return at
}

// Read fails where the kernel did not write.
func (m *machine) Read(p []byte, at uint64) error { return m.gpu.Read(p, at) }

// everything is the contents of all buffers.
func (m *machine) everything() []byte {
	var all []byte
	for _, b := range m.all {
		p := make([]byte, b.bytes)
		require.NoError(m.t, m.gpu.Read(p, b.at))
		all = append(all, p...)
	}
	return all
}

func (m *machine) job(k kernels.Kernel, sizes []int) kernelcase.Job {
	j, err := kernelcase.New(m, m.rng, k, sizes)
	require.NoError(m.t, err)
	return j
}

// launch executes a kernel on the machine and returns what the software GPU or the comparison objects to.
func (m *machine) launch(k kernels.Kernel, module *ir.Module, sizes []int, j kernelcase.Job) error {
	loaded, err := m.gpu.Load(module)
	if err != nil {
		return err
	}
	entry, err := loaded.Kernel(k.Name)
	if err != nil {
		return err
	}
	params, err := entry.Pack(j.Args...)
	if err != nil {
		return err
	}
	grid := k.Grid(sizes...)
	l := sim.Launch{Grid: sim.Dim3{X: grid[0], Y: grid[1], Z: grid[2]}, Block: sim.Dim3{X: k.Block[0], Y: k.Block[1], Z: k.Block[2]},
		Shared: j.Shared, Params: params}
	_, err = m.gpu.Run(m.t.Context(), entry, l)
	return err
}
