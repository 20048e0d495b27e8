package cuda

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/internal/program"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
)

// findScalars notes where the actions of a step take scalars from that differ from run to run.
func (d *state) findScalars(p *program.Program, s *program.Step, l kit.Lowering, actions []action) error {
	probe, marks := s.Probe()
	other, err := d.lower(p, &probe)
	if err != nil {
		return err
	}
	same := len(other.Actions) == len(l.Actions)
	for i := 0; same && i < len(l.Actions); i++ {
		a, x, y := &actions[i], &l.Actions[i], &other.Actions[i]
		found := func(at, variable int) {
			a.scalars = append(a.scalars, scalarPatch{4 * at, variable})
		}
		switch {
		case x.Launch != nil && y.Launch != nil:
			same = x.Launch.Kernel.Name == y.Launch.Kernel.Name && x.Launch.Grid == y.Launch.Grid &&
				program.Moved(wordsOf(x.Launch.Params), wordsOf(y.Launch.Params), marks, found)
		case x.Fill != nil && y.Fill != nil:
			same = program.Moved([]uint32{x.Fill.Word}, []uint32{y.Fill.Word}, marks, found)
		}
	}
	if !same {
		return fmt.Errorf("its scalars cannot vary on this device, their kernel is chosen by them: %w", compute.ErrUnsupported)
	}
	return nil
}

// wordsOf is a parameter block word by word; a rest of fewer bytes is no scalar's.
func wordsOf(params []byte) []uint32 {
	w := make([]uint32, len(params)/4)
	for i := range w {
		w[i] = binary.LittleEndian.Uint32(params[4*i:])
	}
	return w
}

// stageWords turns fills of one word that varies into copies from the staging memory, which a graph reads anew in each replay.
func (pl *plan) stageWords() {
	for i := range pl.actions {
		a := &pl.actions[i]
		if a.kind != filling || len(a.scalars) == 0 {
			continue
		}
		if a.n > 1 {
			pl.fixed = true
			continue
		}
		a.kind, a.staged = uploading, pl.upload
		pl.upload += aligned(4)
	}
}

// fillWords puts such words into the staging memory.
func (e *executable) fillWords(m *memory, scalars []float32) {
	for i := range e.actions {
		if a := &e.actions[i]; a.kind == uploading {
			binary.LittleEndian.PutUint32(m.upload.bytes()[a.staged:], math.Float32bits(scalars[a.scalars[0].variable]))
		}
	}
}

// vary puts the scalars of a run into the action.
func (a *action) vary(scalars []float32) {
	for _, q := range a.scalars {
		bits := math.Float32bits(scalars[q.variable])
		switch a.kind {
		case filling:
			a.word = bits
		case launching:
			binary.LittleEndian.PutUint32(a.launch.Params[q.at:], bits)
		}
	}
}

// varyingNode is a launch in a graph with scalars that differ from run to run.
type varyingNode struct {
	handle driver.GraphNode
	action int
}

// note keeps the node that the last captured call made, if its scalars vary.
func (e *executable) note(g *replay, action int, s driver.Stream) error {
	if a := &e.actions[action]; a.kind != launching || len(a.scalars) == 0 {
		return nil
	}
	handle, r := e.d.drv.StreamCaptureNode(s)
	g.nodes = append(g.nodes, varyingNode{handle, action})
	return e.d.check("cuStreamGetCaptureInfo", r)
}

// varyNodes gives the launches of a graph the scalars of a run. The caller holds the device's submit lock.
func (e *executable) varyNodes(g *replay, tensors []located) error {
	if len(g.nodes) == 0 || slices.Equal(g.scalars, g.memory.scalars) {
		return nil
	}
	m := *g.memory
	m.tensors = tensors
	for _, n := range g.nodes {
		a := &e.actions[n.action]
		if err := e.patch(&m, a); err != nil {
			return err
		}
		r := e.d.drv.GraphExecKernelNodeSetParams(g.exec, n.handle, a.function, &a.launch)
		if err := e.d.check("cuGraphExecKernelNodeSetParams", r); err != nil {
			return err
		}
	}
	copy(g.scalars, m.scalars)
	return nil
}
