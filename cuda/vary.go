package cuda

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/wavelane/wavelane/cuda/internal/driver"
)

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
func (e *compiled) fillWords(m *memory, scalars []float32) {
	for i := range e.actions {
		if a := &e.actions[i]; a.kind == uploading {
			binary.LittleEndian.PutUint32(m.upload.bytes()[a.staged:], math.Float32bits(scalars[a.scalars[0].Index]))
		}
	}
}

// vary puts the scalars of a run into the action.
func (a *action) vary(scalars []float32) {
	for _, q := range a.scalars {
		bits := math.Float32bits(scalars[q.Index])
		switch a.kind {
		case filling:
			a.word = bits
		case launching:
			binary.LittleEndian.PutUint32(a.launch.Params[4*q.At:], bits)
		}
	}
}

// varyingNode is a launch in a graph with scalars that differ from run to run.
type varyingNode struct {
	handle driver.GraphNode
	action int
}

// note keeps the node that the last captured call made, if its scalars vary, or its tensors in the only graph.
func (e *compiled) note(g *replay, action int, s driver.Stream) error {
	if a := &e.actions[action]; a.kind != launching || len(a.scalars) == 0 && (e.together == nil || !a.onTensors()) {
		return nil
	}
	handle, r := e.d.drv.StreamCaptureNode(s)
	g.nodes = append(g.nodes, varyingNode{handle, action})
	return e.d.check("cuStreamGetCaptureInfo", r)
}

// varyNodes gives the launches of a graph the scalars and tensors of a run. The caller holds the device's submit lock.
func (e *compiled) varyNodes(g *replay, tensors []located) error {
	m := *g.memory
	m.tensors = tensors
	if len(g.nodes) == 0 || slices.Equal(g.scalars, m.scalars) && sameTensors(g.at, &m) {
		return nil
	}
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
	g.at = snapshot(&m)
	return nil
}
