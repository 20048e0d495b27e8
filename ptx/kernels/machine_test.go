package kernels_test

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx/sim"
)

// machine is a software GPU with what tests do to its memory.
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

// upload puts bytes into a buffer of exactly that size, which the checks guard.
func (m *machine) upload(p []byte) uint64 {
	at := m.empty(len(p))
	require.NoError(m.t, m.gpu.Write(at, p))
	return at
}

// empty is a buffer that nobody has written: reading from it is an error.
func (m *machine) empty(bytes int) uint64 {
	at, err := m.gpu.Alloc(max(1, bytes))
	require.NoError(m.t, err)
	m.all = append(m.all, buffer{at, bytes})
	return at
}

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

func (m *machine) floats(x []float32) uint64 { return m.upload(bytesOf(x, math.Float32bits)) }

func (m *machine) words(x []uint32) uint64 {
	return m.upload(bytesOf(x, func(v uint32) uint32 { return v }))
}

func bytesOf[T any](x []T, bits func(T) uint32) []byte {
	var p []byte
	for _, v := range x {
		p = binary.LittleEndian.AppendUint32(p, bits(v))
	}
	return p
}

// read fetches n words. It fails where the kernel did not write.
func (m *machine) read(at uint64, n int) ([]uint32, error) {
	p := make([]byte, 4*n)
	if err := m.gpu.Read(p, at); err != nil {
		return nil, err
	}
	x := make([]uint32, n)
	for i := range x {
		x[i] = binary.LittleEndian.Uint32(p[4*i:])
	}
	return x, nil
}

// normals are n numbers around zero.
func (m *machine) normals(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(m.rng.NormFloat64())
	}
	return x
}
