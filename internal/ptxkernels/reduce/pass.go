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

const passDoc = " Parameters: work; u32 stage; u32 states, of a row, in partial; partial; "

// stageParams declares the parameters of passDoc after the first.
func stageParams[T ptx.Lane](k *ptx.Kernel) (stage, states ptx.Reg[uint32], partial ptx.Ptr[ptx.Global, T]) {
	return ptx.Param[uint32](k, "stage"), ptx.Param[uint32](k, "states"), ptx.PointerParam[T](k, "partial", ptx.Align(16))
}

// passKernel is a kernel over rows. Its parameters are those of passDoc, then what body declares.
func passKernel(name, doc string, body func(t threadgroup.Group) pass) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "pass", Name: name, Doc: doc, Block: [3]int{threadgroup.Threads, 1, 1}, Build: func(k *ptx.Kernel) {
		t := threadgroup.Of(k)
		stage, states, partial := stageParams[float32](k)
		b := body(t)
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

// passStep launches a kernel of passes over rows: with arguments for each element or, if perRow, one for each row.
func passStep(s *kit.Step, k *kit.Kernel, rows, cols, words int, perRow bool, arguments ...any) {
	const blocks = 4 // per multiprocessor
	w := threadgroup.Split(s, rows, cols, blocks, longestPass)
	w.Lanes = threadgroup.Threads
	if w.Parts == 1 {
		w.Lanes = threadgroup.Lanes(s, w, 1, 1, threadgroup.Batch)
	}
	launchStages(s, nil, nil, k, w, words, perRow, arguments...)
}

// launchStages launches a kernel over w whose parameters are those of passDoc and arguments. With perRow, those are for rows.
func launchStages(s *kit.Step, h *kit.Prologue, e *kit.Epilogue, k *kit.Kernel, w threadgroup.Partition, words int, perRow bool, arguments ...any) {
	w.Stages(s, words, func(stage uint32, partial kit.Buffer) {
		w, states := w, w.Parts
		if stage == threadgroup.FinishRows && perRow { // a group for each row
			parts := threadgroup.Partition{Rows: w.Rows, Cols: states, Parts: 1, Chunk: states}
			w = threadgroup.Partition{Rows: w.Rows, Cols: w.Cols, Parts: 1, Chunk: w.Cols}
			w.Lanes = threadgroup.Lanes(s, parts, 1, 1, threadgroup.Batch)
		}
		s.LaunchWith(h, e, k, w.Grid(), append([]any{w.Args(), stage, states, partial}, arguments...)...)
	})
}
