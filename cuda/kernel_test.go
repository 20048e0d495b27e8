package cuda

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/args"
)

// kernelText is a kernel with directives before its body, and shared memory.
func kernelText(directives string, shared int) string {
	return fmt.Sprintf(`.version 8.0
.target sm_90
.address_size 64
.extern .shared .align 4 .b8 dynamic[];
.visible .entry k(.param .u64 out)
%s
{
	.shared .align 4 .b8 own[%d];
	.reg .b32 %%r<3>;
	.reg .b64 %%rd1;
	mov.u32 %%r1, own;
	mov.u32 %%r2, dynamic;
	add.u32 %%r1, %%r1, %%r2;
	ld.param.u64 %%rd1, [out];
	st.global.u32 [%%rd1], %%r1;
	ret;
}
`, directives, shared)
}

func (x *Device) kernel(t *testing.T, text, name string) *Kernel {
	t.Helper()
	m, err := x.Load(text)
	require.NoError(t, err)
	k, err := m.Kernel(name)
	require.NoError(t, err)
	return k
}

func xyz(n ...uint32) (a [3]uint32) {
	copy(a[:], n)
	return a
}

func TestPrepare(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	optin := uint32(d.Info().SharedOptin)
	anyBlock, required := kernelText("", 100), kernelText(".reqntid 8, 4", 100)
	bounded, clustered := kernelText(".maxntid 96", 100), kernelText(".reqnctapercluster 2, 2", 100)
	ranked := kernelText(".maxclusterrank 4", 100)
	for name, c := range map[string]struct {
		text string
		l    Launch
		want driver.Launch
		err  error
		says string
	}{
		"zeros are ones": {text: anyBlock, l: Launch{Block: xyz(32)},
			want: driver.Launch{Grid: xyz(1, 1, 1), Block: xyz(32, 1, 1)}},
		"all": {text: anyBlock, l: Launch{Grid: xyz(5, 6, 7), Block: xyz(4, 2, 8), Shared: 128, Cooperative: true},
			want: driver.Launch{Grid: xyz(5, 6, 7), Block: xyz(4, 2, 8), Shared: 128, Cooperative: true}},
		"required": {text: required, l: Launch{Grid: xyz(3)}, want: driver.Launch{Grid: xyz(3, 1, 1), Block: xyz(8, 4, 1)}},
		"required, said": {text: required, l: Launch{Block: xyz(8, 4)},
			want: driver.Launch{Grid: xyz(1, 1, 1), Block: xyz(8, 4, 1)}},
		"required, but": {text: required, l: Launch{Block: xyz(32)}, err: compute.ErrArgument,
			says: "kernel k: block [32 1 1], it needs [8 4 1]"},
		"no block": {text: anyBlock, l: Launch{Grid: xyz(3)}, err: compute.ErrArgument, says: "without a block"},
		"most threads": {text: anyBlock, l: Launch{Block: xyz(32, 32)},
			want: driver.Launch{Grid: xyz(1, 1, 1), Block: xyz(32, 32, 1)}},
		"threads": {text: anyBlock, l: Launch{Block: xyz(32, 33)}, err: compute.ErrTooLarge,
			says: "1056 threads, at most 1024"},
		"long":     {text: anyBlock, l: Launch{Block: xyz(1, 1, 65)}, err: compute.ErrTooLarge, says: "at most [1024 1024 64]"},
		"overflow": {text: anyBlock, l: Launch{Block: xyz(1<<31, 1<<31, 4)}, err: compute.ErrTooLarge},
		"bounded":  {text: bounded, l: Launch{Block: xyz(97)}, err: compute.ErrTooLarge, says: "97 threads, at most 96"},
		"wide": {text: anyBlock, l: Launch{Block: xyz(1), Grid: xyz(1<<31 - 1)},
			want: driver.Launch{Grid: xyz(1<<31-1, 1, 1), Block: xyz(1, 1, 1)}},
		"wider": {text: anyBlock, l: Launch{Block: xyz(1), Grid: xyz(1 << 31)}, err: compute.ErrTooLarge,
			says: "grid [2147483648 1 1]"},
		"high": {text: anyBlock, l: Launch{Block: xyz(1), Grid: xyz(1, 65536)}, err: compute.ErrTooLarge, says: "65535"},
		"shared": {text: anyBlock, l: Launch{Block: xyz(1), Shared: optin - 100},
			want: driver.Launch{Grid: xyz(1, 1, 1), Block: xyz(1, 1, 1), Shared: optin - 100}},
		"too much shared": {text: anyBlock, l: Launch{Block: xyz(1), Shared: optin - 99}, err: compute.ErrTooLarge,
			says: fmt.Sprintf("100 bytes of shared memory and %d of dynamic, at most %d", optin-99, optin)},
		"all shared": {text: anyBlock, l: Launch{Block: xyz(1), Shared: 1<<32 - 1}, err: compute.ErrTooLarge},
		"cluster": {text: anyBlock, l: Launch{Grid: xyz(6, 4), Block: xyz(1), Cluster: xyz(3, 2)},
			want: driver.Launch{Grid: xyz(6, 4, 1), Block: xyz(1, 1, 1), Cluster: xyz(3, 2, 1)}},
		"parts of clusters": {text: anyBlock, l: Launch{Grid: xyz(6, 3), Block: xyz(1), Cluster: xyz(3, 2)},
			err: compute.ErrArgument, says: "grid [6 3 1] is not made of clusters [3 2 1]"},
		"large cluster": {text: anyBlock, l: Launch{Grid: xyz(16), Block: xyz(1), Cluster: xyz(16)},
			want: driver.Launch{Grid: xyz(16, 1, 1), Block: xyz(1, 1, 1), Cluster: xyz(16, 1, 1)}},
		"too large a cluster": {text: anyBlock, l: Launch{Grid: xyz(17), Block: xyz(1), Cluster: xyz(17)},
			err: compute.ErrTooLarge, says: "17 blocks, at most 16"},
		"ranked": {text: ranked, l: Launch{Grid: xyz(8), Block: xyz(1), Cluster: xyz(8)}, err: compute.ErrTooLarge,
			says: "8 blocks, at most 4"},
		"clustered": {text: clustered, l: Launch{Grid: xyz(4, 4), Block: xyz(1)},
			want: driver.Launch{Grid: xyz(4, 4, 1), Block: xyz(1, 1, 1)}},
		"clustered, but": {text: clustered, l: Launch{Grid: xyz(4, 4), Block: xyz(1), Cluster: xyz(4)},
			err: compute.ErrArgument, says: "it needs [2 2 1]"},
		"parts of its own": {text: clustered, l: Launch{Grid: xyz(4, 3), Block: xyz(1)},
			err: compute.ErrArgument, says: "not made of clusters"},
	} {
		k := d.kernel(t, c.text, "k")
		out := driver.Launch{Params: []byte{1}}
		err := k.prepare(d.state, &c.l, &out)
		if c.err != nil {
			require.ErrorIs(t, err, c.err, name)
			require.Contains(t, err.Error(), "kernel k: ", name)
			require.Contains(t, err.Error(), c.says, name)
			require.EqualValues(t, 1, k.module.holders.Load(), name)
			continue
		}
		require.NoError(t, err, name)
		c.want.Params, c.want.Offsets = []byte{1}, k.layout.Offsets()
		require.Equal(t, c.want, out, name)
		require.EqualValues(t, 2, k.module.holders.Load(), name)
		k.module.release()
	}
	other, _ := openSoft(t, softgpu.Config{SM: 80})
	k := other.kernel(t, strings.Replace(anyBlock, "sm_90", "sm_80", 1), "k")
	var out driver.Launch
	require.ErrorIs(t, k.prepare(d.state, &Launch{Block: xyz(1)}, &out), compute.ErrForeignTensor)
	require.ErrorIs(t, k.prepare(other.state, &Launch{Block: xyz(1), Cluster: xyz(1)}, &out), compute.ErrUnsupported)
	require.ErrorIs(t, (*Kernel)(nil).prepare(d.state, &Launch{}, &out), compute.ErrArgument)
	require.Equal(t, xyz(8, 4, 1), d.kernel(t, required, "k").RequiredBlock())
	require.NoError(t, k.module.Close())
	require.ErrorIs(t, k.prepare(other.state, &Launch{Block: xyz(1)}, &out), compute.ErrClosed)
	k.module.l.info.Cooperative = false
	require.ErrorIs(t, k.fill(&Launch{Block: xyz(1), Cooperative: true}, &out), compute.ErrUnsupported)
}

// More shared memory than every device has, and large clusters, are enabled when first needed, once.
func TestEnabledOnDemand(t *testing.T) {
	fail := &injector{}
	d, g := openSoft(t, softgpu.Config{Inject: fail.next})
	k := d.kernel(t, kernelText("", 64), "k")
	set := func(l Launch) (int, error) {
		before := g.Calls()["FuncSetAttribute"]
		err := k.prepare(d.state, &l, &driver.Launch{})
		if err == nil {
			k.module.release()
		}
		return int(g.Calls()["FuncSetAttribute"] - before), err
	}
	for _, c := range []struct {
		l Launch
		n int
		r driver.Result
	}{
		{Launch{Block: xyz(1), Shared: 48<<10 - 64}, 0, 0},
		{Launch{Block: xyz(1), Shared: 48<<10 - 63}, 1, driver.OutOfMemory},
		{Launch{Block: xyz(1), Shared: 48<<10 - 63}, 1, 0},
		{Launch{Block: xyz(1), Shared: 200 << 10}, 0, 0},
		{Launch{Block: xyz(1), Grid: xyz(8), Cluster: xyz(8)}, 0, 0},
		{Launch{Block: xyz(1), Grid: xyz(16), Cluster: xyz(16)}, 1, driver.Unknown},
		{Launch{Block: xyz(1), Grid: xyz(16), Cluster: xyz(16)}, 1, 0},
		{Launch{Block: xyz(1), Grid: xyz(16), Cluster: xyz(16)}, 0, 0},
	} {
		if c.r != 0 {
			fail.set("FuncSetAttribute", c.r)
		}
		n, err := set(c.l)
		require.Equal(t, c.n, n, "%+v", c)
		require.Equal(t, c.r != 0, err != nil, "%+v: %v", c, err)
	}
	l := &Launch{Grid: xyz(3), Block: xyz(128), Shared: 100 << 10}
	out := &driver.Launch{}
	require.Zero(t, testing.AllocsPerRun(100, func() {
		if k.prepare(d.state, l, out) == nil {
			k.module.release()
		}
	}))
}

// A kernel runs with what was prepared, and its module may be closed after it.
func TestLaunchThenClose(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	modules := g.Live().Modules
	s, err := d.NewStream(StreamOptions{})
	require.NoError(t, err)
	for range 3 {
		k := d.kernel(t, addText, "add")
		r, err := s.Begin()
		require.NoError(t, err)
		require.NoError(t, r.Launch(k, Launch{Block: xyz(32)}, args.Ptr(0), args.F32(1), args.U32(0)))
		require.NoError(t, k.module.Close())
		require.ErrorIs(t, r.Launch(k, Launch{Block: xyz(32)}, args.Ptr(0), args.F32(1), args.U32(0)), compute.ErrClosed)
		_, err = r.Submit()
		require.ErrorIs(t, err, compute.ErrClosed) // the first error of the recording
		require.LessOrEqual(t, g.Live().Modules, modules+1, "one that was closed while the stream was busy goes before the next load")
	}
	// A graph keeps what it launches.
	k := d.kernel(t, addText, "add")
	graph, err := s.Capture(func(c *Capture) error {
		_, err := c.Launch(k, Launch{Block: xyz(32)}, args.Ptr(0), args.F32(1), args.U32(0))
		return err
	})
	require.NoError(t, err)
	require.NoError(t, k.module.Close())
	require.Equal(t, modules+1, g.Live().Modules)
	r, err := s.Begin()
	require.NoError(t, err)
	require.NoError(t, r.Replay(graph))
	x, err := r.Submit()
	require.NoError(t, err)
	_, err = x.Wait(t.Context())
	require.NoError(t, err)
	require.NoError(t, graph.Close())
	// The stream may have work for a moment after what waited for it has ended.
	require.Eventually(t, func() bool {
		last := d.kernel(t, addText, "add")
		now := g.Live().Modules
		require.NoError(t, last.module.Close())
		return now == modules+1
	}, 10*time.Second, time.Millisecond, "it goes before a next load")
}
