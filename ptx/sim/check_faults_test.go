package sim

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/parse"
)

// sample is a kernel with a launch and what the checks have to say about it.
type sample struct {
	name   string
	ptx    string // the body; see source
	shared int    // bytes of the array "buf"
	grid   int
	block  int
	group  int // blocks in a cluster
	words  int // of each of the buffers x (initialised with random numbers) and y (not initialised, read afterwards), 0: 1024
	zero   int // words of y that are 0 beforehand
	want   FaultKind
	other  FaultKind // what some schedules find instead
	detail string    // part of the fault's text
	// check looks at the results.
	check func(t *testing.T, x, y []uint32)
}

// source makes a module of a body. There are registers %r, %f, %d, %h, %p, and what many kernels begin with: %x and %y
// are the buffers, %tid and %cta this thread's and block's index, %n the number of threads in a block, %i the thread's
// index in the grid, %sm the address of its word of the shared array buf, %xi and %yi its words in the buffers.
func source(s *sample) string {
	shared := ""
	if s.shared > 0 {
		shared = ".shared .align 128 .b8 buf[" + strconv.Itoa(s.shared) + "];\n"
	}
	return `.version 8.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 px, .param .u64 py)
{
.reg .b32 %r<64>; .reg .f32 %f<64>; .reg .b64 %d<64>; .reg .b16 %h<32>; .reg .pred %p<16>;
.reg .b64 %x, %y, %xi, %yi, %off; .reg .b32 %t, %b, %n, %i, %sm, %l;
` + shared + `
ld.param.u64 %x, [px]; ld.param.u64 %y, [py];
mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mov.u32 %l, %laneid;
mad.lo.u32 %i, %b, %n, %t; mul.wide.u32 %off, %i, 4;
add.u64 %xi, %x, %off; add.u64 %yi, %y, %off;
` + ifShared(s) + s.ptx + "\nret;\n}\n"
}

func ifShared(s *sample) string {
	if s.shared == 0 {
		return ""
	}
	return "shl.b32 %sm, %t, 2; mov.u32 %r63, buf; add.u32 %sm, %sm, %r63;\n"
}

// prepared is a sample ready to run.
type prepared struct {
	gpu    *GPU
	kernel *Kernel
	launch Launch
	x      []uint32
	y      uint64
	words  int // of y that are read afterwards
}

func prepare(t testing.TB, s *sample, cfg Config, rng *rand.Rand) *prepared {
	text := source(s)
	m, err := parse.Module(s.name+".ptx", []byte(text))
	require.NoError(t, err, text)
	g := New(cfg)
	mod, err := g.Load(m)
	require.NoError(t, err)
	k, err := mod.Kernel("k")
	require.NoError(t, err)
	words := s.words
	if words == 0 {
		words = 1024
	}
	x := make([]uint32, words)
	raw := make([]byte, 0, 4*words)
	for i := range x {
		x[i] = rng.Uint32N(1000)
		raw = binary.LittleEndian.AppendUint32(raw, x[i])
	}
	px, err := g.Alloc(4 * words)
	require.NoError(t, err)
	py, err := g.Alloc(4 * words)
	require.NoError(t, err)
	require.NoError(t, g.Write(px, raw))
	require.NoError(t, g.Fill(py, 4*s.zero, 0))
	params, err := k.Pack(px, py)
	require.NoError(t, err)
	l := Launch{Grid: Dim3{X: max(1, s.grid)}, Block: Dim3{X: max(1, s.block)}, Cluster: Dim3{X: s.group}, Params: params}
	return &prepared{g, k, l, x, py, max(s.zero, min(words, l.Grid.X*l.Block.X))}
}

// execute runs a sample. The buffers come back as words; err is the launch's, or that of reading y.
func execute(t testing.TB, s *sample, cfg Config, rng *rand.Rand) (x, y []uint32, st *Stats, err error) {
	p := prepare(t, s, cfg, rng)
	st, err = p.gpu.Run(context.Background(), p.kernel, p.launch)
	if err != nil {
		return p.x, nil, st, err
	}
	raw := make([]byte, 4*p.words)
	err = p.gpu.Read(raw, p.y)
	y = make([]uint32, p.words)
	for i := range y {
		y[i] = binary.LittleEndian.Uint32(raw[4*i:])
	}
	return p.x, y, st, err
}

const seeds = 20

// runSamples runs each sample under many schedules with all checks on.
func runSamples(t *testing.T, list []sample) {
	for i := range list {
		s := &list[i]
		t.Run(s.name, func(t *testing.T) {
			rng := ptxtest.Random(t)
			seed := rng.Uint64()
			schedules := uint64(seeds)
			if testing.Short() {
				schedules = 4
			}
			for n := range schedules {
				cfg := Config{Checks: AllChecks, Seed: n, MaxSteps: 1 << 22}
				if n > 0 {
					cfg.Seed += seed
				}
				x, y, _, err := execute(t, s, cfg, rng)
				if s.want == 0 {
					require.NoError(t, err, "schedule %d", cfg.Seed)
					if s.check != nil {
						s.check(t, x, y)
					}
					continue
				}
				var f *Fault
				require.True(t, errors.As(err, &f), "schedule %d: %v", cfg.Seed, err)
				if f.Kind == s.other {
					continue
				}
				require.Equal(t, s.want.String(), f.Kind.String(), "schedule %d: %v", cfg.Seed, err)
				require.Contains(t, f.Error(), s.detail)
				require.NotEmpty(t, f.Detail)
			}
		})
	}
}

// replaced is a sample with another name and fault, in which some text is replaced.
func (s sample) replaced(name string, want FaultKind, old, with string) sample {
	if !strings.Contains(s.ptx, old) {
		panic(s.name + ": no " + old)
	}
	s.name, s.want, s.check = name, want, nil
	s.ptx = strings.ReplaceAll(s.ptx, old, with)
	return s
}

func (s sample) or(k FaultKind) sample {
	s.other = k
	return s
}

func TestUninitialised(t *testing.T) {
	copyPadding := sample{name: "padding is copied", shared: 512, block: 32, ptx: `
		setp.lt.u32 %p1, %l, 20;
		@%p1 ld.global.u32 %r1, [%xi];
		@%p1 st.shared.u32 [%sm], %r1;
		bar.sync 0;
		ld.shared.u32 %r2, [%sm];          // of lanes 20 to 31 nothing was written
		add.u32 %r3, %r2, 1;
		shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1;
		st.shared.u32 [%sm+256], %r4;
		ld.shared.u32 %r5, [%sm+256];
		selp.u32 %r6, %r5, 7, %p1;
		st.global.u32 [%yi], %r6;`,
		check: func(t *testing.T, x, y []uint32) {
			for i, v := range y {
				want := uint32(7)
				if i < 20 {
					want = x[i^1] + 1
				}
				require.Equal(t, want, v)
			}
		}}
	runSamples(t, []sample{
		copyPadding,
		copyPadding.replaced("the host reads padding", Uninitialized, "selp.u32 %r6, %r5, 7, %p1;", "mov.u32 %r6, %r5;"),
		copyPadding.replaced("shuffled from where there is none", Uninitialized, "%r3, 1, 31", "%r3, 31, 31"),
		{name: "register as address", block: 32, want: Uninitialized, detail: "register %d1 has never been written", ptx: `
			add.u64 %d2, %d1, %x;
			ld.global.u32 %r1, [%d2];
			st.global.u32 [%yi], %r1;`},
		{name: "register as guard", block: 32, want: Uninitialized, detail: "register %r1 has never been written", ptx: `
			setp.eq.u32 %p1, %r1, 5;
			@%p1 bra L;
			st.global.u32 [%yi], 1;
			L: st.global.u32 [%yi], 2;`},
		{name: "register of some lanes", block: 32, want: Uninitialized, detail: "0xffff0000", ptx: `
			setp.lt.u32 %p1, %l, 16;
			@%p1 mov.u64 %d1, %xi;
			ld.global.u32 %r1, [%d1];`},
		{name: "register of the other lanes too", block: 32, ptx: `
			setp.lt.u32 %p1, %l, 16;
			@%p1 mov.u64 %d1, %xi;
			@!%p1 mov.u64 %d1, %xi;
			ld.global.u32 %r1, [%d1];
			st.global.u32 [%yi], %r1;`},
		{name: "memory decides a branch", block: 32, want: Uninitialized, detail: "which nothing has written", ptx: `
			ld.global.u32 %r1, [%yi];
			setp.eq.u32 %p1, %r1, 5;
			@%p1 bra L;
			st.global.u32 [%yi], 1;
			L: st.global.u32 [%yi], 2;`},
		{name: "memory decides a branch, zeroed", block: 32, zero: 32, ptx: `
			ld.global.u32 %r1, [%yi];
			setp.eq.u32 %p1, %r1, 5;
			@%p1 bra L;
			st.global.u32 [%yi], 1;
			L: st.global.u32 [%yi], 2;`},
		{name: "atomic on new memory", block: 32, want: Uninitialized, ptx: `red.global.add.u32 [%y], 1;`},
		{name: "atomic on zeroed memory", block: 32, zero: 32, ptx: `red.global.add.u32 [%y], 1;`,
			check: func(t *testing.T, _, y []uint32) { require.Equal(t, uint32(32), y[0]) }},
		{name: "atomic with an operand without value", block: 32, zero: 32, want: Uninitialized, ptx: `red.global.add.u32 [%y], %r1;`},
		{name: "three of four bytes", block: 32, want: Uninitialized, detail: "byte 3", ptx: `
			st.global.u16 [%yi], 1; st.global.u8 [%yi+2], 1;`},
		{name: "four of four bytes", block: 32, ptx: `
			st.global.u16 [%yi], 1; st.global.u8 [%yi+2], 1; st.global.u8 [%yi+3], 1;`},
		{name: "local memory", block: 32, want: Uninitialized, ptx: `
			.local .align 4 .b8 l[8];
			st.local.u32 [l], 1;
			ld.local.u32 %r1, [l+4];
			st.global.u32 [%yi], %r1;`},
		{name: "local memory, the other word", block: 32, ptx: `
			.local .align 4 .b8 l[8];
			st.local.u32 [l], 1;
			ld.local.u32 %r1, [l];
			st.global.u32 [%yi], %r1;`},
	})
}
