package tiling

import "github.com/wavelane/wavelane/ptx"

// Pipeline is a ring of stages of shared memory: asynchronous copies fill some while another is multiplied (CUTLASS: MmaMultistage).
//
//	          ┌──────────┬──────────┬──────────┐
//	stages    │ arrived  │ on its   │ to be    │   Commit and Release go on to the next stage, from the last to the first
//	          │          │ way      │ filled   │
//	          └──────────┴──────────┴──────────┘
//	               ▲                     ▲
//	             Read                  Write
//
// An iteration fills the stage at Write and commits it, multiplies that at Read and releases it, and waits.
type Pipeline struct {
	k             *ptx.Kernel
	stages, bytes int
	Write, Read   *ptx.Var[uint32] // where in shared memory the stage begins, in bytes
}

// NewPipeline returns a ring of so many stages, all empty.
func NewPipeline(k *ptx.Kernel, stages, bytes int) *Pipeline {
	return &Pipeline{k, stages, bytes, ptx.VarOf(k, ptx.U32(0)), ptx.VarOf(k, ptx.U32(0))}
}

func (p *Pipeline) advance(v *ptx.Var[uint32], by ptx.Reg[uint32]) {
	n := v.Get().Add(by)
	v.Set(ptx.Select(n.Eq(p.stages*p.bytes), ptx.U32(0), n))
}

// Commit ends the copies to a stage, of which there may be none.
func (p *Pipeline) Commit() { p.CommitBy(ptx.U32(p.bytes)) }

// CommitBy is Commit that goes on by so many bytes: those of a stage, or none if it has not been filled.
func (p *Pipeline) CommitBy(bytes ptx.Reg[uint32]) {
	p.k.CpAsyncCommit()
	p.advance(p.Write, bytes)
}

// Release says that the stage at Read has been multiplied.
func (p *Pipeline) Release() { p.advance(p.Read, ptx.U32(p.bytes)) }

// Wait returns when the stage at Read has arrived for all threads, and none reads that at Write any longer.
func (p *Pipeline) Wait() {
	p.k.CpAsyncWait(p.stages - 2)
	p.k.Barrier()
}
