package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/lowering"
)

// variable is a word of the arena that is one of program.IO.Scalars.
type variable struct{ at, index int }

// ownParams gives a dispatch with run-time scalars a parameter block of its own.
func (pl *plan) ownParams(a *action, words []uint32, scalars []lowering.ScalarWord) {
	for _, w := range scalars {
		pl.variable = append(pl.variable, variable{len(pl.own) + 4*w.At, w.Index})
	}
	slot := block(words)
	a.dynamic, a.varies = uint32(len(pl.own)), true
	pl.own = append(pl.own, slot[:]...)
}

// addArena appends the parameter blocks that vary to the others.
func (pl *plan) addArena() {
	pl.varying = len(pl.uniform)
	pl.uniform = append(pl.uniform, pl.own...)
	pl.own = nil
	for i := range pl.variable {
		pl.variable[i].at += pl.varying
	}
	for i := range pl.actions {
		if pl.actions[i].varies {
			pl.actions[i].dynamic += uint32(pl.varying)
		}
	}
	if pl.arena = -1; len(pl.uniform) > 0 {
		pl.arena = pl.addAllocation(uint64(len(pl.uniform)), true)
	}
}

// fillArena brings the parameters of the kernels to the device: all of them for the first run of the instance, later those that
// vary, when they are others.
func (r *run) fillArena() error {
	in, scalars := r.in, r.io.Scalars
	if scalars == nil {
		scalars = r.scalars
	}
	from := 0
	switch {
	case len(r.uniform) == 0:
		return nil
	case in.uniform == nil:
		if in.uniform = r.uniform; len(r.variable) > 0 {
			in.uniform, in.scalars = slices.Clone(r.uniform), make([]float32, len(scalars))
		}
	case slices.Equal(in.scalars, scalars) || len(r.variable) == 0:
		return nil
	default:
		from = r.varying
	}
	copy(in.scalars, scalars)
	for _, v := range r.variable {
		binary.LittleEndian.PutUint32(in.uniform[v.at:], math.Float32bits(scalars[v.index]))
	}
	b, err := r.d.pool.get(webgpu.UploadBuffer, uint64(len(in.uniform)-from))
	if err != nil {
		return fmt.Errorf("upload: %w", err)
	}
	r.filling = b
	r.d.drv.Write(b.Object, 0, in.uniform[from:])
	r.copy(b, 0, in.buffers[r.arena], uint64(from), uint64(len(in.uniform)-from))
	return nil
}
