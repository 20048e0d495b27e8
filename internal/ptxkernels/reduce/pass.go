package reduce

import (
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/scalar"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/threadgroup"
	"github.com/wavelane/wavelane/ptx"
)

// pass is what a kernel of family pass gathers of rows, and how it finishes them by it.
type pass struct {
	empty []float32 // what no element gives: one number or four
	merge scalar.Merge[float32]
	// take gathers elements of a row; row stores the row's result, or elements those of elements.
	take     func(b columns) []scalar.Float
	row      func(all []scalar.Float)
	elements func(all []scalar.Float, b columns)
}

// What a kernel of passes does with its tasks.
const (
	wholePass  uint32 = iota // gathers and finishes rows, each of which is one task
	partPass                 // leaves what tasks gather
	finishPass               // joins what the tasks of its row gathered, and finishes
)

const passDoc = " Parameters: work; u32 stage; u32 states, of a row, in f32* partial; "

// passKernel is a kernel over rows. Its parameters are work.args; u32 stage; u32 states; f32* partial; what body declares.
func passKernel(name, doc string, body func(t threadgroup.Group) pass) *kit.Kernel {
	return kit.Register(kit.Kernel{Family: "pass", Name: name, Doc: doc, Block: [3]int{threadgroup.Threads, 1, 1}, Build: func(k *ptx.Kernel) {
		t := threadgroup.Of(k)
		stage, states := ptx.Param[uint32](k, "stage"), ptx.Param[uint32](k, "states")
		partial := ptx.PointerParam[float32](k, "partial", ptx.Align(16))
		b := body(t)
		at := func(task ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
			return partial.Bytes(task.MulWide(4 * len(b.empty)))
		}
		acc := scalar.VariablesOf(k, scalar.Constants(b.empty))
		k.If(stage.Eq(finishPass), func() {
			first := t.Row.Mul(states)
			end := ptx.Select(t.Active, states, 0)
			ptx.For(k, t.Lane, end, t.Lanes, func(i ptx.Reg[uint32]) {
				acc.Set(b.merge(acc.Get(), scalar.LoadAll(k, at(first.Add(i)), len(b.empty))))
			}, ptx.NoUnroll())
		}, func() {
			batches(t, func(c columns) { acc.Set(b.merge(acc.Get(), b.take(c))) })
		})
		all := threadgroup.Broadcast(t, threadgroup.Reduce(t, acc.Get(), threadgroup.SharedFor[float32](k, len(b.empty)), b.merge))
		first := t.Active.And(t.Lane.Eq(0))
		k.If(stage.Eq(partPass), func() {
			k.If(first, func() { scalar.StoreAll(k, at(t.Task), all) })
		}, func() {
			if b.row != nil {
				k.If(first, func() { b.row(all) })
				return
			}
			batches(t, func(c columns) { b.elements(all, c) })
		})
	}})
}

// columns are a batch of elements of a row that a lane has: of which the first is inside, the others may not be.
type columns struct {
	k      *ptx.Kernel
	at     []ptx.Reg[uint32]
	inside []ptx.Reg[bool]
}

// batches walks over the elements of the task, a batch of each lane at a time, neighbours side by side.
func batches(t threadgroup.Group, f func(b columns)) {
	k := t.K
	ptx.For(k, t.Start.Add(t.Lane), t.End, t.Lanes.Mul(batch), func(i ptx.Reg[uint32]) {
		b := columns{k, []ptx.Reg[uint32]{i}, make([]ptx.Reg[bool], 1)}
		for j := 1; j < batch; j++ {
			b.at = append(b.at, t.Lanes.Mad(j, i))
			b.inside = append(b.inside, b.at[j].Lt(t.End))
		}
		f(b)
	}, ptx.NoUnroll())
}

// Load is the batch's elements of a row, and other where they are not inside.
func (b columns) Load(p ptx.Ptr[ptx.Global, float32], other scalar.Float) (x []scalar.Float) {
	for j, i := range b.at {
		if j == 0 {
			x = append(x, p.At(i).Load())
			continue
		}
		x = append(x, ptx.LoadIf(b.inside[j], p.At(i), other))
	}
	return x
}

// store writes element j of the batch if it is inside.
func (b columns) store(j int, p ptx.Ptr[ptx.Global, float32], v scalar.Float) {
	if p = p.At(b.at[j]); j == 0 {
		p.Store(v)
		return
	}
	ptx.StoreIf(b.inside[j], p, v)
}

// orZero is v where element j of the batch is inside, else 0.
func (b columns) orZero(j int, v scalar.Float) scalar.Float {
	if j == 0 {
		return v
	}
	return ptx.Select(b.inside[j], v, 0)
}

// longestPass is the number of elements of a task at most: a lane joins 64 batches.
const longestPass = 64 * batch * threadgroup.Threads

// passStep launches a kernel of passes over rows: with arguments for each element or, if perRow, one for each row.
func passStep(s *kit.Step, k *kit.Kernel, rows, cols, registers int, perRow bool, arguments ...any) {
	const blocks = 4 // per multiprocessor
	w := threadgroup.Split(s, rows, cols, blocks, longestPass)
	run := func(stage uint32, states int, partial kit.Buffer) {
		s.Launch(k, w.Grid(), append([]any{w.Args(), stage, states, partial}, arguments...)...)
	}
	if w.Parts == 1 {
		w.Lanes = threadgroup.Lanes(s, w, 1, 1, batch)
		run(wholePass, 0, kit.Out)
		return
	}
	w.Lanes = threadgroup.Threads
	partial, states := s.NewScratch(4*registers*w.Tasks()), w.Parts
	run(partPass, states, partial)
	if perRow {
		w = threadgroup.Partition{Rows: rows, Cols: cols, Parts: 1, Chunk: cols}
		w.Lanes = threadgroup.Lanes(s, threadgroup.Partition{Rows: rows, Cols: states, Parts: 1, Chunk: states}, 1, 1, batch)
	}
	run(finishPass, states, partial)
}
