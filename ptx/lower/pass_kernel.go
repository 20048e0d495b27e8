package lower

import "github.com/wavelane/wavelane/ptx"

// pass is what a kernel of family pass gathers of rows, and how it finishes them by it.
type pass struct {
	empty []float32 // what no element gives: one number or four
	merge merge[float32]
	// take gathers elements, columns of the row, of which some may not be inside; finish stores element i, or the row's result.
	take    func(columns []ptx.Reg[uint32], inside []ptx.Reg[bool]) []float
	row     func(all []float)
	element func(all []float, i []ptx.Reg[uint32], inside []ptx.Reg[bool])
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
			t.batches(func(columns []ptx.Reg[uint32], inside []ptx.Reg[bool]) {
				acc.set(b.merge(acc.get(), b.take(columns, inside)))
			})
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
			t.batches(func(columns []ptx.Reg[uint32], inside []ptx.Reg[bool]) { b.element(all, columns, inside) })
		})
	}})
}

// loadAll and storeAll access one number, or four at a multiple of 16 bytes.
func loadAll(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], n int) []float {
	if n == 4 {
		x := ptx.Load4(k, p)
		return x[:]
	}
	return []float{ptx.Load(k, p)}
}

func storeAll(k *ptx.Kernel, p ptx.Ptr[ptx.Global, float32], x []float) {
	if len(x) == 4 {
		ptx.Store4(k, p, [4]float(x))
		return
	}
	ptx.Store(k, p, x[0])
}

// batches walks over the elements of the task, a batch of each lane at a time, neighbours side by side.
func (t team) batches(f func(columns []ptx.Reg[uint32], inside []ptx.Reg[bool])) {
	k := t.k
	ptx.For(k, ptx.Add(k, t.start, t.lane), t.end, ptx.Mul(k, t.lanes, u32(batch)), func(i ptx.Reg[uint32]) {
		columns, inside := []ptx.Reg[uint32]{i}, []ptx.Reg[bool]{ptx.Lt(k, i, t.end)}
		for j := 1; j < batch; j++ {
			columns = append(columns, ptx.Mad(k, t.lanes, u32(j), i))
			inside = append(inside, ptx.Lt(k, columns[j], t.end))
		}
		f(columns, inside)
	}, ptx.NoUnroll())
}

// loads are elements of a row where they are inside, and other elsewhere.
func (t team) loads(p ptx.Ptr[ptx.Global, float32], columns []ptx.Reg[uint32], inside []ptx.Reg[bool], other float) (x []float) {
	for j, i := range columns {
		x = append(x, ptx.LoadIf(t.k, inside[j], ptx.At(t.k, p, i), other))
	}
	return x
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
