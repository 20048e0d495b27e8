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

// tensorRig loads a kernel for sm_100a with pointers p0, p1 … as parameters and in %a0 …, 128 threads %t, and 48 KiB of shared memory at %s,
// of which the first 16 bytes hold an mbarrier and the address of 512 columns of tensor memory, in %tm. p is whether the thread is the first.
func tensorRig(t testing.TB, cfg sim.Config, pointers int, code string) *rig {
	return changedRig(t, cfg, pointers, code, strings.NewReplacer())
}

// inPairs makes a kernel one of clusters of two blocks, which use tensor memory together.
var inPairs = strings.NewReplacer("cta_group::1", "cta_group::2", "bar.sync 0;", "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
	".b64 [%s];", ".multicast::cluster.b64 [%s], %both;", "@!%first bra WAIT;", "setp.eq.and.u32 %first, %rank, 0, %first;\n@!%first bra WAIT;")

func changedRig(t testing.TB, cfg sim.Config, pointers int, code string, change *strings.Replacer) *rig {
	var b strings.Builder
	b.WriteString(".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(")
	for i := range pointers {
		fmt.Fprintf(&b, "%s.param .u64 p%d", map[bool]string{true: ", "}[i > 0], i)
	}
	b.WriteString(`) {
	.reg .b32 %t, %rank, %s, %tm, %r<200>, %quarter; .reg .b64 %a<8>, %d<20>; .reg .pred %first, %p<4>; .reg .b16 %both;
	.shared .align 1024 .b8 sm[49152];
	mov.b16 %both, 3; mov.u32 %t, %tid.x; mov.u32 %rank, %cluster_ctarank; mov.u32 %s, sm;
	setp.eq.u32 %first, %t, 0;
`)
	for i := range pointers {
		fmt.Fprintf(&b, "\tld.param.u64 %%a%d, [p%d];\n", i, i)
	}
	b.WriteString(`	@%first mbarrier.init.shared::cta.b64 [%s], 1;
	@%first fence.mbarrier_init.release.cluster;
	setp.lt.u32 %p0, %t, 32;
	@%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+8], 512;
	@%p0 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
	bar.sync 0;
	ld.shared.u32 %tm, [%s+8];
	and.b32 %quarter, %t, 96;
	shl.b32 %quarter, %quarter, 16;
	add.u32 %quarter, %quarter, %tm;
`)
	b.WriteString(code)
	b.WriteString(`
	bar.sync 0;
	@%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 512;
	ret;
}
`)
	r := &rig{t: t, gpu: sim.New(cfg)}
	m, err := r.gpu.Load(module(t, change.Replace(b.String())))
	require.NoError(t, err)
	r.k, err = m.Kernel("k")
	require.NoError(t, err)
	return r
}

// TestTensorMoves: what a shape stores, another one loads.
func TestTensorMoves(t *testing.T) {
	rng := ptxtest.Random(t)
	data := make([]byte, 128*16*4)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	word := func(lane, column int) []byte { return data[(lane*16+column)*4:][:4] }
	half := func(lane, column int) []byte { return word(lane, column)[:2] }
	load := `
	mad.wide.u32 %d0, %t, 64, %a0;
` + each(16, "	ld.global.b32 %r{}, [%d0+{4}];\n") + `
	tcgen05.st.sync.aligned.32x32b.x16.b32 [%quarter], ` + list("%r", 0, 16) + `;
	tcgen05.wait::st.sync.aligned;
`
	store := func(n int) string {
		return "tcgen05.wait::ld.sync.aligned;\n" + fmt.Sprintf("mad.wide.u32 %%d0, %%t, %d, %%a1;\n", 4*n) +
			each(n, "	st.global.b32 [%d0+{4}], %r{};\n")
	}
	for _, c := range []struct {
		code  string
		regs  int
		place func(reg, lane int) []byte // of a warp, with lanes from 0
	}{
		{"32x32b.x8.b32 " + list("%r", 0, 8) + ", [%quarter+4]", 8, func(reg, l int) []byte { return word(l, 4+reg) }},
		{"16x64b.x4.b32 " + list("%r", 0, 4) + ", [%quarter+2]", 4, func(reg, l int) []byte { return word(l/4+l%4/2*8, 2+2*reg+l%2) }},
		{"16x128b.x2.b32 " + list("%r", 0, 4) + ", [%quarter]", 4, func(reg, l int) []byte { return word(l/4+reg%2*8, reg/2*4+l%4) }},
		{"16x256b.x2.b32 " + list("%r", 0, 8) + ", [%quarter]", 8, func(reg, l int) []byte { return word(l/4+reg/2%2*8, reg/4*8+l%4*2+reg%2) }},
		{"16x32bx2.x4.b32 " + list("%r", 0, 4) + ", [%quarter+1], 8", 4, func(reg, l int) []byte { return word(l%16, 1+reg+l/16*8) }},
		{"32x32b.x4.pack::16b.b32 " + list("%r", 0, 4) + ", [%quarter]", 4, func(reg, l int) []byte {
			return append(append([]byte(nil), half(l, 2*reg)...), half(l, 2*reg+1)...)
		}},
	} {
		r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 2, load+"tcgen05.ld.sync.aligned."+c.code+";\n"+store(c.regs))
		r.bytes(data).out(128 * 4 * c.regs)
		require.NoError(t, r.launch(threads(128)), c.code)
		got := r.read(1)
		for thread := range 128 {
			for reg := range c.regs {
				base := thread / 32 * 32
				full := data
				data = full[base*64:]
				want := c.place(reg, thread%32)
				data = full
				require.Equal(t, want, got[(thread*c.regs+reg)*4:][:4], "%s: register %d of thread %d", c.code, reg, thread)
			}
		}
	}
}

// each repeats text with {} as i and {4} as 4i.
func each(n int, text string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.NewReplacer("{}", fmt.Sprint(i), "{4}", fmt.Sprint(4*i)).Replace(text))
	}
	return b.String()
}

// tensorForm is a product of a kind.
type tensorForm struct {
	kind       string // with what the opcode says of scales
	m, n       int
	ta, tb, td ir.Type
	a, b, d    uint32 // their numbers in the descriptor
	more       uint32 // of the descriptor
	scales     string // what brings scales to tensor memory, those of A to column 256 and of B to 264, of the second part 16 columns later
	pair       bool   // two blocks
	sparse     bool   // the metadata is in column 256, of the second part in the next one, or with elements of 8 bits 2 columns later
	shift      string // of what the second part is added to
	inMemory   bool   // A is in tensor memory, from column 400 on
	second     int    // what the second part has more in its descriptor
}

// rowsOf puts a matrix of rows into the layout without swizzle, along k: blocks of 8 rows of 16 bytes.
func rowsOf(src []byte, rows, bytes int) []byte {
	out := make([]byte, rows*bytes)
	for row := range rows {
		for at := 0; at < bytes; at += 16 {
			copy(out[at/16*rows*16+row*16:][:16], src[row*bytes+at:][:16])
		}
	}
	return out
}

// halves is how many rows of A, columns of B and columns of D a block has.
func (f *tensorForm) halves() (rows, columns, of int) {
	switch {
	case !f.pair:
		return f.m, f.n, f.n
	case f.m == 128:
		return 64, f.n / 2, f.n / 2
	}
	return f.m / 2, f.n / 2, f.n
}

// kernel adds the products of two parts of A and B along k, with A in shared memory at 1024 and B at 33792, and stores the lanes of D to p2.
// Parameters are those of each block, one after the other.
func (f *tensorForm) kernel() string {
	wide := 32 // bytes along k of a part of B
	if f.sparse {
		wide = 64
	}
	rows, columns, of := f.halves()
	matrix := func(reg string, at, rows, bytes, step int) string {
		desc := uint64(rows*16>>4)<<16 | uint64(128>>4)<<32 | 1<<46
		return fmt.Sprintf("add.u32 %%r0, %%s, %d; shr.u32 %%r0, %%r0, 4; cvt.u64.u32 %s, %%r0; or.b64 %s, %s, %d;\n", at+step*rows*bytes, reg, reg,
			reg, int64(desc))
	}
	idesc := f.d<<4 | f.a<<7 | f.b<<10 | uint32(f.n/8)<<17 | uint32(f.m/16)<<24 | f.more
	product := func(part int, enable string) string {
		a := "%d1"
		if f.inMemory {
			a = fmt.Sprintf("[%%tm+%d]", 400+8*part)
		}
		op, metadata, more := "mma", "", ""
		switch {
		case f.sparse && f.second == 0:
			op, metadata = "mma.sp", fmt.Sprintf("[%%tm+%d], ", 256+2*part)
		case f.sparse:
			op, metadata = "mma.sp", "[%tm+256], "
		case f.scales != "":
			more = fmt.Sprintf("[%%tm+%d], [%%tm+%d], ", 256+16*part, 264+16*part)
		}
		return matrix("%d1", 1024, rows, 32, part) + matrix("%d2", 33792, columns, wide, part) +
			fmt.Sprintf("add.u32 %%r11, %%r10, %d; tcgen05.%s.cta_group::1.kind::%s [%%tm], %s, %%d2, %s%%r11, %s%s;\n",
				part*f.second, op, f.kind, a, metadata, more, enable)
	}
	copied := func(from, to, n int) string {
		return fmt.Sprintf(`
	mul.wide.u32 %%d0, %%t, 16; add.u64 %%d0, %%a%[1]d, %%d0; mad.lo.u32 %%r0, %%t, 16, %%s; mov.u32 %%r1, 0;
COPY%[1]d:
	setp.lt.u32 %%p1, %%r1, %[3]d;
	@!%%p1 bra DONE%[1]d;
	mad.lo.u32 %%r6, %%t, 16, %%r1; setp.lt.u32 %%p2, %%r6, %[3]d;
	@%%p2 ld.global.v4.b32 {%%r2, %%r3, %%r4, %%r5}, [%%d0];
	@%%p2 st.shared.v4.b32 [%%r0+%[2]d], {%%r2, %%r3, %%r4, %%r5};
	add.u64 %%d0, %%d0, 2048; add.u32 %%r0, %%r0, 2048; add.u32 %%r1, %%r1, 2048;
	bra COPY%[1]d;
DONE%[1]d:
`, from, to, n)
	}
	code := ""
	for i, n := range []int{rows * 64, columns * 2 * wide, 128 * 4 * of, 128 * 32 * 4} {
		if i < 3 || f.scales != "" {
			code += fmt.Sprintf("mad.wide.u32 %%a%d, %%rank, %d, %%a%d;\n", i, n, i)
		}
	}
	if f.inMemory {
		code += fmt.Sprintf("rem.u32 %%r0, %%t, %d; mad.wide.u32 %%d0, %%r0, 64, %%a0;\n", rows) + each(16, "ld.global.b32 %r{}, [%d0+{4}];\n") +
			"add.u32 %r32, %quarter, 400; tcgen05.st.sync.aligned.32x32b.x16.b32 [%r32], " + list("%r", 0, 16) + ";\ntcgen05.wait::st.sync.aligned;\n"
	} else {
		code += copied(0, 1024, rows*64)
	}
	code += copied(1, 33792, columns*2*wide) + f.scales + `
	fence.proxy.async.shared::cta;
	bar.sync 0;
	@!%first bra WAIT;
	mov.b32 %r10, ` + fmt.Sprint(int32(idesc)) + `;
	setp.ne.u32 %p2, %t, 0;
` + product(0, "%p2") + product(1, "!%p2"+f.shift) + `
	cvt.u64.u32 %d3, %s;
	tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%d3];
WAIT:
	mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s], 0;
	@!%p1 bra WAIT;
	tcgen05.fence::after_thread_sync;
`
	for col := 0; col < of; col += 8 {
		code += fmt.Sprintf("tcgen05.ld.sync.aligned.32x32b.x8.b32 %s, [%%quarter+%d];\ntcgen05.wait::ld.sync.aligned;\n", list("%r", 20, 8), col) +
			fmt.Sprintf("mad.wide.u32 %%d0, %%t, %d, %%a2;\n", 4*of)
		for i := range 8 {
			code += fmt.Sprintf("st.global.b32 [%%d0+%d], %%r%d;\n", 4*(col+i), 20+i)
		}
	}
	return strings.ReplaceAll(code, "[%d3]", "[%s]")
}

func TestTensorProduct(t *testing.T) {
	rng := ptxtest.Random(t)
	for _, f := range []tensorForm{
		{kind: "f16", m: 128, n: 64, ta: ir.F16, tb: ir.F16, td: ir.F32, a: 0, b: 0, d: 1}, {kind: "f16", m: 128, n: 16, ta: ir.BF16, tb: ir.BF16, td: ir.F32, a: 1, b: 1, d: 1},
		{kind: "f16", m: 64, n: 24, ta: ir.F16, tb: ir.F16, td: ir.F32, a: 0, b: 0, d: 1}, {kind: "f16", m: 128, n: 32, ta: ir.F16, tb: ir.F16, td: ir.F16, a: 0, b: 0, d: 0},
		{kind: "tf32", m: 128, n: 48, ta: ir.TF32, tb: ir.TF32, td: ir.F32, a: 2, b: 2, d: 1},
		{kind: "f8f6f4", m: 128, n: 32, ta: ir.E4M3, tb: ir.E5M2, td: ir.F32, a: 0, b: 1, d: 1}, {kind: "i8", m: 128, n: 32, ta: ir.S8, tb: ir.U8, td: ir.S32, a: 1, b: 0, d: 2},
	} {
		k := 64 * 8 / f.ta.Bits()
		a, va := matrix(rng, f.ta, f.m*k)
		b, vb := matrix(rng, f.tb, f.n*k)
		for _, cfg := range checkedSeeds(2) {
			r := tensorRig(t, cfg, 3, f.kernel())
			r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n)
			if f.m == 64 { // not all lanes of tensor memory have a row
				cfg.Checks &^= sim.CheckInit
				r = tensorRig(t, cfg, 3, f.kernel())
				r.bytes(rowsOf(a, f.m, 64)).bytes(rowsOf(b, f.n, 64)).out(128 * 4 * f.n)
			}
			require.NoError(t, r.launch(threads(128)), "%+v", f)
			lanes := r.read(2)
			d := make([]byte, f.m*f.n*f.td.Bits()/8)
			for row := range f.m {
				lane := row
				if f.m == 64 {
					lane = row/16*32 + row%16
				}
				for col := range f.n {
					size := f.td.Bits() / 8
					copy(d[(row*f.n+col)*size:][:size], lanes[(lane*f.n+col)*4:])
				}
			}
			want, size := gemm(f.m, f.n, k, va, byRows(vb, k, f.n), nil)
			near(t, d, f.td, want, size, f.kind)
		}
	}
}

func TestTensorMemoryFaults(t *testing.T) {
	run := func(code string) error {
		r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 1, code)
		r.out(4096)
		return r.launch(threads(128))
	}
	ld := "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%quarter];\n"
	st := "tcgen05.st.sync.aligned.32x32b.x1.b32 [%quarter], {%t};\n"
	wait := "tcgen05.wait::ld.sync.aligned;\n"
	waitStore := "tcgen05.wait::st.sync.aligned;\n"
	out := "mad.wide.u32 %d0, %t, 4, %a0;\nst.global.b32 [%d0], %r0;\n"
	require.NoError(t, run(st+waitStore+ld+wait+out))
	require.NoError(t, run(st+waitStore+ld+out+wait))
	faults(t, run(st+ld+wait+out), sim.AsyncHazard)
	faults(t, run(ld+wait+"setp.eq.u32 %p1, %r0, 3;\n@%p1 bra L;\nL:\n"), sim.Uninitialized)
	f := faults(t, run(strings.ReplaceAll(st, "%quarter", "%tm")+waitStore), sim.BadOperand)
	require.Contains(t, f.Detail, "accesses lanes from 0 on, it has those from")
	faults(t, run(strings.ReplaceAll(ld, "%quarter", "%quarter+512")+wait), sim.OutOfBounds)
	f = faults(t, run("@%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%s+8], 32;\n"), sim.BadOperand)
	require.Contains(t, f.Detail, "given up the permit")
	f = faults(t, run("@%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tm, 256;\n"), sim.BadOperand)
	require.Contains(t, f.Detail, "no 256 columns")
	f = faults(t, run("setp.ne.u32 %p0, %t, %t;\n"), sim.BadOperand)
	require.Contains(t, f.Detail, "tcgen05.dealloc is missing")
	// A product that nobody waits for before its result is read.
	form := tensorForm{kind: "f16", m: 128, n: 16, ta: ir.F16, tb: ir.F16, td: ir.F32, a: 0, b: 0, d: 1}
	r := tensorRig(t, sim.Config{Checks: sim.AllChecks}, 3, strings.NewReplacer("@!%p1 bra WAIT;", "",
		"mbarrier.try_wait.parity.shared::cta.b64 %p1, [%s], 0;", "").Replace(form.kernel()))
	r.bytes(make([]byte, 128*64)).bytes(make([]byte, 16*64)).out(128 * 4 * 16)
	faults(t, r.launch(threads(128)), sim.AsyncHazard)
}
