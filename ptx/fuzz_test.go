package ptx_test

import (
	"encoding/binary"
	"testing"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// FuzzBuild makes a kernel of any bytes and executes it twice: as it was built, and as the parser reads what was printed.
func FuzzBuild(f *testing.F) {
	r := testseed.Rand(f)
	for range 40 {
		program := make([]byte, 20+r.IntN(300))
		for i := range program {
			program[i] = byte(r.Uint32())
		}
		f.Add(program)
	}
	f.Fuzz(func(t *testing.T, bytes []byte) {
		m := ptx.NewModule()
		p := newProgram(m.Kernel("fuzz"), bytes)
		p.block(3)
		p.finish()
		built, err := m.Build()
		require.NoError(t, err)
		text := built.String()
		parsed, err := parse.Module("fuzz.ptx", []byte(text))
		require.NoError(t, err, text)
		require.True(t, ir.Equal(built, parsed), text)
		require.Equal(t, text, parsed.String())
		want := runFuzzed(t, built, 0)
		require.Equal(t, want, runFuzzed(t, parsed, 0), text)
		require.Equal(t, want, runFuzzed(t, parsed, uint64(len(bytes))+1), "another schedule gives another result\n%s", text)
	})
}

const fuzzThreads = 40 // a whole warp and a part of one

func runFuzzed(t *testing.T, m *ir.Module, seed uint64) []byte {
	gpu := sim.New(sim.Config{Checks: sim.AllChecks, Seed: seed, MaxSteps: 1 << 20})
	loaded, err := gpu.Load(m)
	require.NoError(t, err)
	k, err := loaded.Kernel("fuzz")
	require.NoError(t, err)
	var in []byte
	for i := range uint32(32) {
		in = binary.LittleEndian.AppendUint32(in, i*0x9e3779b9)
	}
	x, err := gpu.Alloc(len(in))
	require.NoError(t, err)
	require.NoError(t, gpu.Write(x, in))
	out := make([]byte, 24*fuzzThreads)
	y, err := gpu.Alloc(len(out))
	require.NoError(t, err)
	params, err := k.Pack(x, y)
	require.NoError(t, err)
	_, err = gpu.Run(t.Context(), k, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: fuzzThreads}, Params: params})
	require.NoError(t, err, m)
	require.NoError(t, gpu.Read(out, y))
	return out
}

// program is a kernel that bytes decide on. It works on a few variables, which it stores at the end.
type program struct {
	k     *ptx.Kernel
	bytes []byte
	x     ptx.Ptr[ptx.Global, uint32]
	y     ptx.Ptr[ptx.Global, uint32]
	words [3]*ptx.Var[uint32]
	longs [1]*ptx.Var[uint64]
	reals [2]*ptx.Var[float32]
}

func newProgram(k *ptx.Kernel, bytes []byte) *program {
	p := &program{k: k, bytes: bytes}
	p.x, p.y = ptx.PointerParam[uint32](k, "x"), ptx.PointerParam[uint32](k, "y")
	tid := k.Tid(ptx.X)
	for i := range p.words {
		p.words[i] = ptx.VarOf(k, tid.Mul(uint32(2*i+1)))
	}
	p.longs[0] = ptx.VarOf(k, tid.MulWide(0x10001))
	for i := range p.reals {
		p.reals[i] = ptx.VarOf(k, ptx.Convert[float32](tid.Add(uint32(i))))
	}
	return p
}

// next takes the next byte and brings it below n; 0 once all are taken.
func (p *program) next(n int) int {
	if len(p.bytes) == 0 {
		return 0
	}
	b := p.bytes[0]
	p.bytes = p.bytes[1:]
	return int(b) % n
}

func (p *program) word() *ptx.Var[uint32]  { return p.words[p.next(len(p.words))] }
func (p *program) real() *ptx.Var[float32] { return p.reals[p.next(len(p.reals))] }

// operand is a variable's value or a constant.
func (p *program) operand() ptx.Reg[uint32] {
	if p.next(4) == 0 {
		return ptx.ConstIn(p.k, uint32(p.next(256))*0x01010101)
	}
	return p.word().Get()
}

func (p *program) condition() ptx.Reg[bool] {
	switch p.next(4) {
	case 0:
		return p.word().Get().Lt(p.operand())
	case 1:
		return p.word().Get().And(1).Ne(0)
	case 2:
		return p.real().Get().Lt(p.real().Get()).And(p.word().Get().Ge(p.operand()))
	}
	return p.real().Get().SetP(ptx.LTU, float32(p.next(9)))
}

// block appends some statements, with loops and branches nested at most depth deep.
func (p *program) block(depth int) {
	for range 1 + p.next(8) {
		if len(p.bytes) == 0 {
			return
		}
		p.statement(depth)
	}
}

func (p *program) statement(depth int) {
	k := p.k
	kind := p.next(18)
	if depth == 0 && kind < 4 {
		kind += 4
	}
	w, r := p.word(), p.real()
	switch kind {
	case 0:
		k.If(p.condition(), func() { p.block(depth - 1) }, func() { p.block(depth - 1) })
	case 1:
		k.If(p.condition(), func() { p.block(depth - 1) })
	case 2:
		ptx.For(k, 0, uint32(1+p.next(4)), 1, func(i ptx.Reg[uint32]) {
			w.Set(w.Get().Add(i))
			p.block(depth - 1)
		}, ptx.Unroll(1+p.next(3)))
	case 3:
		left := ptx.VarOf(k, w.Get().And(3))
		k.While(func() ptx.Reg[bool] { return left.Get().Ne(0) }, func() {
			left.Set(left.Get().Sub(1))
			p.block(depth - 1)
		})
	case 4:
		w.Set(p.x.At(w.Get().And(31)).Load())
	case 5:
		c := p.condition()
		k.When(c, func() { w.Set(p.operand()) })
	case 6:
		w.Set(ptx.Select(p.condition(), p.operand(), w.Get()))
	case 7:
		w.Set(w.Get().Mad(p.operand(), p.operand()))
	case 8:
		w.Set(w.Get().Shl(p.operand()))
	case 9:
		w.Set(w.Get().Xor(p.operand()))
	case 10:
		w.Set(w.Get().Div(p.operand()))
	case 11:
		w.Set(w.Get().Popc())
	case 12:
		r.Set(r.Get().Fma(p.real().Get(), float32(p.next(7))-3))
	case 13:
		r.Set(r.Get().Add(ptx.Convert[float32](p.operand())))
	case 14:
		r.Set(r.Get().Neg().Max(p.real().Get()))
	case 15:
		w.Set(w.Get().Xor(ptx.Bitcast[uint32](r.Get())))
	case 16:
		p.longs[0].Set(p.operand().MadWide(w.Get(), p.longs[0].Get()))
	case 17:
		lo, hi := ptx.Unpack64(p.longs[0].Get())
		w.Set(lo.Lop3(hi, w.Get(), uint8(p.next(256))))
	}
}

// finish stores all variables.
func (p *program) finish() {
	k := p.k
	at := p.y.At(k.Tid(ptx.X).Mul(6))
	p.words[0].Set(p.words[0].Get().Add(p.x.Load()))
	for i, w := range p.words {
		at.At(i).Store(w.Get())
	}
	lo, hi := ptx.Unpack64(p.longs[0].Get())
	at.At(3).Store(lo.Xor(hi))
	for i, r := range p.reals {
		at.At(4 + i).Store(ptx.Bitcast[uint32](r.Get()))
	}
}
