package cuda

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// addText is a kernel that adds v to n numbers.
const addText = `.version 7.0
.target sm_80
.address_size 64
.visible .global .align 4 .b32 counters[6];
.visible .entry add(.param .u64 x, .param .f32 v, .param .u32 n)
{
	.reg .pred %p;
	.reg .b32 %r<5>;
	.reg .f32 %f<3>;
	.reg .b64 %rd<3>;
	ld.param.u64 %rd1, [x];
	ld.param.f32 %f1, [v];
	ld.param.u32 %r1, [n];
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mov.u32 %r4, %tid.x;
	mad.lo.u32 %r2, %r2, %r3, %r4;
	setp.ge.u32 %p, %r2, %r1;
	@%p ret;
	mad.wide.u32 %rd2, %r2, 4, %rd1;
	ld.global.f32 %f2, [%rd2];
	add.f32 %f2, %f2, %f1;
	st.global.f32 [%rd2], %f2;
	ret;
}
`

// newText is what parses but needs a newer version of PTX than it names: the driver's compiler refuses it.
const newText = `.version 7.0
.target sm_80
.address_size 64
.visible .entry early(.param .u64 x)
{
	.reg .b32 %r1;
	mov.u32 %r1, %cluster_ctaid.x;
	ret;
}
`

// registersText uses setmaxnreg, which the driver's linker ignores.
const registersText = `.version 8.0
.target sm_90a
.address_size 64
.visible .entry many()
{
	setmaxnreg.dec.sync.aligned.u32 40;
	ret;
}
`

// injector makes calls of a software GPU fail.
type injector struct {
	mu    sync.Mutex
	rules map[string][]driver.Result // results of the next calls
	nth   int                        // of all calls from now on fails with result; 0 for none
	with  driver.Result
	total int
}

func (i *injector) next(call string) driver.Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.total++
	if i.total == i.nth {
		return i.with
	}
	if r := i.rules[call]; len(r) > 0 {
		i.rules[call] = r[1:]
		return r[0]
	}
	return driver.Success
}

func (i *injector) set(call string, r ...driver.Result) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.rules == nil {
		i.rules = map[string][]driver.Result{}
	}
	i.rules[call] = r
}

// loading is a loader on a software GPU.
type loading struct {
	*loader
	t    *testing.T
	gpu  *softgpu.GPU
	log  *logged
	fail *injector
}

// newLoading opens a software GPU with a cache in dir.
func newLoading(t *testing.T, cfg softgpu.Config, dir string) *loading {
	t.Helper()
	x := &loading{t: t, log: &logged{}, fail: &injector{}}
	cfg.Inject = x.fail.next
	x.gpu = softgpu.New(cfg)
	info, id, err := describe(x.gpu, 0)
	require.NoError(t, err)
	p, err := retainPrimary(x.gpu, id)
	require.NoError(t, err)
	x.loader = newLoader(p, info, dir, slog.New(x.log))
	t.Cleanup(func() {
		p.enterDead()
		_ = x.loader.close() // of a dead context, in some tests
		p.leave()
		_ = p.release()
		require.Equal(t, softgpu.Live{}, x.gpu.Live())
	})
	return x
}

func sourceOf(t *testing.T, text string, jit driver.JIT) source {
	t.Helper()
	m, err := parse.Module("", []byte(text))
	require.NoError(t, err)
	return source{name: nameOf(m), text: []byte(text), m: m, jit: jit}
}

// try loads a text, and unloads it with the loader.
func (x *loading) try(text string) error {
	x.t.Helper()
	m, err := x.load(sourceOf(x.t, text, driver.JIT{}))
	if err == nil {
		x.retire(m)
	}
	return err
}

// counts are the calls since the last time.
func (x *loading) counts() func(call string) int {
	before := x.gpu.Calls()
	return func(call string) int { return int(x.gpu.Calls()[call] - before[call]) }
}

func entries(t *testing.T, dir string) (all []string) {
	list, err := os.ReadDir(dir)
	if !os.IsNotExist(err) {
		require.NoError(t, err)
	}
	for _, e := range list {
		all = append(all, filepath.Join(dir, e.Name()))
	}
	return all
}

func TestLadder(t *testing.T) {
	dir := t.TempDir()
	first := newLoading(t, softgpu.Config{}, dir)
	require.NoError(t, first.try(addText))
	require.EqualValues(t, 1, first.gpu.Calls()["Compile"])
	require.EqualValues(t, 1, first.gpu.Calls()["ModuleLoadData"])
	require.Len(t, entries(t, dir), 1)
	require.NoError(t, first.try(addText))
	require.EqualValues(t, 1, first.gpu.Calls()["Compile"], "the second time it is there")

	second := newLoading(t, softgpu.Config{}, dir) // another process
	require.NoError(t, second.try(addText))
	require.EqualValues(t, 0, second.gpu.Calls()["Compile"])

	// Whatever a binary depends on has an entry of its own.
	_, err := second.load(sourceOf(t, addText, driver.JIT{MaxRegisters: 32}))
	require.NoError(t, err)
	_, err = second.load(sourceOf(t, addText, driver.JIT{LineInfo: true}))
	require.NoError(t, err)
	require.NoError(t, second.try(addText+"\n"))
	require.EqualValues(t, 3, second.gpu.Calls()["Compile"])
	for _, cfg := range []softgpu.Config{{Version: 12040}, {SM: 89}} {
		other := newLoading(t, cfg, dir)
		require.NoError(t, other.try(addText))
		require.EqualValues(t, 1, other.gpu.Calls()["Compile"])
	}
	require.Len(t, entries(t, dir), 6)

	// Without a cache the linker is of no use, and it does not know setmaxnreg.
	none := newLoading(t, softgpu.Config{}, noCache)
	require.NoError(t, none.try(addText))
	require.NoError(t, second.try(registersText))
	require.EqualValues(t, 0, none.gpu.Calls()["Compile"])
	require.EqualValues(t, 3, second.gpu.Calls()["Compile"])
	require.Len(t, entries(t, dir), 6)
	for _, x := range []*loading{first, second, none} {
		require.Empty(t, x.log.warnings())
	}
}

// A cache file that is damaged, or that the driver refuses, is replaced.
func TestLadderReplacesEntries(t *testing.T) {
	r := randomSource(t)
	dir := t.TempDir()
	x := newLoading(t, softgpu.Config{}, dir)
	require.NoError(t, x.try(addText))
	path := entries(t, dir)[0]
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	key := x.key(&source{text: []byte(addText)})
	older := newLoading(t, softgpu.Config{SM: 80}, noCache)
	foreign := older.binary(addText)
	broken := append([]byte(nil), good[entryHeader:]...)
	broken[len(broken)/2] ^= 1
	bad := map[string][]byte{"for sm_80": encodeEntry(key, foreign), "a damaged binary": encodeEntry(key, broken),
		"no binary": encodeEntry(key, []byte{0, 1, 2, 3}), "empty": {}}
	for range 20 {
		n := r.IntN(len(good))
		bad[fmt.Sprint("cut to ", n)] = good[:n]
		flipped := append([]byte(nil), good...)
		flipped[n] ^= 1 << r.IntN(8)
		bad[fmt.Sprint("a bit in byte ", n)] = flipped
	}
	require.Empty(t, x.log.warnings())
	for name, b := range bad {
		require.NoError(t, os.WriteFile(path, b, 0o600))
		calls := x.counts()
		require.NoError(t, x.try(addText), name)
		require.Equal(t, 1, calls("Compile"), name)
		now, err := os.ReadFile(path)
		require.NoError(t, err, name)
		require.Equal(t, good, now, name)
		require.Len(t, x.log.warnings(), 1, name)
	}
}

// binary compiles a text.
func (x *loading) binary(text string) []byte {
	require.NoError(x.t, x.p.enter())
	defer x.p.leave()
	b, r := x.gpu.Compile([]byte(text), &driver.JIT{})
	require.Equal(x.t, driver.Success, r)
	return b
}

// Every result of every call on the way: what does not speak against the text leads to the text.
func TestLadderFailures(t *testing.T) {
	ofText := map[driver.Result]bool{driver.InvalidPTX: true, driver.UnsupportedPTXVersion: true, driver.InvalidSource: true}
	context := map[driver.Result]bool{driver.OutOfMemory: true, driver.NotInitialized: true, driver.Deinitialized: true,
		driver.InvalidContext: true}
	var x *loading
	n := 0
	for r := driver.Result(1); r < 1000; r++ {
		if strings.HasPrefix(r.Name(), "CUresult") {
			continue
		}
		for _, step := range []struct {
			call    string
			results []driver.Result
			cached  bool
			loads   bool // if r is not sticky
		}{
			{"CtxSynchronize", []driver.Result{r}, false, false},
			{"Compile", []driver.Result{r}, false, !ofText[r]},
			{"ModuleLoadData", []driver.Result{r}, false, !context[r]}, // of the new binary: then the text
			{"ModuleLoadData", []driver.Result{r}, true, !context[r]},  // of the kept binary: then a new one
			{"ModuleLoadData", []driver.Result{r, r}, false, false},
			{"ModuleLoadData", []driver.Result{r, r, r}, true, false},
		} {
			what := fmt.Sprintf("%s of %s %d times, cached: %t", r.Name(), step.call, len(step.results), step.cached)
			if x == nil || x.p.poison.Load() != nil {
				x = newLoading(t, softgpu.Config{}, t.TempDir())
			}
			n++
			text := fmt.Sprintf("%s// %d", addText, n) // which the cache does not know
			if step.cached {
				require.NoError(t, x.try(text), what)
			}
			x.fail.set(step.call, step.results...)
			err := x.try(text)
			x.fail.set(step.call)
			if step.loads && !r.Sticky() {
				require.NoError(t, err, what)
				continue
			}
			var e *Error
			require.ErrorAs(t, err, &e, what)
			require.Equal(t, int(r), e.Code, what)
			require.Contains(t, err.Error(), "module of add", what)
			if r.Sticky() {
				require.ErrorIs(t, err, ErrContextPoisoned, what)
				require.ErrorIs(t, x.try(text), ErrContextPoisoned, what)
			} else {
				require.NoError(t, x.try(text), what)
			}
		}
	}
}

// What the driver's compiler refuses comes with its log, from the linker as from the loader.
func TestCompilerRefuses(t *testing.T) {
	for _, dir := range []string{noCache, t.TempDir()} {
		x := newLoading(t, softgpu.Config{}, dir)
		err := x.try(newText)
		var e *Error
		require.ErrorAs(t, err, &e)
		require.Equal(t, "CUDA_ERROR_INVALID_PTX", e.Name)
		require.ErrorIs(t, err, compute.ErrArgument)
		require.Contains(t, e.Log, ".version 7.8")
		for _, s := range []string{"module of early", "sm_80", "sm_90", ".version 7.8"} {
			require.Contains(t, err.Error(), s)
		}
		require.Len(t, entries(t, dir), 0)
		require.NoError(t, x.try(addText))

		old := newLoading(t, softgpu.Config{Version: 11080}, dir)
		err = old.try(strings.Replace(addText, ".version 7.0", ".version 8.4", 1))
		require.ErrorAs(t, err, &e)
		require.Equal(t, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", e.Name)
		require.ErrorIs(t, err, compute.ErrUnsupported)
		require.NotEmpty(t, e.Log)
	}
}

func TestCitedLines(t *testing.T) {
	text := []byte("one\n\ttwo\nthree\n")
	log := "ptxas application ptx input, line 2; error   : Unknown symbol 'x'\nline 99; error\nline 2; again\n" +
		"line 1; warning\nline 0"
	require.Equal(t, "line 2: two\nline 1: one", cited(log, text))
	require.Empty(t, cited("no lines", text))
	require.Empty(t, cited("line 99999999999999999999", text))
	var many strings.Builder
	for i := range 30 {
		fmt.Fprintf(&many, "line %d\n", i+1)
	}
	require.Len(t, strings.Split(cited(many.String(), []byte(strings.Repeat("x\n", 30))), "\n"), 8)
}

// PTX that the device cannot run does not reach the driver.
func TestTargets(t *testing.T) {
	for _, c := range []struct {
		sm     int
		target string
		ok     bool
	}{
		{80, "sm_80", true}, {80, "sm_70", true}, {80, "sm_86", false}, {80, "sm_90", false}, {90, "sm_90", true},
		{90, "sm_90a", true}, {90, "sm_100", false}, {100, "sm_90", true}, {100, "sm_90a", false}, {100, "sm_100a", true},
		{100, "sm_100f", true}, {103, "sm_100f", true}, {103, "sm_100a", false}, {120, "sm_100f", false},
		{121, "sm_120f", true},
	} {
		x := newLoading(t, softgpu.Config{SM: c.sm, Version: 13000}, noCache)
		text := strings.NewReplacer(".target sm_80", ".target "+c.target, ".version 7.0", ".version 9.0").Replace(addText)
		err := x.try(text)
		if c.ok {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.ErrorIs(t, err, compute.ErrUnsupported, "%+v", c)
		require.Contains(t, err.Error(), c.target+",")
		require.Contains(t, err.Error(), fmt.Sprintf("sm_%d", c.sm))
		require.Zero(t, x.gpu.Calls()["ModuleLoadData"]+x.gpu.Calls()["CtxSynchronize"])
	}
	x := newLoading(t, softgpu.Config{}, noCache)
	m, err := parse.Module("", []byte(addText))
	require.NoError(t, err)
	m.AddressSize = 32
	_, err = x.load(source{text: []byte(m.String()), m: m})
	require.ErrorIs(t, err, compute.ErrUnsupported)
}

// A fault that came before is charged to its kernel, not to the load that the driver would report it by.
func TestEarlierFaultIsCharged(t *testing.T) {
	x := newLoading(t, softgpu.Config{}, t.TempDir())
	m, err := x.load(sourceOf(t, addText, driver.JIT{}))
	require.NoError(t, err)
	x.retire(m)
	require.NoError(t, x.p.enter())
	f, r := x.gpu.ModuleGetFunction(m, "add")
	require.Equal(t, driver.Success, r)
	l := driver.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: make([]byte, 16)}
	binary.LittleEndian.PutUint64(l.Params, 0xbad0)
	binary.LittleEndian.PutUint32(l.Params[12:], 32)
	s, r := x.gpu.StreamCreate(0)
	require.Equal(t, driver.Success, r)
	require.NoError(t, x.p.launched("add", &l, s, x.gpu.LaunchKernel(f, &l, s), false))
	x.p.leave()

	calls := x.counts()
	err = x.try(strings.Replace(addText, "add(", "another(", 1))
	var dead *PoisonedError
	require.ErrorAs(t, err, &dead)
	require.ErrorIs(t, err, compute.ErrDeviceLost)
	require.Equal(t, "cuCtxSynchronize", dead.Cause.Call)
	require.Equal(t, []LaunchRecord{{0, "add", l.Grid, l.Block}}, dead.Launches)
	require.Contains(t, err.Error(), "work submitted before module of another was loaded")
	require.Contains(t, err.Error(), "0xbad0")
	require.ErrorIs(t, x.try(addText), ErrContextPoisoned)
	require.Zero(t, calls("ModuleLoadData")+calls("Compile"))
	x.p.enterDead()
	x.gpu.StreamDestroy(s)
	x.p.leave()
}

// While a graph is captured nothing may wait for the context, nor be unloaded.
func TestLoadDuringCapture(t *testing.T) {
	x := newLoading(t, softgpu.Config{}, t.TempDir())
	require.NoError(t, x.try(addText)) // and is retired
	x.p.capture.RLock()
	calls := x.counts()
	require.NoError(t, x.try(addText))
	require.Zero(t, calls("CtxSynchronize")+calls("ModuleUnload"))
	require.Equal(t, 2, x.gpu.Live().Modules)
	x.p.capture.RUnlock()
	require.NoError(t, x.try(addText))
	require.Equal(t, 1, calls("CtxSynchronize"))
	require.Equal(t, 2, calls("ModuleUnload"))
	require.Equal(t, 1, x.gpu.Live().Modules)
}

func TestConcurrentLoads(t *testing.T) {
	r := randomSource(t)
	dir := t.TempDir()
	seed, all := r.Uint64(), [2]*loading{newLoading(t, softgpu.Config{}, dir), newLoading(t, softgpu.Config{}, dir)}
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	sources := make([]source, 5)
	for i := range sources {
		sources[i] = sourceOf(t, strings.Replace(addText, "add(", fmt.Sprintf("add%d(", i), 1), driver.JIT{})
	}
	for g := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(g)))
			for range 15 {
				x := all[r.IntN(2)]
				s := sources[r.IntN(len(sources))]
				m, err := x.open(s)
				if err != nil {
					failed.Store(&err)
					return
				}
				m.release()
				if r.IntN(4) == 0 {
					for _, f := range entries(t, dir) {
						_ = os.Truncate(f, int64(r.IntN(200)))
					}
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		require.NoError(t, *err)
	}
}

// Equal modules have equal texts, and so one entry.
func TestTextIsTheKey(t *testing.T) {
	x := newLoading(t, softgpu.Config{}, t.TempDir())
	texts := map[string]bool{}
	for range 3 {
		m, err := parse.Module("", []byte(addText))
		require.NoError(t, err)
		_, err = x.load(source{text: []byte(m.Clone().String()), m: m})
		require.NoError(t, err)
		texts[m.String()] = true
	}
	require.Len(t, texts, 1)
	require.EqualValues(t, 1, x.gpu.Calls()["Compile"])
	require.False(t, relocatable(sourceOf(t, registersText, driver.JIT{}).m))
	require.True(t, relocatable(&ir.Module{Funcs: []*ir.Func{{}}}))
}
