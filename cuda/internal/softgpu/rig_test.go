package softgpu_test

import (
	"encoding/binary"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"github.com/wavelane/wavelane/internal/testseed"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cuda/internal/driver"
	"github.com/wavelane/wavelane/cuda/internal/softgpu"
)

// random returns the random numbers of a test.
func random(t testing.TB) *rand.Rand { return testseed.Rand(t) }

// kernelText is a module with what the tests run.
const kernelText = `.version 7.0
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

// asserted calls what CUDA's assert calls.
.extern .func __assertfail(.param .b64 message, .param .b64 file, .param .b32 line, .param .b64 function, .param .b64 size);
.visible .entry asserted()
{
	.reg .b64 %rd<2>;
	mov.u64 %rd1, 0;
	{
	.param .b64 p0;
	.param .b64 p1;
	.param .b32 p2;
	.param .b64 p3;
	.param .b64 p4;
	st.param.b64 [p0], %rd1;
	st.param.b64 [p1], %rd1;
	st.param.b32 [p2], 7;
	st.param.b64 [p3], %rd1;
	st.param.b64 [p4], 1;
	call.uni __assertfail, (p0, p1, p2, p3, p4);
	}
	ret;
}

// stuck: waits for 64 threads
.visible .entry stuck()
{
	bar.sync 1, 64;
	ret;
}

// dynamic: uses dynamic shared memory
.extern .shared .align 4 .b8 space[];
.visible .entry dynamic(.param .u64 x, .param .u32 at)
{
	.reg .b32 %r<4>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [x];
	ld.param.u32 %r1, [at];
	mov.u32 %r2, space;
	add.u32 %r2, %r2, %r1;
	st.shared.u32 [%r2], 9;
	ld.shared.u32 %r3, [%r2];
	st.global.u32 [%rd1], %r3;
	ret;
}

// clash: every thread writes its own number to the same place
.visible .entry clash(.param .u64 x)
{
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [x];
	mov.u32 %r1, %tid.x;
	st.global.u32 [%rd1], %r1;
	ret;
}

// branch: decides by what x points to
.visible .entry branch(.param .u64 x)
{
	.reg .pred %p<2>;
	.reg .b32 %r<2>;
	.reg .b64 %rd<2>;
	ld.param.u64 %rd1, [x];
	ld.global.u32 %r1, [%rd1];
	setp.eq.u32 %p1, %r1, 0;
	@%p1 bra done;
	st.global.u32 [%rd1], 0;
done:
	ret;
}

// mixed: parameters of all sizes
.visible .entry mixed(.param .u8 a, .param .u16 b, .param .u64 c, .param .u8 d, .param .align 16 .b8 e[24], .param .f32 f)
{
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
	left   bool // objects are left to the last release
}

// abandon leaves what there is to the last release of the context.
func (r *rig) abandon() { r.left = true }

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
	r.module = r.load(kernelText)
	t.Cleanup(func() {
		g.ModuleUnload(r.module)
		r.ok(g.PrimaryCtxRelease(0))
		r.ok(g.CtxSetCurrent(0))
		runtime.UnlockOSThread()
		if !r.left {
			require.NoError(t, g.Leaks())
		}
		require.Zero(t, g.Live())
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

// needThreads leaves a test out where OS threads cannot be told apart: there is one device then, with one current context.
func needThreads(t testing.TB) {
	t.Helper()
	if !softgpu.Threads {
		t.Skip("no threads to tell apart on ", runtime.GOOS)
	}
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
