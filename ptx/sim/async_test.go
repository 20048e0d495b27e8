package sim_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// copyIn issues cp.async of 16 bytes a thread from %a0 to shared memory; %r1 is the destination, %rd1 the source.
const copyIn = `
	mov.u32 %r0, sm;
	mad.lo.u32 %r1, %t, 16, %r0;
	mad.wide.u32 %rd1, %t, 16, %a0;
	mad.wide.u32 %rd2, %t, 16, %a1;
	cp.async.cg.shared.global [%r1], [%rd1], 16;
`

const copyOut = `
	ld.shared.v4.u32 {%r2, %r3, %r4, %r5}, [%r1];
	st.global.v4.u32 [%rd2], {%r2, %r3, %r4, %r5};
	ret;
}
`

func asyncRun(t *testing.T, cfg sim.Config, code string, n int) ([]byte, []byte, error) {
	rng := ptxtest.Random(t)
	src := make([]byte, 16*n)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	r := newRig(t, cfg, prelude(16*n+64, 2)+code).bytes(src).bytes(make([]byte, 16*n))
	err := r.launch(threads(n))
	if err != nil {
		return nil, nil, err
	}
	return src, r.read(1), nil
}

func TestCpAsync(t *testing.T) {
	const wait = "cp.async.commit_group;\ncp.async.wait_group 0;\n"
	for _, cfg := range checkedSeeds(5) {
		for _, w := range []string{wait, "cp.async.wait_all;\n"} {
			src, got, err := asyncRun(t, cfg, copyIn+w+copyOut, 64)
			require.NoError(t, err)
			require.Equal(t, src, got)
		}
		// another thread's bytes, after a barrier
		src, got, err := asyncRun(t, cfg, copyIn+wait+"bar.sync 0;\nxor.b32 %r1, %r1, 16;\n"+copyOut, 64)
		require.NoError(t, err)
		for i := range got {
			require.Equal(t, src[i^16], got[i])
		}
	}
}

// Bytes beyond src-size, and all with ignore-src, are zero, and the source need not exist there.
func TestCpAsyncSourceSize(t *testing.T) {
	head := prelude(1024, 2) + "mov.u32 %r0, sm;\nmad.lo.u32 %r1, %t, 16, %r0;\nmad.wide.u32 %rd1, %t, 4, %a0;\n" +
		"mad.wide.u32 %rd2, %t, 16, %a1;\n"
	code := head + `
	rem.u32 %r6, %t, 5;
	cp.async.ca.shared.global [%r1], [%rd1], 4, %r6;
	setp.eq.u32 %p1, %r6, 3;
	cp.async.ca.shared.global [%r1+4], [%rd1], 4, !%p1;
	cp.async.ca.shared.global [%r1+8], [%rd1+1048576], 8, 0;
	cp.async.wait_all;
` + copyOut
	src := make([]byte, 4*32)
	for i := range src {
		src[i] = byte(i + 1)
	}
	for _, cfg := range checkedSeeds(3) {
		r := newRig(t, cfg, code).bytes(src).bytes(make([]byte, 16*32))
		require.NoError(t, r.launch(threads(32)))
		got := r.read(1)
		for lane := range 32 {
			want := make([]byte, 16)
			copy(want[:lane%5], src[4*lane:])
			if lane%5 == 3 {
				copy(want[4:8], src[4*lane:])
			}
			require.Equal(t, want, got[16*lane:][:16], "lane %d", lane)
		}
	}
	r := newRig(t, sim.Config{}, head+"cp.async.ca.shared.global [%r1], [%rd1], 4, 5;\ncp.async.wait_all;\n"+copyOut)
	faults(t, r.bytes(src).bytes(make([]byte, 512)).launch(threads(32)), sim.BadOperand)
	g := sim.New(sim.Config{})
	odd := module(t, ".visible .entry k() {\n.reg .b32 %r<2>;\n.reg .b64 %rd<2>;\n"+
		"cp.async.ca.shared.global [%r1], [%rd1], 8;\nret;\n}\n")
	odd.Funcs[0].Body[0].Args[2].Bits = 12
	_, err := g.Load(odd)
	require.ErrorIs(t, err, compute.ErrArgument)
}

func TestCpAsyncHazards(t *testing.T) {
	const commit, wait0, wait1 = "cp.async.commit_group;\n", "cp.async.wait_group 0;\n", "cp.async.wait_group 1;\n"
	again := "cp.async.cg.shared.global [%r1+16], [%rd1], 16;\n"
	for _, cfg := range checkedSeeds(4) {
		if cfg.Checks == 0 {
			continue
		}
		hazard := func(code string) *sim.Fault {
			_, _, err := asyncRun(t, cfg, copyIn+code, 32)
			return faults(t, err, sim.AsyncHazard)
		}
		fine := func(code string) {
			_, _, err := asyncRun(t, cfg, copyIn+code, 32)
			require.NoError(t, err)
		}
		// read before the wait
		f := hazard(commit + copyOut)
		require.Contains(t, f.Instr, "ld.shared")
		require.Contains(t, f.Other.Instr, "cp.async.cg")
		require.Positive(t, f.Other.Pos.Line)
		// waited for too few groups; a wait without a commit waits for nothing
		hazard(commit + wait1 + copyOut)
		hazard(wait0 + copyOut)
		fine(commit + wait0 + copyOut)
		// the same destination again, and the next one: every other thread, so that they do not meet
		hazard(commit + "cp.async.cg.shared.global [%r1], [%rd1], 16;\n" + commit + wait0 + copyOut)
		half := "and.b32 %r9, %t, 1;\nsetp.eq.u32 %p9, %r9, 0;\n@%p9 "
		hazard(commit + half + again + commit + wait1 + "@%p9 ld.shared.u32 %r9, [%r1+16];\n" + wait0 + copyOut)
		// source changed in flight, and after the wait
		hazard(commit + "st.global.u32 [%rd1+12], %r1;\n" + wait0 + copyOut)
		fine(commit + wait0 + "st.global.u32 [%rd1+12], %r1;\n" + copyOut)
		fine(commit + "ld.global.u32 %r8, [%rd1];\n" + wait0 + copyOut)
		// destination overwritten in flight
		hazard(commit + "st.shared.u32 [%r1+12], %r1;\n" + wait0 + copyOut)
		// never waited for
		f = hazard(commit + "ret;\n}\n")
		require.Contains(t, f.Instr, "cp.async.cg")
		hazard("ret;\n}\n")
		// the wait of one thread says nothing to another without a barrier
		_, _, err := asyncRun(t, cfg, copyIn+commit+wait0+"xor.b32 %r1, %r1, 512;\n"+copyOut, 64)
		var fault *sim.Fault
		require.ErrorAs(t, err, &fault)
		require.Contains(t, []sim.FaultKind{sim.Race, sim.AsyncHazard}, fault.Kind, "%v", err)
	}
	// misaligned
	_, _, err := asyncRun(t, sim.Config{}, copyIn+"cp.async.cg.shared.global [%r1+8], [%rd1], 16;\ncp.async.wait_all;\n"+
		"ret;\n}\n", 32)
	require.Equal(t, ir.SharedSpace, faults(t, err, sim.Misaligned).Space)
	_, _, err = asyncRun(t, sim.Config{}, copyIn+"cp.async.cg.shared.global [%r1], [%rd1+16], 16;\ncp.async.wait_all;\n"+
		"ret;\n}\n", 32)
	faults(t, err, sim.OutOfBounds)
}

// A pipeline with two stages: while one is summed, the next is on its way. wait and barriers are parameters, so that each can
// be missing.
func pipeline(wait, before, after string) string {
	return prelude(2*512, 2) + fmt.Sprintf(`
	mov.u32 %%r0, sm;
	mad.lo.u32 %%r1, %%t, 4, %%r0;
	mad.wide.u32 %%rd1, %%t, 4, %%a0;
	xor.b32 %%r2, %%t, 127;
	mad.lo.u32 %%r2, %%r2, 4, %%r0;
	mov.u32 %%r3, 0;
	mov.u32 %%r4, 0;
	cp.async.ca.shared.global [%%r1], [%%rd1], 4;
	cp.async.commit_group;
LOOP:
	add.u32 %%r3, %%r3, 1;
	setp.lt.u32 %%p0, %%r3, 8;
	@!%%p0 bra LAST;
	xor.b32 %%r1, %%r1, 512;
	add.u64 %%rd1, %%rd1, 512;
	cp.async.ca.shared.global [%%r1], [%%rd1], 4;
LAST:
	cp.async.commit_group;
	%s
	%s
	ld.shared.u32 %%r5, [%%r2];
	add.u32 %%r4, %%r4, %%r5;
	xor.b32 %%r2, %%r2, 512;
	%s
	@%%p0 bra LOOP;
	mad.wide.u32 %%rd2, %%t, 4, %%a1;
	st.global.u32 [%%rd2], %%r4;
	ret;
}
`, wait, before, after)
}

func TestCpAsyncPipeline(t *testing.T) {
	rng := ptxtest.Random(t)
	src := make([]byte, 8*512)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	run := func(cfg sim.Config, code string) ([]byte, error) {
		r := newRig(t, cfg, code).bytes(src).out(512)
		if err := r.launch(threads(128)); err != nil {
			return nil, err
		}
		return r.read(1), nil
	}
	want := make([]byte, 512)
	for i := range 128 {
		sum := uint32(0)
		for s := range 8 {
			sum += uint32(int32(number(src[512*s:], ir.S32, 127-i)))
		}
		put(want, ir.U32, i, uint64(sum))
	}
	for _, cfg := range checkedSeeds(20) {
		got, err := run(cfg, pipeline("cp.async.wait_group 1;", "bar.sync 0;", "bar.sync 0;"))
		require.NoError(t, err, "seed %d", cfg.Seed)
		require.Equal(t, want, got)
		if cfg.Checks == 0 {
			continue
		}
		_, err = run(cfg, pipeline("cp.async.wait_group 2;", "bar.sync 0;", "bar.sync 0;"))
		require.Error(t, err, "too late: seed %d", cfg.Seed)
		_, err = run(cfg, pipeline("", "bar.sync 0;", "bar.sync 0;"))
		require.Error(t, err, "no wait: seed %d", cfg.Seed)
		_, err = run(cfg, pipeline("cp.async.wait_group 1;", "", "bar.sync 0;"))
		require.Error(t, err, "no barrier before: seed %d", cfg.Seed)
		_, err = run(cfg, pipeline("cp.async.wait_group 1;", "bar.sync 0;", ""))
		require.Error(t, err, "no barrier after: seed %d", cfg.Seed)
	}
}
