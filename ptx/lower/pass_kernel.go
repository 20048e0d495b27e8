package lower

import "github.com/wavelane/wavelane/ptx"

// pass is what a kernel of family pass gathers of rows, and how it finishes them by it.
type pass struct {
	empty []float32 // what no element gives: one number or four
	merge merge[float32]
	// take gathers elements of a row; row stores the row's result, or elements those of elements.
	take     func(b columns) []float
	row      func(all []float)
	elements func(all []float, b columns)
}

// What a kernel of passes does with its tasks.
const (
	wholePass  uint32 = iota // gathers and finishes rows, each of which is one task
	partPass                 // leaves what tasks gather
	finishPass               // joins what the tasks of its row gathered, and finishes
)

const passDoc = " Parameters: work; u32 stage; u32 states, of a row, in f32* partial; "

// passKernel is a kernel over rows. Its parameters are work.args; u32 stage; u32 states; f32* partial; what body declares.
func passKernel(name, doc string, body func(t team) pass) *Kernel {
	return register(Kernel{Family: "pass", Name: name, Doc: doc, Block: [3]int{teamThreads, 1, 1}, build: func(k *ptx.Kernel) {
		t := teamOf(k)
		stage, states := ptx.Param[uint32](k, "stage"), ptx.Param[uint32](k, "states")
		partial := ptx.PointerParam[float32](k, "partial", ptx.Align(16))
		b := body(t)
		at := func(task ptx.Reg[uint32]) ptx.Ptr[ptx.Global, float32] {
			return ptx.AtByte(k, partial, ptx.MulWideU32(k, task, u32(4*len(b.empty))))
		}
		acc := variablesOf(k, constants(b.empty))
		k.If(ptx.Eq(k, stage, ptx.Imm(finishPass)), func() {
			first := ptx.Mul(k, t.row, states)
			end := ptx.Select(k, t.active, states, u32(0))
			ptx.For(k, t.lane, end, t.lanes, func(i ptx.Reg[uint32]) {
				acc.set(b.merge(acc.get(), loadAll(k, at(ptx.Add(k, first, i)), len(b.empty))))
			}, ptx.NoUnroll())
		}, func() {
			t.batches(func(c columns) { acc.set(b.merge(acc.get(), b.take(c))) })
		})
		all := fromFirst(t, reduce(t, acc.get(), sharedFor[float32](k, len(b.empty)), b.merge))
		first := ptx.And(k, t.active, ptx.Eq(k, t.lane, u32(0)))
		k.If(ptx.Eq(k, stage, ptx.Imm(partPass)), func() {
			k.If(first, func() { storeAll(k, at(t.task), all) })
		}, func() {
			if b.row != nil {
				k.If(first, func() { b.row(all) })
				return
			}
			t.batches(func(c columns) { b.elements(all, c) })
		})
	}})
}

// loadAll accesses one number, or two or four at a multiple of their size; storeAll one or four.
func loadAll[T ptx.Lane](k *ptx.Kernel, p ptx.Ptr[ptx.Global, T], n int) []ptx.Reg[T] {
	switch n {
	case 4:
		x := ptx.Load4(k, p)
		return x[:]
	case 2:
		x := ptx.Load2(k, p)
		return x[:]
	}
	return []ptx.Reg[T]{ptx.Load(k, p)}
}

func storeAll[T ptx.Lane](k *ptx.Kernel, p ptx.Ptr[ptx.Global, T], x []ptx.Reg[T]) {
	if len(x) == 4 {
		ptx.Store4(k, p, [4]ptx.Reg[T](x))
		return
	}
	ptx.Store(k, p, x[0])
}

// columns are a batch of elements of a row that a lane has: of which the first is inside, the others may not be.
type columns struct {
	k      *ptx.Kernel
	at     []ptx.Reg[uint32]
	inside []ptx.Reg[bool]
}

// batches walks over the elements of the task, a batch of each lane at a time, neighbours side by side.
func (t team) batches(f func(b columns)) {
	k := t.k
	ptx.For(k, ptx.Add(k, t.start, t.lane), t.end, ptx.Mul(k, t.lanes, u32(batch)), func(i ptx.Reg[uint32]) {
		b := columns{k, []ptx.Reg[uint32]{i}, make([]ptx.Reg[bool], 1)}
		for j := 1; j < batch; j++ {
			b.at = append(b.at, ptx.Mad(k, t.lanes, u32(j), i))
			b.inside = append(b.inside, ptx.Lt(k, b.at[j], t.end))
		}
		f(b)
	}, ptx.NoUnroll())
}

// load is the batch's elements of a row, and other where they are not inside.
func (b columns) load(p ptx.Ptr[ptx.Global, float32], other float) (x []float) {
	for j, i := range b.at {
		if j == 0 {
			x = append(x, ptx.Load(b.k, ptx.At(b.k, p, i)))
			continue
		}
		x = append(x, ptx.LoadIf(b.k, b.inside[j], ptx.At(b.k, p, i), other))
	}
	return x
}

// store writes element j of the batch if it is inside.
func (b columns) store(j int, p ptx.Ptr[ptx.Global, float32], v float) {
	if p = ptx.At(b.k, p, b.at[j]); j == 0 {
		ptx.Store(b.k, p, v)
		return
	}
	ptx.StoreIf(b.k, b.inside[j], p, v)
}

// orZero is v where element j of the batch is inside, else 0.
func (b columns) orZero(j int, v float) float {
	if j == 0 {
		return v
	}
	return ptx.Select(b.k, b.inside[j], v, num(0))
}

// longestPass is the number of elements of a task at most: a lane joins 64 batches.
const longestPass = 64 * batch * teamThreads

// pass launches a kernel of passes over rows: with arguments for each element or, if perRow, one for each row.
func (s *step) pass(k *Kernel, rows, cols, registers int, perRow bool, arguments ...any) {
	const blocks = 4 // per multiprocessor
	w := s.split(rows, cols, blocks, longestPass)
	run := func(stage uint32, states int, partial Buffer) {
		s.launch(k, w.grid(), append([]any{w.args(), stage, states, partial}, arguments...)...)
	}
	if w.parts == 1 {
		w.lanes = s.lanes(w, 1, 1, batch)
		run(wholePass, 0, result)
		return
	}
	w.lanes = teamThreads
	partial, states := s.scratch(4*registers*w.tasks()), w.parts
	run(partPass, states, partial)
	if perRow {
		w = work{rows: rows, cols: cols, parts: 1, chunk: cols}
		w.lanes = s.lanes(work{rows: rows, cols: states, parts: 1, chunk: states}, 1, 1, batch)
	}
	run(finishPass, states, partial)
}
