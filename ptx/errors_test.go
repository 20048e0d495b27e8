package ptx_test

import (
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/ir"
)

// Each case is a kernel that is wrong in one way, and what Build says.
var mistakes = []struct {
	name, want string
	build      func(k *kernel)
}{
	{"unused result", "the result of add.rn.f32 is never used", func(k *kernel) {
		get[float32](k).Add(1)
	}},
	{"unused load", "the result of ld.global.v2.f32 is never used", func(k *kernel) {
		ptx.Cast[float32](k.out).Load2()
	}},
	{"unused atomic", "the result of atom.global.add.u32 is never used", func(k *kernel) {
		ptx.Cast[uint32](k.out).Atomic(ptx.OpAdd, 1)
	}},
	{"unused parameter", "parameter n is never used", func(k *kernel) { ptx.Param[uint32](k.Kernel, "n") }},
	{"mistake of a caller", "parameter x after y", func(k *kernel) { k.Errorf("parameter %s after %s", "x", "y") }},
	{"unused pointer", "parameter x is never used", func(k *kernel) { ptx.PointerParam[float32](k.Kernel, "x") }},
	{"no elements", "parameter a of 0 elements", func(k *kernel) {
		keep(k, ptx.ParamArray[uint32](k.Kernel, "a", 0).At(0))
	}},
	{"element too far", "element 3 of parameter a, which has 3", func(k *kernel) {
		keep(k, ptx.ParamArray[uint32](k.Kernel, "a", 3).At(3))
	}},
	{"element too low", "element -1 of parameter a, which has 3", func(k *kernel) {
		keep(k, ptx.ParamArray[uint32](k.Kernel, "a", 3).At(-1))
	}},
	{"unused variable", "the variable is never read", func(k *kernel) { ptx.VarOf(k.Kernel, ptx.Imm[float32](1)) }},
	{"variable without use", "the variable is never read", func(k *kernel) { ptx.NewVar[float32](k.Kernel) }},
	{"read before write", "is read before every path to here has set it", func(k *kernel) {
		keep(k, ptx.NewVar[uint32](k.Kernel).Get())
	}},
	{"written on one path", "is read before every path to here has set it", func(k *kernel) {
		v := ptx.NewVar[uint32](k.Kernel)
		k.If(k.Tid(ptx.X).Lt(3), func() { v.Set(k.LaneID()) })
		keep(k, v.Get())
	}},
	{"written in a loop that may not run", "is read before every path to here has set it", func(k *kernel) {
		v := ptx.NewVar[uint32](k.Kernel)
		ptx.For(k.Kernel, 0, k.Tid(ptx.X), 1, func(i ptx.Reg[uint32]) { v.Set(i) })
		keep(k, v.Get())
	}},
	{"written under When", "is read before every path to here has set it", func(k *kernel) {
		v := ptx.NewVar[uint32](k.Kernel)
		k.When(k.Tid(ptx.X).Lt(3), func() { v.Set(k.LaneID()) })
		keep(k, v.Get())
	}},
	{"stale value", "is read after the variable was set again", func(k *kernel) {
		v := ptx.VarOf(k.Kernel, k.LaneID())
		old := v.Get()
		v.Set(old.Add(1))
		keep(k, old, v.Get())
	}},
	{"stale in the second iteration", "is read after the variable was set again", func(k *kernel) {
		v := ptx.VarOf(k.Kernel, k.LaneID())
		old := v.Get()
		ptx.For(k.Kernel, 0, k.Tid(ptx.X), 1, func(i ptx.Reg[uint32]) {
			keep(k, old)
			v.Set(i)
		})
		keep(k, v.Get())
	}},
	{"swap", "is read after the variable was set again", func(k *kernel) {
		v, w := ptx.VarOf(k.Kernel, k.LaneID()), ptx.VarOf(k.Kernel, k.Tid(ptx.X))
		x, y := v.Get(), w.Get()
		v.Set(y)
		w.Set(x)
		keep(k, v.Get(), w.Get())
	}},
	{"outside its block", "is used outside the block that defines it", func(k *kernel) {
		var x ptx.Reg[uint32]
		k.If(k.Tid(ptx.X).Lt(3), func() { x = k.LaneID() })
		keep(k, x)
	}},
	{"counter outside its loop", "is used outside the block that defines it", func(k *kernel) {
		var x ptx.Reg[uint32]
		ptx.For(k.Kernel, 0, 9, 1, func(i ptx.Reg[uint32]) { x = i })
		keep(k, x)
	}},
	{"pointer outside its block", "is used outside the block that defines it", func(k *kernel) {
		var p ptr
		k.While(func() ptx.Reg[bool] { p = k.out.At(k.LaneID()); return ptx.Imm(false) }, func() {})
		keep(k, p.Load())
	}},
	{"another kernel", "a value of kernel other is used in kernel wrong", func(k *kernel) {
		other := k.m.Kernel("other")
		x := other.LaneID()
		ptx.PointerParam[uint32](other, "x").Store(x)
		keep(k, x)
	}},
	{"variable of another kernel", "a value of kernel wrong is used in kernel other", func(k *kernel) {
		other := k.m.Kernel("other")
		ptx.VarOf(other, ptx.Imm[uint32](1)).Set(k.LaneID())
	}},
	{"shared memory of another module", "a value of kernel other is used in kernel wrong", func(k *kernel) {
		keep(k, ptx.SharedArray[uint32](ptx.NewModule().Kernel("other"), "s", 4).Load())
	}},
	{"operand of another type", "an operand is a uint32, want a float32 or a constant", func(k *kernel) {
		keep(k, get[float32](k).Add(get[uint32](k)))
	}},
	{"operand of another sign", "an operand is a int32, want a uint32 or a constant", func(k *kernel) {
		keep(k, get[uint32](k).Add(get[int32](k)))
	}},
	{"operand that is a pointer", "want a uint32 or a constant", func(k *kernel) { keep(k, get[uint32](k).Add(k.out)) }},
	{"fraction for an integer", "want a uint32 or a constant", func(k *kernel) { keep(k, get[uint32](k).Add(0.5)) }},
	{"constant too large", "4294967296 is no uint32", func(k *kernel) { keep(k, get[uint32](k).Add(1<<32)) }},
	{"constant too small", "-129 is no int8", func(k *kernel) { ptx.Cast[int8](k.out).Store(-129) }},
	{"shift by a signed number", "an operand is a int32, want a uint32", func(k *kernel) { keep(k, get[uint32](k).Shl(get[int32](k))) }},
	{"index that is a number", "an index is a float32, want an int or a register of 32 or 64 bits", func(k *kernel) {
		keep(k, k.out.At(get[float32](k)).Load())
	}},
	{"store of another type", "want a uint8 or a constant", func(k *kernel) { k.out.Store(get[uint32](k)) }},
	{"set to another type", "want a float32 or a constant", func(k *kernel) {
		v := ptx.NewVar[float32](k.Kernel)
		v.Set(get[uint32](k))
		keep(k, v.Get())
	}},
	{"loop over another type", "want a uint32 or a constant", func(k *kernel) {
		ptx.For(k.Kernel, 0, get[int32](k), 1, func(i ptx.Reg[uint32]) { keep(k, i) })
	}},
	{"sum of predicates", "add of bool", func(k *kernel) { keepP(k, get[uint32](k).Eq(0).Add(get[uint32](k).Eq(1))) }},
	{"and of fractions", "and of float32", func(k *kernel) { keep(k, get[float32](k).And(get[float32](k))) }},
	{"shift of a fraction", "shl of float32", func(k *kernel) { keep(k, get[float32](k).Shl(1)) }},
	{"remainder of fractions", "rem of float32", func(k *kernel) { keep(k, get[float32](k).Rem(get[float32](k))) }},
	{"fma of integers", "fma of uint32", func(k *kernel) { keep(k, get[uint32](k).Fma(2, 3)) }},
	{"mad of fractions", "mad of float32", func(k *kernel) { keep(k, get[float32](k).Mad(2, 3)) }},
	{"root of a half", "sqrt of F16", func(k *kernel) { keep(k, get[ptx.F16](k).Sqrt()) }},
	{"negative unsigned", "neg of uint32", func(k *kernel) { keep(k, get[uint32](k).Neg()) }},
	{"wide product of signed numbers", "the wide product of two numbers int32 as a uint64", func(k *kernel) { keep(k, get[int32](k).MulWide(2)) }},
	{"shuffle of wide values", "shfl of uint64", func(k *kernel) { keep(k, get[uint64](k).Shuffle(ptx.ShuffleXor, 1, 32, ptx.FullWarp())) }},
	{"atomic of bytes", "atom of uint8", func(k *kernel) { keep(k, k.out.Atomic(ptx.OpAdd, 1)) }},
	{"constants alone", "an operation on constants alone", func(k *kernel) { keep(k, ptx.U32(1).Add(2)) }},
	{"variable of the module without In", "used in no kernel", func(k *kernel) {
		keep(k, ptx.GlobalArray[uint32](k.m, "counters", 4).Load())
	}},
	{"zero Reg", "a float32 that was never defined is used", func(k *kernel) { keep(k, ptx.Reg[float32]{}) }},
	{"zero Ptr", "a pointer that was never defined", func(k *kernel) {
		keep(k, ptx.Ptr[ptx.Global, uint8]{}.At(k.LaneID()).Load())
	}},
	{"zero Descriptor", "a uint64 that was never defined", func(k *kernel) {
		wgmma(k, ptx.Wgmma[ptx.F16x2, ptx.F16x2, float32]{N: 8}, ptx.Descriptor{}, ptx.Descriptor{}, true)
	}},
	{"zero TensorMap", "a uint64 that was never defined", func(k *kernel) {
		s := ptx.SharedArray[uint32](k.Kernel, "s", 4)
		ptx.TensorMap[uint32]{}.Load(s, []ptx.Reg[int32]{ptx.Imm[int32](0)}, ptx.NewMbarrier(k.Kernel, "b", 1))
	}},
	{"after Return", "this code is never reached", func(k *kernel) { k.Return(); k.Barrier() }},
	{"after Break", "this code is never reached", func(k *kernel) { k.Loop(func() { k.Break(); k.Barrier() }) }},
	{"endless loop before", "this code is never reached", func(k *kernel) { k.Loop(func() { k.Barrier() }); k.Barrier() }},
	{"break outside", "Break outside of a loop", func(k *kernel) { k.Break() }},
	{"continue outside", "ContinueIf outside of a loop", func(k *kernel) {
		k.ContinueIf(k.Tid(ptx.X).Lt(3))
	}},
	{"flow in When", "If inside When", func(k *kernel) {
		k.When(ptx.Imm(true), func() { k.If(ptx.Imm(true), func() { k.Barrier() }) })
	}},
	{"step 0", "a loop of step 0", func(k *kernel) {
		ptx.For(k.Kernel, 0, 4, 0, func(ptx.Reg[int32]) {})
	}},
	{"unrolled by a register", "unrolling a loop whose step", func(k *kernel) {
		n := ptx.Convert[int32](k.Tid(ptx.X))
		ptx.For(k.Kernel, 0, 4, n, func(ptx.Reg[int32]) {}, ptx.Unroll(2))
	}},
	{"sizes of bits", "bits of a float64 as a uint32", func(k *kernel) {
		keep(k, ptx.Bitcast[uint32](get[float64](k)))
	}},
	{"modifier", "add.rn.NaN.f32: add has no part .NaN", func(k *kernel) {
		keep(k, get[float32](k).Add(get[float32](k), ptx.NaN))
	}},
	{"saturating float64", "add.rn.sat.f64", func(k *kernel) {
		keep(k, get[float64](k).Add(1.0, ptx.Sat))
	}},
	{"option of a store", "st.global.nc.f32", func(k *kernel) {
		ptx.Cast[float32](k.out).Store(1, ptx.ReadOnly)
	}},
	{"release of a load", "ld.release.gpu.global.u32", func(k *kernel) {
		keep(k, ptx.Cast[uint32](k.out).Load(ptx.Release(ptx.ScopeGPU)))
	}},
	{"atomic of floats", "atom.global.min.f32", func(k *kernel) {
		keep(k, ptx.Cast[float32](k.out).Atomic(ptx.OpMin, get[float32](k)))
	}},
	{"long vector", "4 elements of 8 bytes at once", func(k *kernel) {
		v := ptx.Cast[float64](k.out).Load4()
		keep(k, v[:]...)
	}},
	{"cp.async of 12", "cp.async of 12 bytes", func(k *kernel) {
		ptx.CpAsync(ptx.SharedArray[float32](k.Kernel, "s", 4), k.out, 12)
	}},
	{"fragment", "a: 3 registers, want 4", func(k *kernel) {
		keep(k, ptx.Mma(k.Kernel, ptx.M16N8K16, gets[ptx.F16x2](k, 3), gets[ptx.F16x2](k, 2), gets[float32](k, 4))...)
	}},
	{"product", "mma has no part .f16 at this place", func(k *kernel) {
		mma[ptx.F16x2, ptx.S8x4, float32](k, ptx.M16N8K32)
	}},
	{"fragment in memory", "a fragment of f16 in memory of float32", func(k *kernel) {
		r := ptx.Wmma[ptx.F16x2, float32]{ptx.M16N16K16, ptx.RowMajor, ptx.ColMajor}.LoadA(k.Kernel, ptx.Cast[float32](k.out), 16)
		keep(k, r...)
	}},
	{"ldmatrix of 3", "ldmatrix", func(k *kernel) {
		keep(k, ptx.LdMatrix[ptx.F16x2](ptx.SharedArray[ptx.F16](k.Kernel, "s", 64), 3)...)
	}},
	{"wgmma n", "wgmma with n = 12", func(k *kernel) {
		ptx.Wgmma[ptx.F16x2, ptx.F16x2, float32]{N: 12}.MulAdd(k.Kernel, nil, ptx.Descriptor{}, ptx.Descriptor{})
	}},
	{"wgmma nil", "d[0] is no variable of this kernel", func(k *kernel) {
		d := ptx.DescriptorOf(get[uint64](k))
		ptx.Wgmma[ptx.F16x2, ptx.F16x2, float32]{N: 8}.MulAdd(k.Kernel, make([]*ptx.Var[float32], 4), d, d)
	}},
	{"wgmma transposed", "elements of 16 bits only", func(k *kernel) {
		d := ptx.DescriptorOf(get[uint64](k))
		wgmma(k, ptx.Wgmma[ptx.TF32, ptx.TF32, float32]{N: 8, TransB: true}, d, d, true)
	}},
	{"descriptor", "offsets 8 and 1024", func(k *kernel) {
		keep(k, ptx.NewDescriptor(ptx.DynamicShared[uint8](k.Kernel), 8, 1024, ptx.Swizzle128).Bits())
	}},
	{"descriptor's swizzle", "a swizzle of 48 bytes", func(k *kernel) {
		keep(k, ptx.NewDescriptor(ptx.DynamicShared[uint8](k.Kernel), 16, 1024, 48).Bits())
	}},
	{"descriptor advanced", "advanced by 8 bytes", func(k *kernel) {
		keep(k, ptx.DescriptorOf(get[uint64](k)).Bytes(8).Bits())
	}},
	{"tensor's rank", "a tensor of 0 dimensions", func(k *kernel) {
		ptx.TensorMapParam[uint32](k.Kernel, "m").Prefetch(nil)
	}},
	{"segments", "segments of 12 lanes", func(k *kernel) {
		keep(k, k.LaneID().Shuffle(ptx.ShuffleXor, 1, 12, ptx.FullWarp()))
	}},
	{"words", "add of 2 and 1 words", func(k *kernel) {
		keep(k, ptx.AddWords(k.Kernel, gets[uint32](k, 2), gets[uint32](k, 1))...)
	}},
	{"name", `"1st" is not a name`, func(k *kernel) { keep(k, ptx.Param[uint32](k.Kernel, "1st")) }},
	{"name twice", "the name out is taken", func(k *kernel) { keep(k, ptx.Param[uint32](k.Kernel, "out")) }},
	{"kernel twice", "the name wrong is taken", func(k *kernel) { k.m.Kernel("wrong") }},
	{"array's name twice", "the name a is taken", func(k *kernel) {
		ptx.GlobalArray[int32](k.m, "a", 4)
		ptx.ConstArray(k.m, "a", []int32{1})
	}},
	{"name of dynamic memory", "is that of dynamic shared memory", func(k *kernel) {
		ptx.SharedArray[int32](k.Kernel, "dynamic_shared", 4)
	}},
	{"empty array", "array a of 0 elements", func(k *kernel) { ptx.LocalArray[int32](k.Kernel, "a", 0) }},
	{"too many values", "array a of 1 elements with 2 values", func(k *kernel) { ptx.GlobalArray[int32](k.m, "a", 1, 2, 3) }},
	{"alignment", "alignment 12 is not a power of two", func(k *kernel) {
		ptx.SharedArray[int32](k.Kernel, "a", 4, ptx.Align(12))
	}},
	{"alignment of dynamic memory", "aligned to 4096 bytes", func(k *kernel) {
		ptx.DynamicShared[int32](k.Kernel, ptx.Align(4096))
	}},
	{"block", "dimensions 32, 33, 1", func(k *kernel) { k.MaxThreads(32, 33, 1) }},
	{"registers", "0: wanted a positive number", func(k *kernel) { k.MaxRegs(0) }},
	{"bounds", "exclude each other", func(k *kernel) { k.MaxThreads(32, 1, 1); k.RequireThreads(32, 1, 1) }},
	{"blocks without threads", "MinBlocks needs", func(k *kernel) { k.MinBlocks(2) }},
	{"tile", "tile both padded and swizzled", func(k *kernel) {
		ptx.NewTile[float32](k.Kernel, "t", ptx.TileLayout{Rows: 8, Cols: 32, Pad: 1, Swizzled: true}, 1)
	}},
	{"tile's elements", "elements of 4 bytes laid out for 2", func(k *kernel) {
		ptx.NewTile[float32](k.Kernel, "t", ptx.TileLayout{Rows: 8, Cols: 32, Size: 2}, 1)
	}},
	{"forced down", "sm_70 is asked for, but the instructions need sm_80", func(k *kernel) {
		k.m.ForceTarget(ir.Target{SM: 70})
		k.CpAsyncWaitAll()
	}},
	{"another architecture", "sm_100 is asked for, but the instructions need sm_90a", func(k *kernel) {
		k.m.ForceTarget(ir.Target{SM: 100})
		k.WgmmaFence()
	}},
	{"old version", "PTX 6.4 is asked for, but the module needs 7.0", func(k *kernel) {
		k.m.ForceVersion(ir.Version{Major: 6, Minor: 4})
		k.CpAsyncWaitAll()
	}},
}

func TestMistakes(t *testing.T) {
	for _, c := range mistakes {
		t.Run(c.name, func(t *testing.T) {
			m := ptx.NewModule()
			k := &kernel{Kernel: m.Kernel("wrong"), m: m}
			k.out = ptx.PointerParam[uint8](k.Kernel, "out")
			c.build(k)
			k.out.Store(0)
			_, err := m.Build()
			require.ErrorContains(t, err, c.want)
			require.ErrorIs(t, err, compute.ErrArgument)
			var e *ptx.Error
			require.ErrorAs(t, err, &e)
			require.Contains(t, []string{"errors_test.go", "cover_test.go", "cover_matrix_test.go"}, filepath.Base(e.Pos.File))
			require.Positive(t, e.Pos.Line)
		})
	}
}

// Errors and instructions have the line that made them, all errors come at once, and each only once.
func TestPositions(t *testing.T) {
	m := ptx.NewModule()
	k := m.Kernel("lines")
	for range 3 {
		k.LaneID().Add(1)
	}
	_, _, line, _ := runtime.Caller(0)
	k.Barrier()
	ptx.Param[uint32](k, "n")
	_, err := m.Build()
	var all interface{ Unwrap() []error }
	require.ErrorAs(t, err, &all)
	require.Len(t, all.Unwrap(), 2)
	require.Equal(t, line-2, all.Unwrap()[0].(*ptx.Error).Pos.Line)
	require.Equal(t, line+2, all.Unwrap()[1].(*ptx.Error).Pos.Line)
	require.Equal(t, "lines", all.Unwrap()[0].(*ptx.Error).Kernel)

	m = ptx.NewModule()
	k = m.Kernel("lines")
	k.If(k.LaneID().Lt(3), func() {
		k.Barrier()
	})
	built, err := m.Build()
	require.NoError(t, err)
	for _, in := range built.Funcs[0].Body {
		if in.Op == "bar.sync" {
			require.Equal(t, "errors_test.go", filepath.Base(in.Pos.File))
			require.Equal(t, line+14, in.Pos.Line)
		}
	}
}

// What looks like a mistake and is none.
func TestNoMistakes(t *testing.T) {
	for name, build := range map[string]func(k *kernel){
		"written on both paths": func(k *kernel) {
			v := ptx.NewVar[uint32](k.Kernel)
			k.If(k.Tid(ptx.X).Lt(3), func() { v.Set(k.LaneID()) }, func() { v.Set(k.Tid(ptx.Y)) })
			keep(k, v.Get())
		},
		"written or left": func(k *kernel) {
			v := ptx.NewVar[uint32](k.Kernel)
			k.If(k.Tid(ptx.X).Lt(3), func() { v.Set(k.LaneID()) }, func() { k.Return() })
			keep(k, v.Get())
		},
		"written before the loop is left": func(k *kernel) {
			v := ptx.NewVar[uint32](k.Kernel)
			k.Loop(func() {
				v.Set(k.LaneID())
				k.BreakIf(k.Clock().Lt(v.Get()))
			})
			keep(k, v.Get())
		},
		"old value on the other path": func(k *kernel) {
			v := ptx.VarOf(k.Kernel, k.LaneID())
			old := v.Get()
			k.If(old.Lt(3), func() { v.Set(7) }, func() { keep(k, old) })
			keep(k, v.Get())
		},
		"copied": func(k *kernel) {
			v := ptx.VarOf(k.Kernel, k.LaneID())
			old := v.Get().Copy()
			v.Set(k.Tid(ptx.X))
			keep(k, old, v.Get())
		},
		"swapped with a copy": func(k *kernel) {
			v, w := ptx.VarOf(k.Kernel, k.LaneID()), ptx.VarOf(k.Kernel, k.Tid(ptx.X))
			x := v.Get().Copy()
			v.Set(w.Get())
			w.Set(x)
			keep(k, v.Get(), w.Get())
		},
		"result after its variable changed": func(k *kernel) {
			sum := get[uint32](k).Add(1)
			v := ptx.VarOf(k.Kernel, sum)
			v.Set(k.LaneID())
			keep(k, sum, v.Get())
		},
		"defined by the condition": func(k *kernel) {
			var x ptx.Reg[uint32]
			k.While(func() ptx.Reg[bool] {
				x = k.Clock()
				return x.Lt(1000)
			}, func() { keep(k, x) })
		},
		"one of two results": func(k *kernel) { keep(k, ptx.Cast[float32](k.out).Load2()[1]) },
		"forced up": func(k *kernel) {
			k.m.ForceTarget(ir.Target{SM: 90, Suffix: "a"})
			k.m.ForceVersion(ir.Version{Major: 8, Minor: 3})
			keep(k, k.LaneID())
		},
		"one variable, two results of an instruction": func(k *kernel) {
			v := ptx.NewVar[float32](k.Kernel)
			two := ptx.Cast[float32](k.out).Load2()
			v.Set(two[0])
			keep(k, v.Get())
			v.Set(two[1])
			keep(k, v.Get())
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := cover{name: "right", build: build}.module(t)
			if name == "forced up" {
				require.Equal(t, ir.Target{SM: 90, Suffix: "a"}, m.Target)
				require.Equal(t, ir.Version{Major: 8, Minor: 3}, m.Version)
			}
		})
	}
}
