//go:build linux && amd64

package sim_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/ptxtest"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

// TestClang is the differential test: C functions compiled by clang to PTX, unoptimised and optimised, executed here, against the
// same functions compiled by clang for the host and executed by the processor. Results must agree in every bit, but for NaNs in theirs.
//
// clang is $CLANG or that on the path, version 14 or newer; scripts/setup installs it. Without it the test fails.
func TestClang(t *testing.T) {
	if testing.Short() { // for the race detector
		t.Skip("starts no goroutines")
	}
	clang := cmp.Or(os.Getenv("CLANG"), "clang")
	_, err := exec.LookPath(clang)
	require.NoError(t, err, "this test compiles C: install clang (scripts/setup test does)")
	const sources = "testdata/clang"
	dir := t.TempDir()
	device := func(level string) []string {
		return []string{"-target", "nvptx64-nvidia-cuda", "-nocudalib", "-Xclang", "-target-cpu", "-Xclang", "sm_70", "-ffp-contract=off",
			"-fno-math-errno", level, "-S", filepath.Join(sources, "all.c"), "-o", filepath.Join(dir, level+".ptx")}
	}
	compile(t, clang,
		device("-O0"), device("-O2"),
		// -mf16c: without it, half-precision numbers are left to a library.
		[]string{"-DHOST", "-mf16c", "-ffp-contract=off", "-fno-math-errno", "-O0", filepath.Join(sources, "host.c"), "-lm",
			"-o", filepath.Join(dir, "host")})

	rng := ptxtest.Random(t)
	want := clangCases(t, sources, rng, 128)
	runOnHost(t, filepath.Join(dir, "host"), want)
	for _, run := range []struct {
		level string
		cfg   sim.Config
	}{
		{"-O0", sim.Config{Checks: sim.AllChecks, Seed: 1 + rng.Uint64N(1<<62)}},
		{"-O2", sim.Config{Checks: sim.AllChecks, Seed: 1 + rng.Uint64N(1<<62)}},
		{"-O2", sim.Config{}},
	} {
		t.Run(fmt.Sprintf("%s, checks %d", run.level, run.cfg.Checks), func(t *testing.T) {
			src, err := os.ReadFile(filepath.Join(dir, run.level+".ptx"))
			require.NoError(t, err)
			for _, name := range sortedKeys(want) {
				src = append(src, want[name].kernel()...)
			}
			m, err := parse.Module(run.level+".ptx", src)
			require.NoError(t, err)
			require.NoError(t, ir.Validate(m))
			g := sim.New(run.cfg)
			loaded, err := g.Load(m)
			require.NoError(t, err)
			for _, name := range sortedKeys(want) {
				c := want[name]
				if got, err := c.runOnGPU(g, loaded); err != nil {
					t.Errorf("%s: %v", name, err)
				} else if err := c.compare(got); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// compile runs clang with each list of arguments.
func compile(t *testing.T, clang string, runs ...[]string) {
	errs := make([]error, len(runs))
	var wg sync.WaitGroup
	for i, args := range runs {
		wg.Go(func() {
			if out, err := exec.Command(clang, args...).CombinedOutput(); err != nil {
				errs[i] = fmt.Errorf("%s %s: %v\n%s", clang, strings.Join(args, " "), err, out)
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		require.NoError(t, err)
	}
}

// clangCase is a function with the arguments to call it with and the results that the host had.
type clangCase struct {
	name   string
	params []ir.Type
	result ir.Type
	in     [][3]uint64
	out    []uint64
}

var clangPrototype = regexp.MustCompile(`(?m)^CASE([123])\((\w+), (\w+), (\w+)(?:, (\w+))?(?:, (\w+))?\)`)

// clangCases are the functions in the sources, with arguments at random. PTX has bits where C has floating-point numbers.
func clangCases(t *testing.T, sources string, rng *rand.Rand, count int) map[string]*clangCase {
	cases := map[string]*clangCase{}
	files, err := filepath.Glob(filepath.Join(sources, "*.c"))
	require.NoError(t, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		prototypes := clangPrototype.FindAllStringSubmatch(string(src), -1)
		require.Len(t, prototypes, strings.Count(string(src), "\nCASE"), file)
		for _, p := range prototypes {
			c := &clangCase{name: p[3]}
			var ok bool
			c.result, ok = ir.TypeNamed(p[2])
			require.True(t, ok, p[0])
			for _, name := range p[4:] {
				if param, ok := ir.TypeNamed(name); ok {
					c.params = append(c.params, param)
				}
			}
			require.Len(t, c.params, int(p[1][0]-'0'), p[0])
			for range count {
				var in [3]uint64
				for i, p := range c.params {
					in[i] = clangArgument(rng, p)
					if i > 0 && rng.IntN(8) == 0 && p.Bits() == c.params[0].Bits() {
						in[i] = in[0]
					}
				}
				c.in = append(c.in, in)
			}
			require.Nil(t, cases[c.name], c.name)
			cases[c.name] = c
		}
	}
	require.GreaterOrEqual(t, len(cases), 60)
	t.Logf("%d functions, %d calls each", len(cases), count)
	return cases
}

// clangArgument is a number of the type: at limits, small, or any.
func clangArgument(rng *rand.Rand, t ir.Type) uint64 {
	any32 := func(special ...uint32) uint32 { return special[rng.IntN(len(special))] }
	switch t {
	case ir.F32:
		switch rng.IntN(5) {
		case 0:
			return uint64(any32(0, 1<<31, 1, 0x7fffff, 0x800000, 0x7f7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0x3f800000, 0xbf800000,
				0x3f000000, 0xcf000000, 0x4f000000, 0x4effffff, 0x5f000000, 0x477fe000, 0x477ff000, 0x33000000))
		case 1:
			return uint64(math.Float32bits(float32(rng.IntN(2001)-1000) / 2))
		case 2:
			return uint64(math.Float32bits(float32(rng.NormFloat64())))
		case 3:
			return uint64(math.Float32bits(float32(rng.NormFloat64() * math.Ldexp(1, rng.IntN(70)))))
		}
		return rng.Uint64() & 0xffffffff
	case ir.F64:
		switch rng.IntN(4) {
		case 0:
			return []uint64{0, 1 << 63, 1, 1<<52 - 1, 1 << 52, 0x7fefffffffffffff, 0x7ff0000000000000, 0xfff0000000000000,
				0x7ff8000000000000, 0x3ff0000000000000, 0xbff0000000000000, 0x43e0000000000000, 0xc1e0000000000000,
				0x3810000000000000, 0x36a0000000000000, 0x47efffffefffffff, 0x47effffff0000000}[rng.IntN(17)]
		case 1:
			return math.Float64bits(float64(rng.IntN(2001)-1000) / 2)
		case 2:
			return math.Float64bits(rng.NormFloat64() * math.Ldexp(1, rng.IntN(70)))
		}
		return rng.Uint64()
	}
	var v uint64
	switch rng.IntN(4) {
	case 0:
		v = rng.Uint64N(5) - 2
	case 1:
		v = 1<<rng.IntN(t.Bits()) + rng.Uint64N(3) - 1
	case 2:
		v = rng.Uint64N(256)
	default:
		v = rng.Uint64()
	}
	return v & (1<<t.Bits() - 1)
}

// runOnHost has the host's program compute the results.
func runOnHost(t *testing.T, program string, cases map[string]*clangCase) {
	var in bytes.Buffer
	names := sortedKeys(cases)
	for _, name := range names {
		var field [32]byte
		require.Less(t, len(name), len(field))
		copy(field[:], name)
		in.Write(field[:])
		require.NoError(t, binary.Write(&in, binary.LittleEndian, uint64(len(cases[name].in))))
		require.NoError(t, binary.Write(&in, binary.LittleEndian, cases[name].in))
	}
	cmd := exec.Command(program)
	cmd.Stdin = &in
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	r := bytes.NewReader(out)
	for _, name := range names {
		c := cases[name]
		c.out = make([]uint64, len(c.in))
		require.NoError(t, binary.Read(r, binary.LittleEndian, c.out))
	}
	require.Zero(t, r.Len())
}

// kernel is the PTX of a kernel that calls the function, a thread for each set of arguments.
func (c *clangCase) kernel() string {
	var b strings.Builder
	fmt.Fprintf(&b, `
.visible .entry run_%s(.param .u64 in, .param .u64 out, .param .u32 n)
{
	.reg .pred %%p;
	.reg .b32 %%t, %%n, %%w<4>, %%zero;
	.reg .b64 %%in, %%out, %%d<4>;
	mov.u32 %%t, %%ctaid.x;
	mov.u32 %%n, %%ntid.x;
	mov.u32 %%zero, %%tid.x;
	mad.lo.u32 %%t, %%t, %%n, %%zero;
	ld.param.u32 %%n, [n];
	setp.ge.u32 %%p, %%t, %%n;
	@%%p ret;
	mov.u32 %%zero, 0;
	ld.param.u64 %%in, [in];
	ld.param.u64 %%out, [out];
	mad.wide.u32 %%in, %%t, 24, %%in;
	mad.wide.u32 %%out, %%t, 8, %%out;
	{
	.param .b%d result;
`, c.name, c.result.Bits())
	var args []string
	register := func(t ir.Type, i int) string { return fmt.Sprintf("%%%c%d", "wd"[t.Bits()/64], i) }
	for i, p := range c.params {
		args = append(args, fmt.Sprintf("a%d", i))
		fmt.Fprintf(&b, "\t.param .b%d a%d;\n\tld.global.b%[1]d %[3]s, [%%in+%[4]d];\n\tst.param.b%[1]d [a%[2]d], %[3]s;\n",
			p.Bits(), i, register(p, i), 8*i)
	}
	r := register(c.result, 3)
	fmt.Fprintf(&b, "\tcall (result), %s, (%s);\n\tld.param.b%d %s, [result];\n\t}\n", c.name, strings.Join(args, ", "), c.result.Bits(), r)
	if c.result.Bits() == 32 {
		fmt.Fprintf(&b, "\tst.global.v2.b32 [%%out], {%s, %%zero};\n", r)
	} else {
		fmt.Fprintf(&b, "\tst.global.b64 [%%out], %s;\n", r)
	}
	b.WriteString("\tret;\n}\n")
	return b.String()
}

// runOnGPU returns the results of the software GPU.
func (c *clangCase) runOnGPU(g *sim.GPU, m *sim.Module) ([]uint64, error) {
	k, err := m.Kernel("run_" + c.name)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	if err := binary.Write(&data, binary.LittleEndian, c.in); err != nil {
		return nil, err
	}
	in, err := g.Alloc(data.Len())
	if err != nil {
		return nil, err
	}
	out, err := g.Alloc(8 * len(c.in))
	if err != nil {
		return nil, err
	}
	if err := g.Write(in, data.Bytes()); err != nil {
		return nil, err
	}
	const block = 48 // a warp and a half
	l := sim.Launch{Grid: sim.Dim3{X: (len(c.in) + block - 1) / block}, Block: sim.Dim3{X: block}}
	if l.Params, err = k.Pack(in, out, uint32(len(c.in))); err != nil {
		return nil, err
	}
	if _, err := g.Run(context.Background(), k, l); err != nil {
		return nil, err
	}
	raw := make([]byte, 8*len(c.in))
	if err := g.Read(raw, out); err != nil {
		return nil, err
	}
	results := make([]uint64, len(c.in))
	for i := range results {
		results[i] = binary.LittleEndian.Uint64(raw[8*i:])
	}
	return results, cmp.Or(g.Free(in), g.Free(out))
}

// compare tells the first result that differs.
func (c *clangCase) compare(got []uint64) error {
	nan := func(v uint64) bool {
		switch c.result {
		case ir.F32:
			return v&0x7fffffff > 0x7f800000
		case ir.F64:
			return v&(1<<63-1) > 0x7ff<<52
		}
		return false
	}
	for i, want := range c.out {
		if got[i] != want && !(nan(got[i]) && nan(want)) {
			return fmt.Errorf("%s of %#x: %#x, on the host %#x", c.name, c.in[i][:len(c.params)], got[i], want)
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
