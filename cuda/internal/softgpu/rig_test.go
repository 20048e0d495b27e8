package softgpu_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// random is a source of random numbers; WAVELANE_SEED replays a run.
func random(t testing.TB) *rand.Rand {
	t.Helper()
	seed := rand.Uint64()
	if s := os.Getenv("WAVELANE_SEED"); s != "" {
		v, err := strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
		seed = v
	}
	t.Logf("WAVELANE_SEED=%#x", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

// kernels is a module with what the tests run.
const kernels = `.version 7.0
.target sm_80
.address_size 64

.global .align 4 .u32 table[4] = {1, 2, 3, 4};

// add: x[i] += a for i < n
.visible .entry add(.param .u64 x, .param .u32 n, .param .u32 a)
{
	.reg .pred %p<2>;
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [n];
	ld.param.u32 %r2, [a];
	mov.u32 %r3, %tid.x;
	mov.u32 %r4, %ctaid.x;
	mov.u32 %r5, %ntid.x;
	mad.lo.u32 %r3, %r4, %r5, %r3;
	setp.ge.u32 %p1, %r3, %r1;
	@%p1 bra done;
	mul.wide.u32 %rd2, %r3, 4;
	add.u64 %rd1, %rd1, %rd2;
	ld.global.u32 %r6, [%rd1];
	add.u32 %r6, %r6, %r2;
	st.global.u32 [%rd1], %r6;
done:
	ret;
}

// slow: x[0] = v after n turns
.visible .entry slow(.param .u64 x, .param .u32 n, .param .u32 v)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [n];
	ld.param.u32 %r2, [v];
turn:
	sub.u32 %r1, %r1, 1;
	setp.ne.u32 %p1, %r1, 0;
	@%p1 bra turn;
	st.global.u32 [%rd1], %r2;
	ret;
}

// store: *(u32 *)x = 1
.visible .entry store(.param .u64 x)
{
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [x];
	st.global.u32 [%rd1], 1;
	ret;
}

.visible .entry forever()
{
turn:
	bra turn;
}

.visible .entry trapped()
{
	trap;
}

.visible .entry bounded() .maxntid 64
{
	ret;
}

.visible .entry exact() .reqntid 32, 2
{
	ret;
}

.visible .entry static_shared(.param .u32 v)
{
	.shared .align 4 .b8 tile[1024];
	.reg .b32 %r<2>;
	ld.param.u32 %r1, [v];
	st.shared.u32 [tile], %r1;
	ret;
}
`

// rig is a driver with a context that is current on the test's thread.
type rig struct {
	*softgpu.GPU
	t      testing.TB
	ctx    driver.Context
	module driver.Module
}

// newRig makes one, on a thread of its own until the test ends, and loads the kernels. Nothing may have leaked at the end.
func newRig(t testing.TB, cfg softgpu.Config) *rig {
	t.Helper()
	g := softgpu.New(cfg)
	runtime.LockOSThread()
	r := &rig{GPU: g, t: t}
	var res driver.Result
	r.ctx, res = g.PrimaryCtxRetain(0)
	r.ok(res)
	r.ok(g.CtxSetCurrent(r.ctx))
	r.module = r.load(kernels)
	t.Cleanup(func() {
		g.ModuleUnload(r.module)
		r.ok(g.PrimaryCtxRelease(0))
		r.ok(g.CtxSetCurrent(0))
		runtime.UnlockOSThread()
		require.NoError(t, g.Leaks())
	})
	return r
}

func (r *rig) ok(res driver.Result) {
	r.t.Helper()
	require.Equal(r.t, "CUDA_SUCCESS", res.Name(), r.Detail(r.ctx))
}

func (r *rig) is(want, got driver.Result) {
	r.t.Helper()
	require.Equal(r.t, want.Name(), got.Name(), r.Detail(r.ctx))
}

func (r *rig) load(text string) driver.Module {
	r.t.Helper()
	o := driver.JIT{}
	m, res := r.ModuleLoadData([]byte(text), &o)
	require.Equal(r.t, driver.Success, res, o.ErrorLog)
	return m
}

func (r *rig) fn(name string) driver.Function {
	r.t.Helper()
	f, res := r.ModuleGetFunction(r.module, name)
	r.ok(res)
	return f
}

func (r *rig) alloc(n int) driver.Ptr {
	r.t.Helper()
	p, res := r.MemAlloc(uint64(n))
	r.ok(res)
	return p
}

func (r *rig) free(p ...driver.Ptr) {
	r.t.Helper()
	for _, p := range p {
		r.ok(r.MemFree(p))
	}
}

// pinned is pinned memory of n words.
func (r *rig) pinned(n int) ([]uint32, unsafe.Pointer) {
	r.t.Helper()
	p, res := r.MemHostAlloc(uint64(4 * n))
	r.ok(res)
	return unsafe.Slice((*uint32)(p), n), p
}

func (r *rig) stream() driver.Stream {
	r.t.Helper()
	s, res := r.StreamCreate(0)
	r.ok(res)
	return s
}

func (r *rig) event(timing bool) driver.Event {
	r.t.Helper()
	e, res := r.EventCreate(timing)
	r.ok(res)
	return e
}

// block is a parameter block of 64-bit and 32-bit numbers.
func block(v ...any) []byte {
	var b []byte
	for _, v := range v {
		switch v := v.(type) {
		case driver.Ptr:
			b = binary.LittleEndian.AppendUint64(b, uint64(v))
		case int:
			b = binary.LittleEndian.AppendUint32(b, uint32(v))
		}
	}
	return b
}

// one is a launch of a single block.
func one(threads int, params ...any) *driver.Launch {
	return &driver.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{uint32(threads), 1, 1}, Params: block(params...)}
}

// text is a module of its own around a body of a kernel k.
func text(version, target, body string) string {
	return strings.Join([]string{".version " + version, ".target " + target, ".address_size 64",
		".visible .entry k()", "{", body, "ret;", "}", ""}, "\n")
}
