package cuda

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx"
	"github.com/wavelane/wavelane/ptx/args"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// onDriver opens the first device of a driver, without a cache.
func onDriver(drv driver.Driver) Option {
	return func(c *config) error {
		c.load, c.cache = func() (driver.Driver, error) { return drv, nil }, noCache
		return nil
	}
}

// openSoft opens a software GPU that has to be empty again in the end.
func openSoft(t *testing.T, cfg softgpu.Config) (*Device, *softgpu.GPU) {
	t.Helper()
	g := softgpu.New(cfg)
	d, err := Open(t.Context(), onDriver(g))
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, d.Close())
		// What is under way is given back a moment after it is done.
		require.Eventually(t, func() bool { return g.Live() == softgpu.Live{} }, time.Minute, time.Millisecond)
	})
	return d, g
}

func uploaded[T Element](t testing.TB, d *Device, x []T) *Buffer[T] {
	b, err := Alloc[T](d, len(x))
	require.NoError(t, err)
	require.NoError(t, b.Upload(context.Background(), x))
	return b
}

func built(t *testing.T, name string, build func(k *ptx.Kernel)) *ir.Module {
	m := ptx.NewModule()
	build(m.Kernel(name))
	x, err := m.Build()
	require.NoError(t, err)
	return x
}

func TestModule(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	m, err := d.Load(addText, WithMaxRegisters(32), WithLineInfo())
	require.NoError(t, err)
	require.Equal(t, []string{"add"}, m.Kernels())
	m.Kernels()[0] = "mine"
	k, err := m.Kernel("add")
	require.NoError(t, err)
	require.Equal(t, "add", k.Name())
	l := args.LayoutOf([]ir.Var{{Name: "x", Type: ir.U64}, {Name: "v", Type: ir.F32}, {Name: "n", Type: ir.U32}})
	require.Equal(t, []args.Param{l.Param(0), l.Param(1), l.Param(2)}, k.Params())
	a := k.Attributes()
	require.Positive(t, a.Registers)
	require.Equal(t, Attributes{Registers: a.Registers, MaxThreads: 1024, PTXVersion: 70, BinaryVersion: 90}, a)

	_, err = m.Kernel("sub")
	require.ErrorIs(t, err, compute.ErrArgument)
	require.Contains(t, err.Error(), `no kernel "sub" among add`)
	at, n, err := m.Global("counters")
	require.NoError(t, err)
	require.NotZero(t, at)
	require.Equal(t, 24, n)
	_, _, err = m.Global("timers")
	require.ErrorIs(t, err, compute.ErrArgument)
	require.Contains(t, err.Error(), `no variable "timers" among counters`)

	b, err := d.LoadModule(built(t, "nothing", func(k *ptx.Kernel) {}))
	require.NoError(t, err)
	require.Equal(t, []string{"nothing"}, b.Kernels())
	_, _, err = b.Global("x")
	require.Contains(t, err.Error(), `no variable "x" among none`)
	require.NoError(t, b.Close())
}

// What is wrong with a text is said with its place.
func TestLoadSaysWhere(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	at := func(s, mark string) ir.Pos {
		before := s[:strings.Index(s, mark)]
		return ir.Pos{Line: 1 + strings.Count(before, "\n"), Col: len(before) - strings.LastIndex(before, "\n")}
	}
	changed := func(from, to string) string { return strings.Replace(addText, from, to, 1) }
	for text, mark := range map[string]string{
		"":                                     "",
		"hello":                                "hello",
		changed("%f2, %f1", "%f9, %f1"):        "%f9",
		changed("setp.ge", "setp.greater"):     "setp",
		changed("add.f32 %f2", "add.f32 %rd2"): "add.f32 %rd2",
		changed("@%p ret", "@%r1 ret"):         "%r1 ret",
	} {
		want := at(text, mark)
		_, err := d.Load(text)
		var e *parse.Error
		require.ErrorAs(t, err, &e, text)
		require.ErrorIs(t, err, compute.ErrArgument)
		require.Equal(t, want, e.Pos, "%v", err)
	}
	_, err := d.Load(".version 7.0 .target sm_80 .address_size 32 .visible .entry k() { ret; }")
	require.ErrorIs(t, err, compute.ErrUnsupported)

	_, err = d.Load(newText) // which only the driver's compiler sees
	var e *Error
	require.ErrorAs(t, err, &e)
	require.Contains(t, e.Log, ".version 7.8")
	require.Zero(t, g.Calls()["Compile"])

	m, err := parse.Module("", []byte(addText))
	require.NoError(t, err)
	m.Funcs[0].Body[3].Op = "surprise"
	_, err = d.LoadModule(m)
	var invalid *ir.Error
	require.ErrorAs(t, err, &invalid)
	_, err = d.LoadModule(nil)
	require.ErrorIs(t, err, compute.ErrArgument)
	for _, o := range []LoadOption{nil, WithMaxRegisters(15), WithMaxRegisters(256), WithMaxRegisters(-1)} {
		_, err = d.Load(addText, o)
		require.ErrorIs(t, err, compute.ErrArgument)
	}
}

func TestModuleNames(t *testing.T) {
	m := &ir.Module{Funcs: []*ir.Func{{Name: "f"}}}
	require.Equal(t, "without kernels", nameOf(m))
	for _, n := range []string{"a", "b", "c"} {
		m.Funcs = append(m.Funcs, &ir.Func{Name: n, Entry: true})
	}
	require.Equal(t, "of a, b, c", nameOf(m))
	m.Funcs = append(m.Funcs, &ir.Func{Name: "d", Entry: true})
	require.Equal(t, "of a, b, c, …", nameOf(m))
}

func TestModuleCloses(t *testing.T) {
	d, g := openSoft(t, softgpu.Config{})
	m, err := d.Load(addText)
	require.NoError(t, err)
	k, err := m.Kernel("add")
	require.NoError(t, err)
	before := g.Live().Modules
	require.NoError(t, m.retain()) // as a graph does
	require.NoError(t, m.Close())
	require.Equal(t, before, g.Live().Modules, "what a graph holds stays")
	require.NoError(t, m.Close())
	m.release()
	require.ErrorIs(t, m.retain(), compute.ErrClosed)
	other, err := d.Load(addText)
	require.NoError(t, err)
	require.Equal(t, before, g.Live().Modules, "it went before the next load")

	_, _, err = m.Global("counters")
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = k.Occupancy([3]uint32{32}, 0)
	require.ErrorIs(t, err, compute.ErrClosed)
	_, _, err = k.BestBlock(0)
	require.ErrorIs(t, err, compute.ErrClosed)
	require.NoError(t, other.Close())
	require.Equal(t, before-1, g.Live().Modules)

	last, err := d.Load(addText)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	require.Zero(t, g.Live().Modules)
	require.NoError(t, last.Close())
	_, _, err = last.Global("counters")
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = d.Load(addText)
	require.ErrorIs(t, err, compute.ErrClosed)
	_, err = d.Preload(t.Context())
	require.ErrorIs(t, err, compute.ErrClosed)
}

// Closing a module while others use it neither fails nor leaks.
func TestModuleClosesWhileUsed(t *testing.T) {
	d, _ := openSoft(t, softgpu.Config{})
	for range 20 {
		m, err := d.Load(addText)
		require.NoError(t, err)
		var wg sync.WaitGroup
		errs := make([]error, 4)
		for i := range errs {
			wg.Go(func() {
				for errs[i] == nil {
					_, _, errs[i] = m.Global("counters")
				}
			})
		}
		require.NoError(t, m.Close())
		wg.Wait()
		for _, err := range errs {
			require.ErrorIs(t, err, compute.ErrClosed)
		}
	}
}

// On a dead context modules close without a word, and the device gives back what they had.
func TestModuleClosesOnADeadContext(t *testing.T) {
	fail := &injector{}
	d, _ := openSoft(t, softgpu.Config{Inject: fail.next})
	var modules []*Module
	for range 3 {
		m, err := d.Load(addText)
		require.NoError(t, err)
		modules = append(modules, m)
	}
	fail.set("CtxSynchronize", driver.Unknown, driver.IllegalAddress)
	var e *Error
	require.ErrorAs(t, modules[0].Close(), &e)
	require.Equal(t, int(driver.Unknown), e.Code)
	require.NoError(t, modules[1].Close())
	_, err := d.Load(addText)
	require.ErrorIs(t, err, ErrContextPoisoned)
	require.NoError(t, modules[2].Close())
	_, _, err = modules[2].Global("counters")
	require.ErrorIs(t, err, ErrContextPoisoned)
}

// lying is a driver that says something else about parameters.
type lying struct {
	driver.Driver
	offset, size uint64
	n            int
	r            driver.Result
}

func (l *lying) FuncGetParamInfo(f driver.Function, i int) (offset, size uint64, r driver.Result) {
	if l.r != driver.Success {
		return 0, 0, l.r
	}
	if i >= 3+l.n {
		return 0, 0, driver.InvalidValue
	}
	offset, size, r = l.Driver.FuncGetParamInfo(f, min(i, 2))
	if i == 1 {
		offset, size = offset+l.offset, size+l.size
	}
	return offset, size, r
}

func TestParametersAreCompared(t *testing.T) {
	for _, c := range []struct {
		lying
		err  error
		says string
	}{
		{lying{}, nil, ""},
		{lying{offset: 48}, nil, ""},             // which is where the driver may have it
		{lying{r: driver.NotSupported}, nil, ""}, // older drivers do not say
		{lying{size: 4}, compute.ErrArgument, "parameter v has 4 bytes, for the driver it has 8"},
		{lying{n: 1}, compute.ErrArgument, "3 parameters"},
		{lying{n: -1}, compute.ErrArgument, "3 parameters"},
		{lying{r: driver.InvalidHandle}, errDriver, "cuFuncGetParamInfo"},
	} {
		g := softgpu.New(softgpu.Config{})
		c.Driver = g
		d, err := Open(t.Context(), onDriver(&c.lying))
		require.NoError(t, err)
		_, err = d.Load(addText)
		if c.err == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, c.err)
			require.Contains(t, err.Error(), "kernel add: ")
			require.Contains(t, err.Error(), c.says)
		}
		require.NoError(t, d.Close())
		require.Equal(t, softgpu.Live{}, g.Live())
	}
}

// Any call that fails while a module is loaded gives its error, and nothing is left of the module.
func TestEveryCallOfALoadFails(t *testing.T) {
	fail := &injector{}
	g := softgpu.New(softgpu.Config{Inject: fail.next})
	d, err := Open(context.Background(), onDriver(g), WithCache(t.TempDir()))
	require.NoError(t, err)
	live := g.Live()
	for _, r := range []driver.Result{driver.OutOfMemory, driver.Unknown, driver.InvalidHandle} {
		loaded := 0
		for n := 1; loaded < 3; n++ {
			fail.mu.Lock()
			fail.total, fail.nth, fail.with = 0, n, r
			fail.mu.Unlock()
			m, err := d.Load(addText)
			fail.mu.Lock()
			fail.nth = 0
			fail.mu.Unlock()
			if err == nil {
				loaded++ // a fallback, or nothing failed
				require.NoError(t, m.Close())
			} else {
				loaded = 0
				var e *Error
				require.ErrorAs(t, err, &e)
				require.Equal(t, int(r), e.Code)
				require.Contains(t, err.Error(), "module of add")
			}
			m, err = d.Load(strings.Replace(addText, "add(", "sweep(", 1))
			require.NoError(t, err)
			require.NoError(t, m.Close())
			require.Equal(t, live, g.Live(), "after call %d", n)
			require.Less(t, n, 100)
		}
	}
	require.NoError(t, d.Close())
	require.Equal(t, softgpu.Live{}, g.Live())
}
