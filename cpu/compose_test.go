package cpu

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// Pieces without scratch memory, and temporaries without elements, have no pointers: those would point beyond the scratch
// memory's end.
func TestNoPointersBehindScratch(t *testing.T) {
	s := &sequence{}
	first, none := s.temporary(16), s.temporary(0)
	var seen []view
	piece := one(1, 1, func(a *args, _, _ int) { seen = append(seen, a.scratch, a.in[0], a.out) })
	s.append(piece, none, value{program.F32(16), first})
	piece.scratch = 64
	s.append(piece, first, value{program.F32(0), none})
	w := s.done()
	require.Equal(t, 128, w.scratch)
	memory := make([]uint64, 16)
	at := unsafe.Pointer(unsafe.SliceData(memory))
	for _, p := range w.phases {
		p.do(&args{scratch: view{at, 16}}, 0, 1)
	}
	require.Equal(t, []view{{}, {at, 16}, {}, {unsafe.Add(at, 64), 8}, {}, {at, 16}}, seen)
}

// Weights of 16 bits are read as they are: a product of them with one row needs next to no memory beside them.
func TestFusedMatmulReadsHalves(t *testing.T) {
	const k, n = 1024, 512
	for _, d := range []compute.DType{compute.Float16, compute.BFloat16} {
		w := program.Type{DType: d, Shape: []int{n, k}}
		row, gamma := program.F32(1, k), program.F32(k)
		for e, in := range map[*program.Entry][]program.Type{catalogue.RMSNormMatVec: {row, gamma, w}, catalogue.QKV: {row, w, w, w}, catalogue.GateUpSwiGLU: {row, w, w}} {
			attr := program.Attr{Scalars: make([]float32, len(e.Scalars))}
			outs, err := e.Check(in, attr)
			require.NoError(t, err)
			work, err := lower(e, &call{in: in, outs: outs, out: outs[0], attr: attr})
			require.NoError(t, err)
			require.Less(t, work.scratch, w.Bytes()/8, "%s", e.Name)
		}
	}
}
