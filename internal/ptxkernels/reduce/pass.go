package reduce

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// pass is what a kernel of family pass accumulates of rows, and how it finishes them by it.
type pass struct {
	threadgroup.Accumulator[float32]
	partial func(e threadgroup.Elements) []scalar.Float
	// row stores the row's result, or elements those of elements.
	row      func(all []scalar.Float)
	elements func(all []scalar.Float, e threadgroup.Elements)
}

// stageParams are the first parameters of kernels whose tasks may leave partial results.
type stageParams struct {
	threadgroup.Work
	Stage, States int `array:"-"` // States is how many a row has in partial
	Partial       kit.Buffer
}

// passKernel is a kernel over rows, of whose parameters head is the beginning.
func passKernel[P any](name, doc string, params func() P, head func(at *P) *stageParams, body func(t threadgroup.Group, at *P) pass) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "pass", Name: name, Doc: doc, Params: params(), Block: [3]int{threadgroup.Threads, 1, 1}, Build: func(k *ptx.Kernel) {
		at := params()
		p, first := kit.NewParams(k, &at), head(&at)
		t := threadgroup.Of(p, &first.Work)
		stage, states, partial := p.U32(&first.Stage), p.U32(&first.States), kit.Ptr[float32](p, &first.Partial, ptx.Align(16))
		b := body(t, &at)
		threadgroup.ReducerOf(t, b.Accumulator).Run(stage, states, partial, func(p threadgroup.Partial[float32]) {
			t.EachBatch(func(e threadgroup.Elements) { p.Accumulate(b.partial(e)) })
		}, func(all []scalar.Float) {
			if b.row != nil {
				k.If(t.First(), func() { b.row(all) })
			} else {
				t.EachBatch(func(e threadgroup.Elements) { b.elements(all, e) })
			}
		})
	}})
}

// longestPass is the number of elements of a task at most: a lane combines 64 batches.
const longestPass = 64 * threadgroup.Batch * threadgroup.Threads

// passStep launches a kernel of passes over rows: with partial results for each element or, if perRow, for each row. The parameters
// begin with those that params is given.
func passStep(s *kit.Step, k *kit.Kernel, rows, cols, words int, perRow bool, params func(head stageParams) any) {
	const blocks = 4 // per multiprocessor
	w := threadgroup.Split(s, rows, cols, blocks, longestPass)
	w.Lanes = threadgroup.Threads
	if w.Parts == 1 {
		w.Lanes = threadgroup.Lanes(s, w, 1, 1, threadgroup.Batch)
	}
	launchStages(s, nil, nil, k, w, words, perRow, params)
}

// launchStages launches a kernel over w. With perRow, its results are for rows.
func launchStages(s *kit.Step, h *kit.Prologue, e *kit.Epilogue, k *kit.Kernel, w threadgroup.Partition, words int, perRow bool,
	params func(head stageParams) any) {
	w.Stages(s, words, func(stage uint32, partial kit.Buffer) {
		w, states := w, w.Parts
		if stage == threadgroup.FinishRows && perRow { // a group for each row
			parts := threadgroup.Partition{Rows: w.Rows, Cols: states, Parts: 1, Chunk: states}
			w = threadgroup.Partition{Rows: w.Rows, Cols: w.Cols, Parts: 1, Chunk: w.Cols}
			w.Lanes = threadgroup.Lanes(s, parts, 1, 1, threadgroup.Batch)
		}
		s.LaunchWith(h, e, k, w.Grid(), params(stageParams{w.Work(), int(stage), states, partial}))
	})
}
