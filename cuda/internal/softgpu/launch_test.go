package softgpu_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// greedy is a kernel with more registers than a block of 1024 threads can have.
const greedy = `.version 7.0
.target sm_80
.address_size 64
.visible .entry greedy(.param .u64 x)
{
	.reg .b64 %rd<2>;
	.reg .b32 %r<100>;
	.reg .b32 %s;
	ld.param.u64 %rd1, [x];
`

// greedyText reads n values and then writes them all.
func greedyText(n int) string {
	var loads, stores string
	for i := range n {
		loads += "	ld.volatile.global.u32 %r" + strconv.Itoa(i) + ", [%rd1];\n"
		stores += "	st.volatile.global.u32 [%rd1], %r" + strconv.Itoa(i) + ";\n"
	}
	return greedy + loads + stores + "	ret;\n}\n"
}

// TestLaunchChecks launches what cannot be launched.
func TestLaunchChecks(t *testing.T) {
	r := newRig(t, softgpu.Config{Multiprocessors: 2})
	x := r.alloc(1 << 12)
	with := func(l *driver.Launch, f func(l *driver.Launch)) *driver.Launch {
		f(l)
		return l
	}
	add := func(f func(l *driver.Launch)) *driver.Launch { return with(one(32, x, 0, 1), f) }
	none := func(f func(l *driver.Launch)) *driver.Launch { return with(one(32), f) }
	m := r.load(greedyText(90))
	f, res := r.ModuleGetFunction(m, "greedy")
	r.ok(res)
	for i, c := range []struct {
		name   string
		launch *driver.Launch
		want   driver.Result
	}{
		{"add", add(func(l *driver.Launch) {}), driver.Success},
		{"add", add(func(l *driver.Launch) { l.Grid[1] = 0 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Block[2] = 0 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Grid[0] = 1 << 31 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Grid[1] = 1 << 16 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Grid[2] = 1 << 16 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Block[0] = 1024 }), driver.Success},
		{"add", add(func(l *driver.Launch) { l.Block[0] = 1025 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Block = [3]uint32{1 << 31, 1 << 31, 4} }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Block = [3]uint32{8, 2, 64} }), driver.Success},
		{"add", add(func(l *driver.Launch) { l.Block = [3]uint32{1, 1, 65} }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Block[1] = 33 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Params = l.Params[1:] }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Params = append(l.Params, 0) }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Params = nil }), driver.InvalidValue},
		{"add", nil, driver.InvalidValue},
		{"bounded", none(func(l *driver.Launch) { l.Block = [3]uint32{8, 8, 1} }), driver.Success},
		{"bounded", none(func(l *driver.Launch) { l.Block[0] = 65 }), driver.InvalidValue},
		{"exact", none(func(l *driver.Launch) { l.Block[1] = 2 }), driver.Success},
		{"exact", none(func(l *driver.Launch) { l.Block[0] = 64 }), driver.InvalidValue},
		{"exact", none(func(l *driver.Launch) {}), driver.InvalidValue},
		{"dynamic", with(one(1, x, 48<<10-4), func(l *driver.Launch) { l.Shared = 48 << 10 }), driver.Success},
		{"dynamic", with(one(1, x, 0), func(l *driver.Launch) { l.Shared = 48<<10 + 1 }), driver.InvalidValue},
		{"static_shared", with(one(1, 0), func(l *driver.Launch) { l.Shared = 47 << 10 }), driver.Success},
		{"static_shared", with(one(1, 0), func(l *driver.Launch) { l.Shared = 47<<10 + 1 }), driver.InvalidValue},
		{"static_shared", with(one(1, 0), func(l *driver.Launch) { l.Shared = 1<<32 - 1 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Cooperative, l.Block[0], l.Grid[0] = true, 1024, 4 }), driver.Success},
		{"add", add(func(l *driver.Launch) { l.Cooperative, l.Block[0], l.Grid[0] = true, 1024, 5 }), driver.CooperativeTooLarge},
		{"add", add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{2, 1, 1}, 4 }), driver.Success},
		{"add", add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{2, 1, 1}, 5 }), driver.InvalidValue},
		{"add", add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{2, 0, 0}, 4 }), driver.InvalidClusterSize},
		{"add", add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{16, 1, 1}, 16 }), driver.InvalidClusterSize},
		{"add", add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{1 << 31, 1, 1}, 1<<30 }), driver.InvalidClusterSize},
	} {
		got := r.LaunchKernel(r.fn(c.name), c.launch, 0)
		require.Equal(t, c.want.Name(), got.Name(), "case %d, %s", i, c.name)
		r.ok(r.CtxSynchronize())
	}
	r.ok(r.FuncSetAttribute(driver.FuncNonPortableCluster, r.fn("add"), 1))
	l := add(func(l *driver.Launch) { l.Cluster, l.Grid[0] = [3]uint32{16, 1, 1}, 16 })
	r.ok(r.LaunchKernel(r.fn("add"), l, 0))
	r.ok(r.FuncSetAttribute(driver.FuncMaxDynamicShared, r.fn("dynamic"), 227<<10))
	l = one(1, x, 227<<10-4)
	l.Shared = 227 << 10
	r.ok(r.LaunchKernel(r.fn("dynamic"), l, 0))
	l = one(1, x, 0)
	l.Shared = 227<<10 + 1
	r.is(driver.InvalidValue, r.LaunchKernel(r.fn("dynamic"), l, 0))

	most, res := r.FuncGetAttribute(driver.FuncMaxThreads, f)
	r.ok(res)
	require.Less(t, most, 1024)
	r.is(driver.LaunchOutOfResources, r.LaunchKernel(f, one(most+1, x), 0))
	r.ok(r.LaunchKernel(f, one(most, x), 0))
	r.ok(r.CtxSynchronize())
	r.ok(r.ModuleUnload(m))
	r.free(x)

	old := newRig(t, softgpu.Config{SM: 86})
	y := old.alloc(4)
	l = one(32, y, 0, 0)
	l.Cluster = [3]uint32{1, 1, 1}
	old.is(driver.NotSupported, old.LaunchKernel(old.fn("add"), l, 0))
	old.is(driver.InvalidValue, old.FuncSetAttribute(driver.FuncMaxDynamicShared, old.fn("dynamic"), 99<<10+1))
	old.ok(old.FuncSetAttribute(driver.FuncMaxDynamicShared, old.fn("dynamic"), 99<<10))
	old.free(y)
}

// TestLaunchKeepsNothing changes the launch after the call.
func TestLaunchKeepsNothing(t *testing.T) {
	r := newRig(t, softgpu.Config{})
	x := r.alloc(4)
	host, p := r.pinned(1)
	s := r.stream()
	release := r.Hold(s)
	l := one(1, x, 1, 42)
	r.ok(r.LaunchKernel(r.fn("slow"), l, s))
	clear(l.Params)
	l.Grid[0] = 1000
	release()
	r.ok(r.MemcpyDtoHAsync(p, x, 4, s))
	r.ok(r.StreamSynchronize(s))
	require.Equal(t, uint32(42), host[0])
	r.free(x)
	r.ok(r.MemFreeHost(p))
	r.ok(r.StreamDestroy(s))
}

// TestDevices asks what the devices are.
func TestDevices(t *testing.T) {
	needThreads(t)
	g := softgpu.New(softgpu.Config{Devices: 2, SM: 86, Multiprocessors: 7, Memory: 123})
	n, res := g.DeviceCount()
	require.Equal(t, driver.Success, res)
	require.Equal(t, 2, n)
	require.Equal(t, "software", g.Kind())
	for a, want := range map[driver.Attribute]int{driver.ComputeCapabilityMajor: 8, driver.ComputeCapabilityMinor: 6,
		driver.MultiprocessorCount: 7, driver.WarpSize: 32, driver.SharedPerBlock: 48 << 10, driver.SharedPerBlockOptin: 99 << 10,
		driver.SharedPerMultiprocessor: 100 << 10, driver.MaxThreadsPerMP: 1536, driver.ClusterLaunch: 0, driver.CooperativeLaunch: 1,
		driver.MaxBlocksPerMP: 16, driver.ReservedSharedPerBlock: 1024, driver.MaxGridDimY: 65535} {
		v, res := g.DeviceGetAttribute(a, 1)
		require.Equal(t, driver.Success, res)
		require.Equal(t, want, v, "attribute %d", a)
	}
	for a := driver.Attribute(0); a < 130; a++ { // what the library may ask for has a value
		if v, res := g.DeviceGetAttribute(a, 0); res != driver.Success {
			require.Equal(t, driver.InvalidValue, res)
		} else {
			require.GreaterOrEqual(t, v, 0)
		}
	}
	total, res := g.DeviceTotalMem(0)
	require.Equal(t, driver.Success, res)
	require.Equal(t, uint64(123), total)
	name, res := g.DeviceName(1)
	require.Equal(t, driver.Success, res)
	require.Equal(t, "software GPU", name)
	a, res := g.DeviceUUID(0)
	require.Equal(t, driver.Success, res)
	b, res := g.DeviceUUID(1)
	require.Equal(t, driver.Success, res)
	require.NotEqual(t, a, b)
	bus, res := g.DevicePCIBusID(1)
	require.Equal(t, driver.Success, res)
	require.Len(t, bus, len("0000:00:00.0"))
	for _, d := range []driver.Device{-1, 2, 1 << 30} {
		_, res := g.DeviceName(d)
		require.Equal(t, driver.InvalidDevice, res)
		_, res = g.DeviceGet(int(d))
		require.Equal(t, driver.InvalidDevice, res)
		_, res = g.DeviceCanAccessPeer(0, d)
		require.Equal(t, driver.InvalidDevice, res)
		require.Equal(t, driver.InvalidDevice, g.PrimaryCtxSetFlags(d, 0))
	}
	require.Equal(t, driver.InvalidValue, g.PrimaryCtxSetFlags(0, 3))
	require.Equal(t, driver.InvalidValue, g.PrimaryCtxSetFlags(0, 1<<10))
	require.Equal(t, driver.Success, g.PrimaryCtxSetFlags(0, driver.ScheduleBlockingSync))
	v, res := g.Version()
	require.Equal(t, driver.Success, res)
	require.Equal(t, 12080, v)
	for r := driver.Result(-1); r < 1000; r++ {
		require.NotEmpty(t, g.ResultText(r))
	}
	none, res := softgpu.New(softgpu.Config{SM: 13}).DeviceCount()
	require.Equal(t, driver.Success, res)
	require.Zero(t, none)
}
