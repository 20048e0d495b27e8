package sim_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/sim"
)

// prelude begins a kernel k with pointers as parameters, in %a0, %a1 and so on; %t is the thread. Registers of all kinds are
// declared.
func prelude(shared, n int) string {
	var s strings.Builder
	s.WriteString(".visible .entry k(")
	for i := range n {
		fmt.Fprintf(&s, "%s.param .u64 p%d", map[bool]string{true: ", "}[i > 0], i)
	}
	s.WriteString(") {\n.reg .pred %p<16>;\n.reg .b16 %h<16>;\n.reg .b32 %r<300>;\n.reg .f32 %f<300>;\n" +
		".reg .b64 %rd<64>, %a<8>;\n.reg .b32 %t;\n")
	if shared > 0 {
		fmt.Fprintf(&s, ".shared .align 1024 .b8 sm[%d];\n", shared)
	}
	s.WriteString("mov.u32 %t, %tid.x;\n")
	for i := range n {
		fmt.Fprintf(&s, "ld.param.u64 %%a%d, [p%d];\n", i, i)
	}
	return s.String()
}

// fillShared copies n bytes from %a0 to shared memory, 4 a thread and iteration, by 32 threads.
func fillShared(n int) string {
	var s strings.Builder
	s.WriteString("mad.wide.u32 %rd60, %t, 4, %a0;\nmov.u32 %r290, sm;\nmad.lo.u32 %r291, %t, 4, %r290;\n")
	for i := 0; i < n; i += 128 {
		fmt.Fprintf(&s, "ld.global.u32 %%r292, [%%rd60+%d];\nst.shared.u32 [%%r291+%d], %%r292;\n", i, i)
	}
	return s.String() + "bar.sync 0;\n"
}

func TestLdmatrix(t *testing.T) {
	rng := ptxtest.Random(t)
	src := make([]byte, 4096)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	for _, x := range []int{1, 2, 4} {
		for _, trans := range []string{"", ".trans"} {
			rows := rng.Perm(256) // where each row of 16 bytes lies
			table := make([]byte, 128)
			for i := range 32 {
				put(table, ir.U32, i, uint64(16*rows[i]))
			}
			code := prelude(4096, 3) + fillShared(4096) + fmt.Sprintf(`
	mad.wide.u32 %%rd0, %%t, 4, %%a1;
	ld.global.u32 %%r0, [%%rd0];
	add.u32 %%r0, %%r0, %%r290;
	ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 %s, [%%r0];
	mad.wide.u32 %%rd1, %%t, 4, %%a2;
`, x, trans, list("%r", 10, x))
			for i := range x {
				code += fmt.Sprintf("st.global.u32 [%%rd1+%d], %%r%d;\n", 128*i, 10+i)
			}
			r := newRig(t, sim.Config{Checks: sim.AllChecks}, code+"ret;\n}\n").bytes(src).bytes(table).out(128 * x)
			require.NoError(t, r.launch(threads(32)))
			got := r.read(2)
			for m := range x {
				for row := range 8 {
					for col := range 8 {
						lane, half := row*4+col/2, col%2
						if trans != "" {
							lane, half = col*4+row/2, row%2
						}
						from := 16*rows[8*m+row] + 2*col
						require.Equal(t, src[from:from+2], got[(m*32+lane)*4+2*half:][:2], "x%d%s matrix %d row %d col %d", x, trans, m, row, col)
					}
				}
			}
		}
	}
}

// stmatrix puts back what ldmatrix has loaded; movmatrix transposes.
func TestStmatrixMovmatrix(t *testing.T) {
	rng := ptxtest.Random(t)
	src := make([]byte, 512)
	for i := range src {
		src[i] = byte(rng.Uint32())
	}
	code := prelude(1024, 2) + fillShared(512) + `
	mad.lo.u32 %r0, %t, 16, %r290;
	ldmatrix.sync.aligned.m8n8.x4.shared::cta.b16 {%r1, %r2, %r3, %r4}, [%r0];
	movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r1;
	cvta.shared.u64 %rd2, sm;
	mul.wide.u32 %rd3, %t, 16;
	add.u64 %rd2, %rd2, %rd3;
	stmatrix.sync.aligned.m8n8.x2.trans.b16 [%rd2+512], {%r1, %r2};
	add.u32 %r0, %r0, 768;
	stmatrix.sync.aligned.m8n8.x2.shared.b16 [%r0], {%r3, %r4};
	bar.sync 0;
	mad.wide.u32 %rd1, %t, 4, %a1;
`
	for i := range 4 {
		code += fmt.Sprintf("ld.shared.u32 %%r5, [%%r291+%d];\nst.global.u32 [%%rd1+%d], %%r5;\n", 512+128*i, 128*i)
	}
	r := newRig(t, sim.Config{Checks: sim.AllChecks}, code+"ret;\n}\n").bytes(src).out(512)
	require.NoError(t, r.launch(threads(32)))
	got := r.read(1)
	for row := range 8 {
		for col := range 8 {
			at := func(m, r, c int) int { return m*128 + r*16 + c*2 }
			require.Equal(t, src[at(0, row, col):][:2], got[at(0, row, col):][:2], "transposed twice")
			require.Equal(t, src[at(1, row, col):][:2], got[at(1, col, row):][:2], "transposed once")
			for m := 2; m < 4; m++ {
				require.Equal(t, src[at(m, row, col):][:2], got[at(m, row, col):][:2])
			}
		}
	}
}

// Rows that are stored to one place twice race unless they are the same.
func TestStmatrixTwice(t *testing.T) {
	code := func(value string) string {
		return body(`.shared .align 16 .b8 s[128];
	mov.u32 %r0, s; and.b32 %r1, %t, 3; mad.lo.u32 %r1, %r1, 16, %r0;
	` + value + `
	stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r1], {%r2};
	bar.sync 0; and.b32 %r3, %t, 15; mad.lo.u32 %r3, %r3, 4, %r0; ld.shared.u32 %r4, [%r3]; st.global.u32 [%mine], %r4;`)
	}
	got, _, err := launch(t, sim.Config{Checks: sim.AllChecks}, code("and.b32 %r2, %t, 15;"), threads(32), 32)
	require.NoError(t, err)
	for i, v := range got {
		require.EqualValues(t, i&15, v)
	}
	fault(t, sim.Config{Checks: sim.AllChecks}, sim.Race, code("mov.u32 %r2, %t;"), threads(32))
}

// What ldmatrix loads is what mma multiplies: A by rows, B by columns without .trans and by rows with it.
func TestLdmatrixMMA(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, trans := range []bool{false, true} {
		a, va := matrix(rng, ir.F16, 16*16)
		b, vb := matrix(rng, ir.F16, 16*8)
		// B's addresses: without .trans matrix i holds columns 0-7 along k from 8i on; with it rows 8i to 8i+7.
		want := byRows(vb, 16, 8)
		bAddr := "and.b32 %r1, %t, 7;\nmul.lo.u32 %r1, %r1, 32;\nshr.u32 %r2, %t, 3;\nand.b32 %r2, %r2, 1;\n" +
			"mad.lo.u32 %r1, %r2, 16, %r1;"
		op := ""
		if trans {
			want = vb
			bAddr = "and.b32 %r1, %t, 15;\nmul.lo.u32 %r1, %r1, 16;"
			op = ".trans"
		}
		code := prelude(768, 2) + fillShared(768) + `
	and.b32 %r1, %t, 15;
	shr.u32 %r2, %t, 4;
	mul.lo.u32 %r1, %r1, 32;
	mad.lo.u32 %r1, %r2, 16, %r1;
	add.u32 %r1, %r1, %r290;
	ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, [%r1];
	` + bAddr + `
	add.u32 %r1, %r1, %r290;
	ldmatrix.sync.aligned.m8n8.x2` + op + `.shared.b16 {%r14, %r15}, [%r1+512];
	mov.f32 %f0, 0f00000000;
	mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r10, %r11, %r12, %r13}, {%r14, %r15}, {%f0, %f0,
		%f0, %f0};
	shr.u32 %r3, %t, 2;
	and.b32 %r4, %t, 3;
	mul.lo.u32 %r3, %r3, 32;
	mad.lo.u32 %r3, %r4, 8, %r3;
	cvt.u64.u32 %rd0, %r3;
	add.u64 %rd0, %rd0, %a1;
	st.global.v2.f32 [%rd0], {%f1, %f2};
	st.global.v2.f32 [%rd0+256], {%f3, %f4};
	ret;
}
`
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, code).bytes(append(a, b...)).out(512)
		require.NoError(t, r.launch(threads(32)))
		d, size := gemm(16, 8, 16, va, want, nil)
		near(t, r.read(1), ir.F32, d, size, op)
	}
}

func TestLdmatrixFaults(t *testing.T) {
	run := func(code string, n int) error {
		r := newRig(t, sim.Config{Checks: sim.AllChecks}, prelude(512,
			1)+"mov.u32 %r0, sm;\nmad.lo.u32 %r0, %t, 16, %r0;\n"+code+"ret;\n}\n")
		return r.out(4).launch(threads(n))
	}
	const x4 = "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r0];\n"
	require.NoError(t, run(x4, 32)) // nothing has been written there, and nothing depends on it
	faults(t, run("add.u32 %r0, %r0, 8;\n"+x4, 32), sim.Misaligned)
	faults(t, run("add.u32 %r0, %r0, 16;\n"+x4, 32), sim.OutOfBounds)
	faults(t, run("ldmatrix.sync.aligned.m8n8.x1.b16 {%r1}, [%a0];\n", 32), sim.BadOperand)
	faults(t, run(x4, 16), sim.WarpSync)
	faults(t, run("setp.lt.u32 %p0, %t, 9;\n@%p0 bra L;\n"+x4+"L:\n", 32), sim.WarpSync)
	f := faults(t, run(x4+"cvt.u64.u32 %rd0, %r1;\nadd.u64 %rd0, %a0, %rd0;\nld.global.u32 %r1, [%rd0];\n", 32), sim.Uninitialized)
	require.NotNil(t, f.Other)
	require.Contains(t, f.Other.Instr, "ldmatrix")
}
