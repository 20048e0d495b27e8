package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/sim"
)

const runtimeDecls = `.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 c);
`

// cString is a variable with the text and a zero after it.
func cString(name, text string) string {
	return fmt.Sprintf(".global .align 1 .b8 %s[%d] = {%s};\n", name, len(text)+1,
		strings.Trim(strings.Join(strings.Fields(fmt.Sprint([]byte(text))), ", "), "[]"))
}

// callRuntime calls a function with 64-bit registers; the result, if any, goes to result.
func callRuntime(name, result string, args ...string) string {
	code, list := "{ .param .b64 z;\n", []string{}
	for i, a := range args {
		t := "b64"
		if name == "__assertfail" && i == 2 {
			t = "b32"
		}
		code += fmt.Sprintf(".param .%s a%d; st.param.%s [a%d], %s;\n", t, i, t, i, a)
		list = append(list, fmt.Sprintf("a%d", i))
	}
	switch {
	case result == "":
		return code + fmt.Sprintf("call.uni %s, (%s); }\n", name, strings.Join(list, ", "))
	case name == "vprintf":
		return code + fmt.Sprintf(".param .b32 res; call.uni (res), %s, (%s); ld.param.b32 %s, [res]; }\n", name, strings.Join(list, ", "), result)
	}
	return code + fmt.Sprintf(".param .b64 res; call.uni (res), %s, (%s); ld.param.b64 %s, [res]; }\n", name, strings.Join(list, ", "), result)
}

// printed runs one printf whose arguments store writes to the buffer at %rd1.
func printed(t *testing.T, cfg sim.Config, format, store string, l sim.Launch) (string, []uint32, error) {
	var out bytes.Buffer
	cfg.Output = &out
	got, _, err := launch(t, cfg, runtimeDecls+cString("fmt", format)+cString("word", "block")+body(`
		.local .align 8 .b8 depot[64];
		mov.u64 %rd1, depot; cvta.local.u64 %rd2, %rd1;
		mov.u64 %rd3, fmt; cvta.global.u64 %rd3, %rd3; mov.u64 %rd4, word; cvta.global.u64 %rd4, %rd4;
		cvt.rn.f64.s32 %fd1, %t;`+store+callRuntime("vprintf", "%r9", "%rd3", "%rd2")+`st.global.u32 [%mine], %r9;`), l, 4)
	return out.String(), got, err
}

// printf formats as C does.
func TestPrintf(t *testing.T) {
	for _, c := range []struct{ format, store, want string }{
		{"hello\n", "", "hello\n"},
		{"%d%%|%5d|%-5d|%05d|%+d|% d|%.3d\n", "st.local.v4.u32 [%rd1], {-7, 42, 42, 42}; st.local.v2.u32 [%rd1+16], {7, 7}; st.local.u32 [%rd1+24], 7;",
			"-7%|   42|42   |00042|+7| 7|007\n"},
		{"%u %x %#X %o %c", "st.local.v4.u32 [%rd1], {-1, 255, 255, 8}; st.local.u32 [%rd1+16], 65;", "4294967295 ff 0XFF 10 A"},
		{"%d %lld %s|%8s|%-7.2s|", "st.local.u32 [%rd1], 1; st.local.s64 [%rd1+8], -5000000000; st.local.v2.u64 [%rd1+16], {%rd4, %rd4}; st.local.u64 [%rd1+32], %rd4;",
			"1 -5000000000 block|   block|bl     |"},
		{"%f %.2f %e %g %G", "st.local.f64 [%rd1], 0d3FF8000000000000; st.local.f64 [%rd1+8], 0dC00921FB54442D18; st.local.f64 [%rd1+16], 0d40C3880000000000; st.local.f64 [%rd1+24], 0d4194000000000000; st.local.f64 [%rd1+32], 0d7FF0000000000000;",
			"1.500000 -3.14 1.000000e+04 8.38861e+07 INF"},
		{"%08.3f|%a|%*d", "st.local.f64 [%rd1], 0dBFF8000000000000; st.local.f64 [%rd1+8], 0d3FF8000000000000; st.local.v2.u32 [%rd1+16], {-4, 9};",
			"-001.500|0x1.8p+0|9   "},
		{"50%", "", "50%"},
	} {
		for _, cfg := range []sim.Config{{}, {Checks: sim.AllChecks}} {
			out, got, err := printed(t, cfg, c.format, c.store, threads(1))
			require.NoError(t, err)
			require.Equal(t, c.want, out)
			require.Equal(t, uint32(strings.Count(strings.ReplaceAll(c.format, "%%", ""), "%"))-uint32(strings.Count(c.format, "50%"))+
				uint32(strings.Count(c.format, "*")), got[0])
		}
	}
}

func TestPrintfOfThreads(t *testing.T) {
	out, _, err := printed(t, sim.Config{Checks: sim.AllChecks}, "%d\n", "st.local.u32 [%rd1], %t;", threads(4))
	require.NoError(t, err)
	require.Equal(t, "0\n1\n2\n3\n", out)

	_, _, err = printed(t, sim.Config{Checks: sim.AllChecks}, "%d %d\n", "st.local.u32 [%rd1], %t;", threads(1))
	require.Contains(t, faults(t, err, sim.Uninitialized).Detail, "argument 2 of printf has no value")

	_, _, err = printed(t, sim.Config{}, "%s\n", "st.local.u64 [%rd1], 16;", threads(1))
	faults(t, err, sim.OutOfBounds)
}

// broken is a writer that fails.
type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("the pipe is broken") }

func TestOutputFails(t *testing.T) {
	_, _, err := launch(t, sim.Config{Output: broken{}}, runtimeDecls+cString("text", "x")+body(`
		mov.u64 %rd1, text; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, 0;`+callRuntime("vprintf", "%r9", "%rd1", "%rd2")), threads(1), 1)
	require.ErrorContains(t, err, "the pipe is broken")
}

func TestAssertion(t *testing.T) {
	src := runtimeDecls + cString("msg", "n < 100") + cString("file", "a.cu") + cString("fn", "scale(int)") + body(`
		mov.u64 %rd1, msg; cvta.global.u64 %rd1, %rd1; mov.u64 %rd2, file; cvta.global.u64 %rd2, %rd2;
		mov.u64 %rd3, fn; cvta.global.u64 %rd3, %rd3; mov.u64 %rd4, 1; mov.u32 %r1, 12;
		setp.ne.u32 %p1, %t, 5; @%p1 bra ok;`+callRuntime("__assertfail", "", "%rd1", "%rd2", "%r1", "%rd3", "%rd4")+"\nok:")
	f := fault(t, sim.Config{Checks: sim.AllChecks}, sim.Assertion, src, threads(32))
	require.Equal(t, `a.cu:12: scale(int): "n < 100" failed`, f.Detail)
	require.Equal(t, sim.Dim3{X: 5}, f.Thread)
}

func TestMalloc(t *testing.T) {
	run := func(cfg sim.Config, code string) (*sim.GPU, []uint32, error) {
		g := sim.New(cfg)
		m, err := g.Load(module(t, runtimeDecls+body(code)))
		require.NoError(t, err)
		k, err := m.Kernel("k")
		require.NoError(t, err)
		out, err := g.Alloc(256)
		require.NoError(t, err)
		require.NoError(t, g.Fill(out, 256, 0))
		l := threads(64)
		l.Params, err = k.Pack(out)
		require.NoError(t, err)
		if _, err = g.Run(context.Background(), k, l); err != nil {
			return g, nil, err
		}
		return g, words(t, g, out, 64), nil
	}
	take := `mov.u64 %rd1, 32;` + callRuntime("malloc", "%rd2", "%rd1")
	give := callRuntime("free", "", "%rd2")
	for _, cfg := range checkedSeeds(2) {
		g, got, err := run(cfg, take+"st.u32 [%rd2+28], %t; ld.u32 %r1, [%rd2+28]; st.global.u32 [%mine], %r1;"+give)
		require.NoError(t, err)
		for i, v := range got {
			require.Equal(t, uint32(i), v)
		}
		require.Empty(t, g.Leaks())
	}
	checks := sim.Config{Checks: sim.AllChecks, Workers: 1}
	g, _, err := run(checks, take)
	require.NoError(t, err)
	require.Len(t, g.Leaks(), 64)
	require.Equal(t, 32, g.Leaks()[0].Size)
	require.Contains(t, g.Leaks()[0].String(), "32 bytes that nothing frees, taken by call")
	require.ErrorIs(t, g.Free(g.Leaks()[0].Addr), compute.ErrArgument)

	_, _, err = run(checks, take+give+give)
	require.Contains(t, faults(t, err, sim.InvalidFree).Detail, "which has been freed")
	_, _, err = run(checks, take+"add.u64 %rd2, %rd2, 8;"+give)
	require.Contains(t, faults(t, err, sim.InvalidFree).Detail, "offset 8 of the 32 bytes that malloc gave thread (0, 0, 0)")
	_, _, err = run(checks, "mov.u64 %rd2, %out;"+give)
	faults(t, err, sim.InvalidFree)
	_, _, err = run(checks, take+give+"st.u32 [%rd2], 1;")
	require.Contains(t, faults(t, err, sim.OutOfBounds).Detail, "which has been freed")
	_, _, err = run(checks, take+"st.u32 [%rd2+32], 1;")
	faults(t, err, sim.OutOfBounds)
	_, _, err = run(checks, take+"ld.u32 %r1, [%rd2]; setp.eq.u32 %p1, %r1, 0; @%p1 bra x; x:")
	faults(t, err, sim.Uninitialized)
	_, _, err = run(checks, "mov.u64 %rd2, 0;"+give)
	require.NoError(t, err)

	small := sim.Config{HeapLimit: 48} // for the first of 64 threads, as nothing is freed
	_, got, err := run(small, take+"setp.ne.u64 %p1, %rd2, 0; selp.u32 %r1, 1, 0, %p1; st.global.u32 [%mine], %r1;")
	require.NoError(t, err)
	require.Equal(t, uint32(1), got[0])
	for _, v := range got[1:] {
		require.Zero(t, v)
	}
}
