package softgpu_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/parse"
)

// Variables of modules are part of the device's memory.
func TestVariablesTakeMemory(t *testing.T) {
	r := newRig(t, softgpu.Config{Memory: 1 << 20})
	free := func() uint64 {
		n, _, res := r.MemGetInfo()
		require.Equal(t, driver.Success, res)
		return n
	}
	before := free()
	variables := []byte(".version 7.0\n.target sm_80\n.address_size 64\n.global .b32 x[150000];\n.const .b8 c[1000];\n")
	m, res := r.ModuleLoadData(variables, nil)
	require.Equal(t, driver.Success, res)
	require.Equal(t, before-601_000, free())
	_, res = r.ModuleLoadData(variables, nil)
	require.Equal(t, driver.OutOfMemory, res)
	require.Equal(t, before-601_000, free())
	require.Equal(t, driver.Success, r.ModuleUnload(m))
	require.Equal(t, before, free())
}

// TestRefused loads what the driver's compiler refuses.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		text string
		cfg  softgpu.Config
		want driver.Result
		log  string
	}{
		{"", softgpu.Config{}, driver.InvalidValue, "0 bytes"},
		{".version 7.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n  frobnicate;\n}\n", softgpu.Config{},
			driver.InvalidPTX, "line 6, column 3"},
		{text("7.0", "sm_80", "add.s32 %r1, %r2, %r3;"), softgpu.Config{}, driver.InvalidPTX, "line 6"},
		{text("7.0", "sm_80", "bra nowhere;"), softgpu.Config{}, driver.InvalidPTX, "nowhere"},
		{text("8.7", "sm_90", ""), softgpu.Config{}, driver.Success, ""},
		{text("8.8", "sm_90", ""), softgpu.Config{}, driver.UnsupportedPTXVersion, "8.8"},
		{text("8.8", "sm_90", ""), softgpu.Config{Version: 12090}, driver.Success, ""},
		{text("8.6", "sm_90", ""), softgpu.Config{Version: 12060}, driver.UnsupportedPTXVersion, "8.5"},
		{text("8.5", "sm_90", ""), softgpu.Config{Version: 12060}, driver.Success, ""},
		{text("8.3", "sm_90", ""), softgpu.Config{Version: 12020}, driver.UnsupportedPTXVersion, "8.2"},
		{text("7.8", "sm_90", ""), softgpu.Config{Version: 11080}, driver.Success, ""},
		{text("8.0", "sm_90", ""), softgpu.Config{Version: 11080}, driver.UnsupportedPTXVersion, "7.8"},
		{text("9.0", "sm_90", ""), softgpu.Config{Version: 13000}, driver.Success, ""},
		{text("8.0", "sm_90", ""), softgpu.Config{SM: 80}, driver.InvalidPTX, "sm_90 does not run on sm_80"},
		{text("8.0", "sm_90a", ""), softgpu.Config{}, driver.Success, ""},
		{text("8.6", "sm_90a", ""), softgpu.Config{SM: 100}, driver.InvalidPTX, "sm_90a"},
		{text("8.0", "sm_90", "wgmma.fence.sync.aligned;"), softgpu.Config{}, driver.InvalidPTX, "needs .target sm_90a"},
		{text("7.0", "sm_70", ".reg .b32 %r<2>; mov.u32 %r1, 1; .reg .b32 %s<3>; redux.sync.add.s32 %s1, %r1, 0xffffffff;"),
			softgpu.Config{}, driver.InvalidPTX, "sm_80"},
		{text("6.0", "sm_50", ".reg .b32 %r<2>; activemask.b32 %r1;"), softgpu.Config{}, driver.InvalidPTX, "6.2"},
		{text("7.0", "sm_80", ".reg .b32 %r<6>; tcgen05.shift.cta_group::1.down [%r1];"), softgpu.Config{}, driver.NotSupported, "tcgen05.shift"},
		{text("7.0", "sm_80", ".shared .b8 much[49153]; .reg .b32 %r<2>; ld.shared.b32 %r1, [much];"), softgpu.Config{},
			driver.InvalidPTX, "too much shared data"},
		{".version 7.0\n.target sm_80\n.address_size 64\n.global .b8 much[3000000000], more[3000000000];\n", softgpu.Config{}, driver.OutOfMemory, ""},
		{"\x7fELF\x02\x01\x01", softgpu.Config{}, driver.InvalidImage, "neither PTX nor a binary"},
	} {
		r := newRig(t, c.cfg)
		before := r.Live()
		o := driver.JIT{InfoLog: "old", ErrorLog: "old"}
		m, res := r.ModuleLoadData([]byte(c.text), &o)
		require.Equal(t, c.want.Name(), res.Name(), "%s\n%s", c.text, o.ErrorLog)
		require.NotContains(t, o.InfoLog+o.ErrorLog, "old")
		if res == driver.Success {
			require.Empty(t, o.ErrorLog)
			require.Contains(t, o.InfoLog, "entry function k")
			r.ok(r.ModuleUnload(m))
			continue
		}
		require.Contains(t, o.ErrorLog, c.log)
		require.Equal(t, before, r.Live())
		_, res = r.ModuleLoadData([]byte(c.text), nil)
		r.is(c.want, res)
	}
}

// TestContainer compiles, loads and damages.
func TestContainer(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	o := driver.JIT{MaxRegisters: 32}
	c, res := r.Compile([]byte(kernelText), &o)
	r.ok(res)
	again, res := r.Compile([]byte(kernelText+"\x00 what follows a NUL does not count"), &o)
	r.ok(res)
	require.Equal(t, c, again)
	m, res := r.ModuleLoadData(c, &o)
	r.ok(res)
	f, res := r.ModuleGetFunction(m, "add")
	r.ok(res)
	same, res := r.ModuleGetFunction(m, "add")
	r.ok(res)
	require.Equal(t, f, same)
	_, res = r.ModuleGetFunction(m, "sub")
	r.is(driver.NotFound, res)
	_, _, res = r.ModuleGetGlobal(m, "add")
	r.is(driver.NotFound, res)
	x := r.alloc(4)
	r.ok(r.MemsetD32Async(x, 1, 1, 0))
	r.ok(r.LaunchKernel(f, one(32, x, 1, 1), 0))
	r.ok(r.CtxSynchronize())
	r.free(x)
	r.ok(r.ModuleUnload(m))
	r.is(driver.InvalidHandle, r.ModuleUnload(m))
	_, res = r.ModuleGetFunction(m, "add")
	r.is(driver.InvalidHandle, res)
	_, res = r.FuncGetAttribute(driver.FuncRegisters, f)
	r.is(driver.InvalidHandle, res)

	for n := range len(c) {
		_, res := r.ModuleLoadData(c[:n], nil)
		require.Contains(t, []driver.Result{driver.InvalidImage, driver.InvalidPTX, driver.InvalidValue}, res, "cut to %d bytes", n)
		if n > 8 {
			require.Equal(t, driver.InvalidImage, res)
		}
	}
	rng := random(t)
	for range 500 {
		bad := bytes.Clone(c)
		bad[8+rng.IntN(len(c)-8)] ^= 1 << rng.IntN(8)
		_, res := r.ModuleLoadData(bad, nil)
		r.is(driver.InvalidImage, res)
	}
	_, res = r.ModuleLoadData(append(bytes.Clone(c), 0), nil)
	r.is(driver.InvalidImage, res)
	_, res = r.Compile(c, &o)
	r.is(driver.InvalidPTX, res)
	_, res = r.Compile([]byte(kernelText), &driver.JIT{MaxRegisters: -1})
	r.is(driver.InvalidValue, res)
	o = driver.JIT{}
	_, res = r.Compile([]byte(text("8.0", "sm_90a", "setmaxnreg.inc.sync.aligned.u32 64;")), &o)
	r.ok(res)
	require.Contains(t, o.InfoLog, "setmaxnreg is ignored")

	other := newRig(t, softgpu.Config{SM: 89})
	_, res = other.ModuleLoadData(c, nil)
	other.is(driver.NoBinaryForGPU, res)
}

// TestFunctions asks for what is known of kernels.
func TestFunctions(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	get := func(name string, a driver.FuncAttribute) int {
		v, res := r.FuncGetAttribute(a, r.fn(name))
		r.ok(res)
		return v
	}
	require.Equal(t, 1024, get("static_shared", driver.FuncStaticShared))
	require.Equal(t, 0, get("add", driver.FuncStaticShared))
	require.Equal(t, 47<<10, get("static_shared", driver.FuncMaxDynamicShared))
	require.Equal(t, 64, get("bounded", driver.FuncMaxThreads))
	require.Equal(t, 64, get("exact", driver.FuncMaxThreads))
	require.Equal(t, 1024, get("add", driver.FuncMaxThreads))
	require.Equal(t, 70, get("add", driver.FuncPTXVersion))
	require.Equal(t, 90, get("add", driver.FuncBinaryVersion))
	require.Equal(t, 0, get("add", driver.FuncLocalBytes))
	require.InDelta(t, 12, get("add", driver.FuncRegisters), 8)
	require.Equal(t, 0, get("add", driver.FuncNonPortableCluster))
	_, res := r.FuncGetAttribute(999, r.fn("add"))
	r.is(driver.InvalidValue, res)
	r.is(driver.InvalidValue, r.FuncSetAttribute(driver.FuncRegisters, r.fn("add"), 1))
	r.is(driver.InvalidValue, r.FuncSetAttribute(driver.FuncNonPortableCluster, r.fn("add"), 2))
	r.is(driver.InvalidValue, r.FuncSetAttribute(driver.FuncMaxDynamicShared, r.fn("add"), -1))
	r.is(driver.InvalidValue, r.FuncSetAttribute(driver.FuncMaxDynamicShared, r.fn("static_shared"), 227<<10-1023))
	r.ok(r.FuncSetAttribute(driver.FuncMaxDynamicShared, r.fn("static_shared"), 226<<10))
	require.Equal(t, 226<<10, get("static_shared", driver.FuncMaxDynamicShared))
	r.ok(r.FuncLoad(r.fn("add")))

	o := driver.JIT{MaxRegisters: 9}
	m, res := r.ModuleLoadData([]byte(kernelText), &o)
	r.ok(res)
	f, res := r.ModuleGetFunction(m, "add")
	r.ok(res)
	v, res := r.FuncGetAttribute(driver.FuncRegisters, f)
	r.ok(res)
	require.Equal(t, 9, v)
	r.ok(r.ModuleUnload(m))

	parsed, err := parse.Module("test", []byte(kernelText))
	require.NoError(t, err)
	layout := args.LayoutOf(parsed.Func("mixed").Params)
	for i := range layout.Len() {
		at, n, res := r.FuncGetParamInfo(r.fn("mixed"), i)
		r.ok(res)
		require.Equal(t, [2]int{layout.Param(i).Offset, layout.Param(i).Size}, [2]int{int(at), int(n)})
	}
	_, _, res = r.FuncGetParamInfo(r.fn("mixed"), layout.Len())
	r.is(driver.InvalidValue, res)
	_, _, res = r.FuncGetParamInfo(r.fn("mixed"), -1)
	r.is(driver.InvalidValue, res)
	l := one(1)
	l.Params = make([]byte, layout.Size())
	r.ok(r.LaunchKernel(r.fn("mixed"), l, 0))
	r.ok(r.CtxSynchronize())

	old := newRig(t, softgpu.Config{Version: 12030})
	_, _, res = old.FuncGetParamInfo(old.fn("mixed"), 0)
	old.is(driver.NotSupported, res)
}

// TestOccupancy compares with what is known of the architecture.
func TestOccupancy(t *testing.T) {
	r := newRig(t, softgpu.Config{Multiprocessors: 3})
	blocks := func(name string, threads int, dynamic uint64) int {
		n, res := r.OccupancyMaxActiveBlocks(r.fn(name), threads, dynamic)
		r.ok(res)
		return n
	}
	require.Equal(t, 2, blocks("add", 1024, 0))
	require.Equal(t, 8, blocks("add", 256, 0))
	require.Equal(t, 32, blocks("add", 32, 0))
	require.Equal(t, 32, blocks("add", 1, 0))
	require.Equal(t, 4, blocks("add", 32, 48<<10))
	require.Equal(t, 0, blocks("add", 32, 48<<10+1))
	require.Equal(t, 0, blocks("bounded", 65, 0))
	require.Equal(t, 0, blocks("add", 1025, 0))
	_, res := r.OccupancyMaxActiveBlocks(r.fn("add"), 0, 0)
	r.is(driver.InvalidValue, res)
	grid, block, res := r.OccupancyMaxPotentialBlockSize(r.fn("add"), 0, 0)
	r.ok(res)
	require.Equal(t, [2]int{6, 1024}, [2]int{grid, block})
	grid, block, res = r.OccupancyMaxPotentialBlockSize(r.fn("add"), 0, 100)
	r.ok(res)
	require.Equal(t, [2]int{3 * 32, 64}, [2]int{grid, block})
	grid, block, res = r.OccupancyMaxPotentialBlockSize(r.fn("bounded"), 0, 0)
	r.ok(res)
	require.Equal(t, [2]int{3 * 32, 64}, [2]int{grid, block})
	_, _, res = r.OccupancyMaxPotentialBlockSize(r.fn("add"), 1<<20, 0)
	r.is(driver.InvalidValue, res)
	l := one(512, driver.Ptr(0), 0, 0)
	_, res = r.OccupancyMaxActiveClusters(r.fn("add"), l)
	r.is(driver.InvalidValue, res)
	l.Cluster, l.Grid = [3]uint32{2, 1, 1}, [3]uint32{2, 1, 1}
	n, res := r.OccupancyMaxActiveClusters(r.fn("add"), l)
	r.ok(res)
	require.Equal(t, 6, n)
	l.Cluster = [3]uint32{16, 1, 1}
	l.Grid = [3]uint32{16, 1, 1}
	_, res = r.OccupancyMaxActiveClusters(r.fn("add"), l)
	r.is(driver.InvalidClusterSize, res)
}

// FuzzModuleLoadData loads whatever comes: no panic, and what fails says why.
func FuzzModuleLoadData(f *testing.F) {
	needThreads(f)
	g := softgpu.New(softgpu.Config{})
	r := newRig(f, softgpu.Config{})
	c, res := r.Compile([]byte(text("7.0", "sm_80", "")), nil)
	r.ok(res)
	for _, seed := range [][]byte{c, c[:len(c)-1], c[:40], {0}, []byte(text("7.0", "sm_80", "")), []byte(text("9.9", "sm_9z", "x;"))} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, image []byte) {
		onThread(func() {
			x, _ := g.PrimaryCtxRetain(0)
			g.CtxSetCurrent(x)
			o := driver.JIT{}
			m, res := g.ModuleLoadData(image, &o)
			switch {
			case res == driver.Success && g.ModuleUnload(m) != driver.Success:
				t.Error("what was loaded is not unloaded")
			case res != driver.Success && o.ErrorLog == "":
				t.Errorf("%s without a log", res.Name())
			}
			if res := g.PrimaryCtxRelease(0); res != driver.Success {
				t.Error(res.Name())
			}
		})
		if err := g.Leaks(); err != nil {
			t.Error(err)
		}
	})
}
