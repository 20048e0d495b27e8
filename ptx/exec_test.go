package ptx_test

import (
	"context"
	"encoding/binary"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/ptx"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// execute runs a kernel of one block whose first parameter is a buffer and whose others are args, and returns the buffer.
func execute[T any](t *testing.T, build func(k *kernel), threads int, buffer []T, args ...any) []T {
	t.Helper()
	return launch(t, build, sim.Launch{Grid: sim.Dim3{X: 1}, Block: sim.Dim3{X: threads}}, buffer,
		func(uint64) []any { return args })
}

// launch is execute with any number of threads, blocks and clusters, and arguments that may depend on the buffer's address. The
// schedule is a random one.
func launch[T any](t *testing.T, build func(k *kernel), l sim.Launch, buffer []T, args func(at uint64) []any) []T {
	t.Helper()
	m := cover{name: "run", build: build}.module(t)
	gpu := sim.New(sim.Config{Checks: sim.AllChecks, Seed: ptxtest.Random(t).Uint64()})
	loaded, err := gpu.Load(m)
	require.NoError(t, err, m)
	k, err := loaded.Kernel("run")
	require.NoError(t, err)
	size := binary.Size(buffer)
	at, err := gpu.Alloc(size)
	require.NoError(t, err)
	data, err := binary.Append(nil, binary.LittleEndian, buffer)
	require.NoError(t, err)
	require.NoError(t, gpu.Write(at, data))
	l.Params, err = k.Pack(append([]any{at}, args(at)...)...)
	require.NoError(t, err)
	_, err = gpu.Run(context.Background(), k, l)
	require.NoError(t, err, m)
	require.NoError(t, gpu.Read(data, at))
	out := make([]T, len(buffer))
	_, err = binary.Decode(data, binary.LittleEndian, out)
	require.NoError(t, err)
	return out
}

// Loops run the iterations that Go's do: all kinds of bounds and steps, unrolled or not, with iterations cut short and loops left.
func TestLoops(t *testing.T) {
	r := ptxtest.Random(t)
	for range 40 {
		from, to := int32(r.IntN(30)-10), int32(r.IntN(40)-10)
		step := int32(1 + r.IntN(4))
		if r.IntN(3) == 0 {
			from, to, step = to, from, -step
		}
		skip, stop := int32(r.IntN(40)-10), int32(r.IntN(60)-10)
		unroll := 1
		if step > 0 {
			unroll = 1 + r.IntN(5)
		}
		fixed := r.IntN(2) == 0
		options := []ptx.LoopOption{ptx.Unroll(unroll)}
		if (step > 0 && from < to || step < 0 && from > to) && r.IntN(2) == 0 {
			options = append(options, ptx.AtLeastOnce())
		}
		var want []uint32
		total := uint32(0)
		for i := from; step > 0 && i < to || step < 0 && i > to; i += step {
			if i == stop {
				break
			}
			if i == skip {
				continue
			}
			for j := range uint32(3) { // a loop in the loop, unrolled with a rest
				total = total*31 + uint32(i) + j
			}
		}
		want = []uint32{total}
		got := execute(t, func(k *kernel) {
			kk := k.Kernel
			first, last := ptx.Param[int32](kk, "from"), ptx.Param[int32](kk, "to")
			sum := ptx.VarOf(kk, ptx.Imm[uint32](0))
			begin, end := first, last
			if fixed {
				begin, end = ptx.Imm(from), ptx.Imm(to)
				keep(k, first, last)
				k.next = 0
			}
			ptx.For(kk, begin, end, step, func(i ptx.Reg[int32]) {
				k.BreakIf(i.Eq(stop))
				k.If(i.Eq(skip), k.Continue)
				ptx.For(kk, 0, 3, 1, func(j ptx.Reg[uint32]) {
					sum.Set(sum.Get().Mad(31, ptx.Convert[uint32](i).Add(j)))
				}, ptx.Unroll(2))
			}, options...)
			keep(k, sum.Get())
		}, 1, make([]uint32, 16), from, to)
		require.Equal(t, want, got[:1], "from %d to %d by %d, unrolled by %d, without %d, until %d, fixed %t", from, to, step, unroll,
			skip, stop, fixed)
	}
}

// Structured control flow, threads apart.
func TestCollatz(t *testing.T) {
	const threads = 64
	got := execute(t, func(k *kernel) {
		kk := k.Kernel
		at := ptx.Cast[uint32](k.out).At(k.Tid(ptx.X))
		n, steps := ptx.VarOf(kk, at.Load()), ptx.VarOf(kk, ptx.Imm[uint32](0))
		one := ptx.Imm[uint32](1)
		k.While(func() ptx.Reg[bool] { return n.Get().Gt(one) }, func() {
			odd := n.Get().And(one).Ne(0)
			k.If(odd,
				func() { n.Set(n.Get().Mad(3, one)) },
				func() { n.Set(n.Get().Shr(one)) })
			steps.Set(steps.Get().Add(one))
		})
		k.Barrier()
		k.If(steps.Get().Gt(100), func() {
			at.Store(999)
			k.Return()
		})
		at.Store(steps.Get())
	}, threads, numbers(threads, func(i int) uint32 { return uint32(i + 1) }))
	require.Equal(t, numbers(threads, func(i int) uint32 {
		steps := uint32(0)
		for n := i + 1; n > 1; steps++ {
			if n%2 == 1 {
				n = 3*n + 1
			} else {
				n /= 2
			}
		}
		if steps > 100 {
			return 999
		}
		return steps
	}), got)
}

func numbers[T any](n int, f func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// Predicated loads and stores touch nothing where the predicate is false, and nest.
func TestPredication(t *testing.T) {
	got := execute(t, func(k *kernel) {
		kk := k.Kernel
		i := k.Tid(ptx.X)
		at := ptx.Cast[uint32](k.out).At(i)
		inside := i.Lt(20)
		x := ptx.LoadIf(inside, at, 77)
		y := ptx.VarOf(kk, x)
		even := i.And(1).Eq(0)
		k.When(even, func() { y.Set(y.Get().Add(100)) })
		sum := y.Get().Add(y.Get().Shuffle(ptx.ShuffleDown, 12, 32, ptx.FullWarp()))
		k.When(inside, func() {
			again := i.And(1).Eq(0) // has no value outside
			ptx.StoreIf(again, at, sum)
		})
	}, 32, numbers(20, func(i int) uint32 { return uint32(i) }))
	y := func(i int) uint32 {
		v := uint32(77)
		if i < 20 {
			v = uint32(i)
		}
		if i%2 == 0 {
			v += 100
		}
		return v
	}
	require.Equal(t, numbers(20, func(i int) uint32 {
		if i%2 == 1 {
			return uint32(i)
		}
		return y(i) + y(i+12)
	}), got)
}

// Arrays of parameters lie where their elements' alignment puts them, and each element is read from its own place.
func TestParamArray(t *testing.T) {
	r := ptxtest.Random(t)
	halves, words, longs := make([]uint16, 3), make([]uint32, 5), make([]uint64, 2)
	for i := range halves {
		halves[i] = uint16(r.Uint32())
	}
	for i := range words {
		words[i] = r.Uint32()
	}
	for i := range longs {
		longs[i] = r.Uint64()
	}
	raw := func(s any) []byte {
		b, err := binary.Append(nil, binary.LittleEndian, s)
		require.NoError(t, err)
		return b
	}
	last := r.Uint32()
	got := execute(t, func(k *kernel) {
		// The halves leave a gap before the words, and those one before the longs.
		h, w := ptx.ParamArray[uint16](k.Kernel, "halves", len(halves)), ptx.ParamArray[uint32](k.Kernel, "words", len(words))
		l, n := ptx.ParamArray[uint64](k.Kernel, "longs", len(longs)), ptx.Param[uint32](k.Kernel, "last")
		require.Equal(t, []int{len(halves), len(words), len(longs)}, []int{h.Len(), w.Len(), l.Len()})
		for i := range halves {
			keep(k, h.At(i))
		}
		for i := len(words) - 1; i >= 0; i-- {
			keep(k, w.At(i))
		}
		for i := range longs {
			keep(k, l.At(i))
		}
		keep(k, n)
	}, 1, make([]uint64, 2*11), raw(halves), raw(words), raw(longs), last)
	want := make([]uint64, 0, 11)
	for _, v := range halves {
		want = append(want, uint64(v))
	}
	for i := range words {
		want = append(want, uint64(words[len(words)-1-i]))
	}
	want = append(append(want, longs...), uint64(last))
	for i, v := range want {
		require.Equal(t, v, got[2*i], "value %d", i)
	}
}

// Every layout of a tile puts each element where Offset says, and reads back what it wrote, by registers and constants.
func TestTilesExecute(t *testing.T) {
	for _, l := range []ptx.TileLayout{
		{Rows: 8, Cols: 8}, {Rows: 8, Cols: 8, Pad: 1}, {Rows: 8, Cols: 16, Swizzled: true}, {Rows: 16, Cols: 32, Swizzled: true},
		{Rows: 4, Cols: 64, Swizzled: true}, {Rows: 16, Cols: 128, Swizzled: true},
	} {
		l.Size = 2
		n := 2 * l.Bytes() / l.Size
		got := execute(t, func(k *kernel) {
			kk := k.Kernel
			tiles := ptx.NewTile[uint16](kk, "tile", l, 2)
			u := ptx.Imm[uint32]
			i := k.Tid(ptx.X)
			ptx.For(kk, i, u(uint32(n)), u(32), func(j ptx.Reg[uint32]) {
				tiles.Ptr().At(j).Store(0)
			})
			k.Barrier()
			for stage := range uint32(2) {
				tile := tiles.Stage(u(stage))
				ptx.For(kk, i, u(uint32(l.Rows*l.Cols)), u(32), func(j ptx.Reg[uint32]) {
					row, col := j.Div(u(uint32(l.Cols))), j.Rem(u(uint32(l.Cols)))
					tile.At(row, col).Store(ptx.Convert[uint16](j.Add(u(1000*stage + 1))))
				})
			}
			k.Barrier()
			k.If(i.Eq(u(0)), func() {
				tile := tiles.Stage(k.Ntid(ptx.Y)) // 1
				tile.At(u(3), u(5)).Store(7777)
				tile.At(i.Add(u(2)), u(5)).Store(8888)
				tile.At(u(1), i.Add(u(6))).Store(9999)
			})
			k.Barrier()
			ptx.For(kk, i, u(uint32(n)), u(32), func(j ptx.Reg[uint32]) {
				ptx.Cast[uint16](k.out).At(j).Store(tiles.Ptr().At(j).Load())
			})
		}, 32, make([]uint16, n))
		want := make([]uint16, n)
		for stage := range 2 {
			for j := range l.Rows * l.Cols {
				want[(stage*l.Bytes()+l.Offset(j/l.Cols, j%l.Cols))/l.Size] = uint16(j + 1 + 1000*stage)
			}
		}
		for _, e := range []struct{ row, col, v int }{{3, 5, 7777}, {2, 5, 8888}, {1, 6, 9999}} {
			want[(l.Bytes()+l.Offset(e.row, e.col))/l.Size] = uint16(e.v)
		}
		require.Equal(t, want, got, l)
	}
}

// Numbers of several words, pairs and bits.
func TestWordsExecute(t *testing.T) {
	r := ptxtest.Random(t)
	in := []uint64{r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), math.MaxUint64, 1, 0, 0, 0}
	got := execute(t, func(k *kernel) {
		kk := k.Kernel
		p := ptx.Cast[uint64](k.out)
		w := make([]ptx.Reg[uint32], 12)
		for i := range 6 {
			w[2*i], w[2*i+1] = ptx.Unpack64(p.At(i).Load())
		}
		sum := ptx.AddWords(kk, w[:4], w[4:8])
		p.Store(ptx.Pack64(sum[0], sum[1]))
		p.At(1).Store(ptx.Pack64(sum[2], sum[3]))
		difference := ptx.SubWords(kk, w[8:10], w[10:12])
		p.At(2).Store(ptx.Pack64(difference[0], difference[1]))
		carry := ptx.AddWords(kk, append(w[8:10:10], ptx.Imm[uint32](0)), append(w[10:12:12], ptx.Imm[uint32](0)))
		p.At(3).Store(ptx.Pack64(carry[0], carry[1]))
		p.At(4).Store(ptx.Convert[uint64](carry[2]))
		p.At(5).Store(ptx.Convert[uint64](ptx.Bitcast[uint32](ptx.PackS8(ptx.ConstIn(kk, int32(1)), ptx.Imm[int32](-2), ptx.Imm[int32](300), ptx.Imm[int32](-300)))))
		p.At(6).Store(ptx.Convert[uint64](ptx.Bitcast[uint32](ptx.WidenBF16(ptx.ConstIn(kk, ptx.BF16Of(-1.5))))))
		half := ptx.ConvertPair[ptx.F16x2](ptx.ConstIn(kk, float32(1)), ptx.Imm[float32](2))
		p.At(7).Store(ptx.Convert[uint64](ptx.Bitcast[uint32](half)))
		table := ptx.LUT(func(a, b, c uint8) uint8 { return a&b | ^c&a })
		bits := ptx.ConstIn(kk, uint32(0x0f)).Lop3(0x33, 0x55, table)
		p.At(8).Store(ptx.Convert[uint64](bits))
	}, 1, in)
	lo := in[0] + in[2]
	hi := in[1] + in[3]
	if lo < in[0] {
		hi++
	}
	require.Equal(t, []uint64{lo, hi, math.MaxUint64 - 1, 0, 1, 0x807ffe01, uint64(math.Float32bits(-1.5)),
		uint64(ptx.PairF16(ptx.F16Of(1), ptx.F16Of(2))), 0x0f&0x33 | 0x0f&^0x55}, got)
}
