package gpu

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/gpu/internal/webgpu"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/wgsl"
)

// probe is the code of a step for other scalars, which shows where those go that vary from run to run.
type probe struct {
	wgsl.Lowering
	marks map[uint32]int
}

// probe lowers a step for it; without actions if nothing varies.
func (d *core) probe(p *program.Program, s *program.Step, choose wgsl.Chooser) (probe, error) {
	if !s.Attr.Varies() {
		return probe{}, nil
	}
	other, marks := s.Probe()
	l, err := d.lower(p, &other, choose)
	return probe{l, marks}, err
}

// variable is a word of the arena that is one of program.IO.Scalars.
type variable struct{ at, index int }

// varyingParams gives a dispatch a parameter block of its own if some of its scalars vary.
func (pl *plan) varyingParams(a *action, x *wgsl.Dispatch, probe probe, i int) (bool, error) {
	if probe.marks == nil {
		return false, nil
	}
	var found []variable
	same := i < len(probe.Actions) && probe.Actions[i].Dispatch != nil
	if same {
		y := probe.Actions[i].Dispatch
		same = x.Kernel.Key == y.Kernel.Key && x.Grid == y.Grid && program.Moved(x.Params, y.Params, probe.marks, func(at, index int) {
			found = append(found, variable{len(pl.own) + 4*at, index})
		})
	}
	if !same {
		return false, fmt.Errorf("its scalars cannot vary on this device, its code depends on them: %w", compute.ErrUnsupported)
	}
	if found == nil {
		return false, nil
	}
	slot := block(x.Params)
	a.dynamic = uint32(len(pl.own))
	pl.own = append(pl.own, slot[:]...)
	pl.variable = append(pl.variable, found...)
	return true, nil
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
