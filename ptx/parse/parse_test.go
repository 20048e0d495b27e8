package parse_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/parse"
)

// roundTrip fails unless printing m and parsing that gives m again.
func roundTrip(t testing.TB, m *ir.Module) {
	t.Helper()
	text := m.String()
	again, err := parse.Module("printed", []byte(text))
	require.NoError(t, err, text)
	require.Equal(t, text, again.String(), "printing is a fixed point")
	require.True(t, ir.Equal(m, again), text)
}

// modules are those of the files in testdata.
func modules(t *testing.T) (all []*ir.Module) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(t, err)
		m, err := parse.Module(file, src)
		require.NoError(t, err)
		all = append(all, m)
	}
	return all
}

func TestFiles(t *testing.T) {
	for _, m := range modules(t) {
		roundTrip(t, m)
		t.Log(m)
	}
}

// body is a module whose kernel has the lines as its body.
func body(lines string) string {
	return ".version 8.0\n.target sm_90\n.address_size 64\n.entry k(.param .u64 x)\n{\n" + lines + "\n}\n"
}

func TestScopes(t *testing.T) {
	src, err := os.ReadFile("testdata/scopes.ptx")
	require.NoError(t, err)
	m, err := parse.Module("scopes.ptx", src)
	require.NoError(t, err)
	require.Len(t, m.Funcs, 5, "two declared, three defined; the prototype of pair is superfluous")
	k := m.Func("scopes")
	require.Equal(t, ir.Bounds{MaxThreads: [3]int{128, 2, 1}, MinBlocks: 2}, k.Bounds)
	names := map[string]ir.Type{}
	for _, r := range k.Regs[1:] {
		require.NotContains(t, names, r.Name)
		names[r.Name] = r.Type
	}
	require.Equal(t, ir.Pred, names["p"])
	require.Equal(t, ir.Pred, names["p_1"], "the second scope's p")
	require.Equal(t, ir.U32, names["%r7"], "the scope's %r7 is mentioned first and keeps its name")
	require.Equal(t, ir.B32, names["%r7_1"])
	require.Equal(t, ir.U32, names["v_x"])
	require.NotContains(t, names, "%r50")
	require.Equal(t, "%SPL", k.Regs[1].Name)
	var vars []string
	for _, v := range k.Vars {
		vars = append(vars, v.Name)
	}
	require.Equal(t, []string{"__local_depot0", "param0", "param1", "retval0", "param0_1", "retval0_1"}, vars)
	text := m.String()
	for _, want := range []string{
		"two[3] = {{1, 2}, {3, 4}, {32, 4294967295}};", "negative = -2;", "bra.uni LOOP;", "@!p_1 bra LOOP_1;", "mov.b64 %rd6, {v_x, v_y};",
		"table[3] = {generic($str)+4, $str, pair};", "weights[2][3] = {{0f3F800000, 0f3FC00000, 0fC0000000}, {0f3F800000}};",
		"st.global.f32 [%rd2+-8], %f1;", "call stop, ();", ".pragma \"nounroll\";", ".extern .func stop() .noreturn;",
		"prototype_1:\n\t.callprototype (.param .align 4 .b8 _[8]) _ (.param .b32 _);", ".global .u32 pair_calls = 1;",
	} {
		require.Contains(t, text, want)
	}
	ld := k.Body[2]
	require.Equal(t, ir.Pos{File: "scopes.ptx", Line: 43, Col: 2}, ld.Pos)
}

func TestConstants(t *testing.T) {
	for _, c := range []struct {
		text string
		want ir.Operand
	}{
		{"0x1F", ir.Int(31)}, {"017", ir.Int(15)}, {"0b101U", ir.Int(5)}, {"0", ir.Int(0)}, {"18446744073709551615U", ir.Int(-1)},
		{"-5", ir.Int(-5)}, {"~0", ir.Int(-1)}, {"!3", ir.Int(0)}, {"(1+2)*3 - 4/2 % 3", ir.Int(7)}, {"1 ? 2 : 3", ir.Int(2)},
		{"7 & 12 | 1 ^ 2", ir.Int(7)}, {"1 << 4 >> 2", ir.Int(4)}, {"-16 >> 2", ir.Int(-4)}, {"(.u64)-16 >> 60", ir.Int(15)},
		{"3 < 4 && 4 <= 4 || 0", ir.Int(1)}, {"-1 < 0U", ir.Int(0)}, {"3 >= 4", ir.Int(0)}, {"3 != 4", ir.Int(1)}, {"3 == 4", ir.Int(0)},
		{"WARP_SZ - 1", ir.Int(31)}, {"-7 / 2", ir.Int(-3)}, {"-7 % 2", ir.Int(-1)}, {"5 > 4", ir.Int(1)},
		{"1.5", ir.Operand{Kind: ir.F64Operand, Bits: 0x3FF8000000000000}},
		{"-1.5e1 * 2.0", ir.Operand{Kind: ir.F64Operand, Bits: 0xC03E000000000000}},
		{"1E-2", ir.Operand{Kind: ir.F64Operand, Bits: 0x3F847AE147AE147B}},
		{"0F3f800000", ir.Operand{Kind: ir.F32Operand, Bits: 0x3f800000}},
		{"0dBFF0000000000000", ir.Operand{Kind: ir.F64Operand, Bits: 0xBFF0000000000000}},
		{"-0d3FF0000000000000", ir.Operand{Kind: ir.F64Operand, Bits: 0xBFF0000000000000}},
	} {
		m, err := parse.Module("", []byte(body(".reg .f64 d; mov.f64 d, "+c.text+";")))
		if c.want.Kind == ir.IntOperand {
			m, err = parse.Module("", []byte(body(".reg .b64 d; mov.b64 d, "+c.text+";")))
		}
		if c.want.Kind == ir.F32Operand {
			m, err = parse.Module("", []byte(body(".reg .f32 d; mov.f32 d, "+c.text+";")))
		}
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, m.Funcs[0].Body[0].Args[1], c.text)
		roundTrip(t, m)
	}
}

// TestErrors: § stands where the error is.
func TestErrors(t *testing.T) {
	regs := ".reg .u32 %r<4>; .reg .pred %p; "
	head := ".version 8.0\n.target sm_80\n"
	for _, c := range []struct{ src, want string }{
		{"§", ".version expected as the first line, found the end of the file"},
		{".version 8.0\n.target §sm_banana", "sm_banana is no target"},
		{head + ".visible §.entri k()", ".entri is no declaration (did you mean .entry?)"},
		{body(regs + "\n  §ad.u32 %r1, %r2, %r3;"), "there is no instruction ad (did you mean add?)"},
		{body("§bar.sink 0;"), "there is no instruction bar.sink (did you mean bar.sync?)"},
		{body(regs + "\n\tadd.u32 %r1, §%r9, 1;"), "%r9 is not declared"},
		{body(regs + "mov.u32 %r1, §%tid;"), "%tid has the components .x, .y and .z"},
		{body(regs + "mov.u32 %r1, §%lanid;"), "%lanid is not declared (did you mean %laneid?)"},
		{body("bra §there;"), "label there is not defined"},
		{body("here: there: bra §ther;"), "label ther is not defined (did you mean there?)"},
		{body("here:\n§here:"), "label here is defined a second time"},
		{body(regs + ".reg .u32 §%r2;"), "%r2 is declared a second time"},
		{body(regs + ".reg .b64 §%r<2>;"), "declares registers a second time"},
		{body(".reg .u32 §%envreg<2>;"), "is a name of PTX itself"},
		{body(regs + "@§%r1 ret;"), "%r1 guards an instruction, but is no predicate"},
		{body(regs + "add.u32 %r1, %r2, 1\n§}"), "a comma or semicolon expected in add.u32, found }"},
		{strings.TrimSuffix(body(regs+"ret;"), "}\n") + "§", "the file ends inside of k: } is missing"},
		{body(regs + "mov.u32 %r1, 1§/0;"), "division by zero"},
		{body(regs + "mov.u32 %r1, 1.5 §% 2.0;"), "% does not apply to floating-point numbers"},
		{body(regs + "mov.f32 %r1, §0f3F8;"), "8 hexadecimal digits have to follow 0f"},
		{body("§/* "), "this comment has no end"},
		{body(".pragma §\"x;"), "no closing quote"},
		{body("§\x01"), "does not belong into PTX"},
		{body(regs + ".reg .b64 %rd1; §tex.2d.v4.f32.f32 {%r1, %r2, %r3, %r1}, [%rd1, {%r1, %r2, %r3}];"), "operand 2 has to have 2 coordinates"},
		{body("§.extern .shared .b8 s[];"), ".extern inside a function"},
		{head + ".global .u32 x[2] = §{1, 2, 3};", "more than 2 elements"},
		{head + ".global .f32 x = §1;", "an integer as value of a variable of type .f32"},
		{head + ".global .u64 x = §y;", "y is not declared"},
		{head + ".global .u64 x;\n.global .u32 §x;", "x is declared a second time"},
		{head + ".global .u64 §x[];", "x needs a size"},
		{head + ".entry k() {}\n.entry §k() {}", "k is declared a second time"},
		{body(regs + "§add.f32 %r1, %r2, %r3;"), "operand 1 is %r1 of type .u32, which does not fit .f32"},
		{body(regs + "§add.u32 %r1, %r2;"), "2 operands are too few"},
		{body(regs + "§add.approx.u32 %r1, %r2, %r3;"), "add has no part .approx"},
		{body(regs + "ret; §@%p ld.global.u32 %r1, [%r2];"), "operand 2 has %r2 of type .u32 as base, but global addresses have 64 bits"},
		{body(".shared .u32 s; " + regs + "§ld.global.u32 %r1, [s];"), "s is in the shared space, not in global"},
		{body("L: .branchtargets L2; L2: §bra L;"), "label L is that of a .branchtargets"},
		{body(regs + "§vmad.u32.u32.u32 %r1, -%r2, %r3, -%r1;"), "operand 4 cannot be negated beside a negated product"},
		{body(regs + "§vadd.u32.u32.u32 %r1, %r2.h10, %r3;"), "operand 2 has no part .h10; it may have b0, b1, b2, b3, h0, h1"},
		{body(regs + "§add.u32 %r1, %r2.b0, %r3;"), "operand 2 has no parts to select"},
		{body(regs + "add.u32 %r1, §%r2.b9, %r3;"), "%r2 has no part .b9"},
		{body(regs + "@§%p.b0 ret;"), "guards an instruction, but is no predicate"},
		{body(regs + "ld.shared.u32 %r1, [§%r2.h0];"), "%r2 cannot be an address"},
		{body(regs + "add.u32 %r1, §-%tid.x, 1;"), "- belongs before registers and constants"},
		{body(regs + "§cp.async.wait_group -1;"), "operand 1 has to be from 0"},
	} {
		before, after, marked := strings.Cut(c.src, "§")
		require.True(t, marked, c.src)
		want := ir.Pos{File: "f.ptx", Line: strings.Count(before, "\n") + 1, Col: len(before) - strings.LastIndex(before, "\n")}
		_, err := parse.Module("f.ptx", []byte(before+after))
		var e *parse.Error
		require.ErrorAs(t, err, &e, c.src)
		require.Contains(t, e.Msg, c.want)
		require.Equal(t, want, e.Pos, "%s\n%v", c.src, err)
		require.Contains(t, err.Error(), "f.ptx:")
		require.True(t, errors.Is(err, compute.ErrArgument) || errors.Is(err, compute.ErrUnsupported))
	}
}

// TestAddressSize: as to ptxas, addresses have 64 bits where nothing is said.
func TestAddressSize(t *testing.T) {
	for directive, want := range map[string]int{"": 64, ".address_size 64\n": 64, ".address_size 32\n": 32} {
		m, err := parse.Module("f.ptx", []byte(".version 8.0\n.target sm_80\n"+directive+".entry k() { ret; }"))
		require.NoError(t, err)
		require.Equal(t, want, m.AddressSize)
	}
}

// TestTruncated: each beginning of a file is an error or a module, never a panic, and what parses round-trips.
func TestTruncated(t *testing.T) {
	src, err := os.ReadFile("testdata/scopes.ptx")
	require.NoError(t, err)
	step := 1
	if testing.Short() {
		step = 17
	}
	for n := 0; n < len(src); n += step {
		if m, err := parse.Module("", src[:n]); err == nil {
			roundTrip(t, m)
		}
	}
}

func FuzzModule(f *testing.F) {
	files, err := filepath.Glob("testdata/*.ptx")
	require.NoError(f, err)
	for _, file := range files {
		src, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(src)
	}
	f.Add([]byte(body(".reg .u32 a<4>; .shared .u32 a5; { .reg .u32 a3; add.u32 a3, a1, 1; } a9: mov.u32 a3, a5;")))
	f.Fuzz(func(t *testing.T, src []byte) {
		m, err := parse.Module("fuzz", src)
		if err != nil {
			var e *parse.Error
			require.ErrorAs(t, err, &e)
			return
		}
		roundTrip(t, m)
	})
}
