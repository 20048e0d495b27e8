package x86

import (
	"bytes"
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// tileTier is a tier that transposes square tiles of as many 4-byte words as its vectors have.
type tileTier struct {
	name  string
	parts int // parts of 16 bytes in a vector
}

func (t tileTier) side() int { return 4 * t.parts }

// vector is the tier's register i.
func (t tileTier) vector(i int) reg.VecPhysical {
	return [][]reg.VecPhysical{
		1: {reg.X0, reg.X1, reg.X2, reg.X3, reg.X4, reg.X5, reg.X6, reg.X7},
		2: {reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7},
		4: {reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7},
	}[t.parts][i]
}

// transposeFiles are the kernels of the transposition.
func transposeFiles() (map[string][]byte, error) {
	c := build.NewContext()
	for _, t := range []tileTier{{"SSE", 1}, {"AVX2", 2}, {"AVX512", 4}} {
		t.transpose(c)
		t.evens(c)
	}
	return assembled(c, "kernels", "transpose")
}

// transpose emits the function of one tier.
//
// Four columns of the tile are read at a time, 16 bytes of every row: register q takes those of rows q, q+4, q+8 and so on,
// one to each part. What remains is to transpose the 4×4 words that four registers have in each part, and then each register
// is a row of the result.
func (t tileTier) transpose(c *build.Context) {
	side := t.side()
	c.Function("transpose" + t.name)
	c.Pragma("noescape")
	c.SignatureExpr("func(dst, src *uint32, ldd, lds, n int)")
	c.Doc(fmt.Sprintf("transpose%s transposes n tiles of %d×%d words, one below the other in src and side by side in dst.",
		t.name, side, side),
		"Rows are ldd and lds words apart.")
	dst, src := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64())
	ldd, lds := c.Load(c.Param("ldd"), c.GP64()), c.Load(c.Param("lds"), c.GP64())
	n := c.Load(c.Param("n"), c.GP64())
	c.SHLQ(operand.U8(2), ldd)
	c.SHLQ(operand.U8(2), lds)
	if t.parts == 4 {
		mask := c.GP32()
		for i, k := range []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3} {
			c.MOVL(operand.U32(0xF0<<(4*i)), mask)
			c.KMOVW(mask, k)
		}
	}
	c.Label("tile")
	c.TESTQ(n, n)
	c.JZ(operand.LabelRef("done"))
	row, to := c.GP64(), c.GP64()
	c.MOVQ(dst, to)
	for group := range side / 4 {
		c.MOVQ(src, row)
		for part := range t.parts {
			for q := range 4 {
				t.load(c, q, part, operand.Mem{Base: row, Disp: 16 * group})
				c.ADDQ(lds, row)
			}
		}
		t.four(c)
		for q := range 4 {
			t.store(c, q, operand.Mem{Base: to})
			c.ADDQ(ldd, to)
		}
	}
	c.MOVQ(row, src)
	c.ADDQ(operand.U32(4*side), dst)
	c.DECQ(n)
	c.JMP(operand.LabelRef("tile"))
	c.Label("done")
	if t.parts > 1 {
		c.VZEROUPPER()
	}
	c.RET()
}

// evens emits the function that takes every second word.
func (t tileTier) evens(c *build.Context) {
	c.Function("evens" + t.name)
	c.Pragma("noescape")
	c.SignatureExpr("func(dst, src *uint32, n int)")
	c.Doc(fmt.Sprintf("evens%s copies every second word of src, the first included, to dst: n times %d of them.",
		t.name, t.evenWords()))
	dst, src, n := c.Load(c.Param("dst"), c.GP64()), c.Load(c.Param("src"), c.GP64()), c.Load(c.Param("n"), c.GP64())
	c.Label("vector")
	low, high := operand.Mem{Base: src}, operand.Mem{Base: src, Disp: 16 * t.parts}
	switch v := t.vector; t.parts {
	case 1:
		c.MOVUPS(low, v(0))
		c.MOVUPS(high, v(1))
		c.SHUFPS(operand.U8(0x88), v(1), v(0))
		c.MOVUPS(v(0), operand.Mem{Base: dst})
	case 2:
		c.VMOVUPS(low, v(0))
		c.VSHUFPS(operand.U8(0x88), high, v(0), v(0))
		c.VPERMPD(operand.U8(0xD8), v(0), v(0))
		c.VMOVUPS(v(0), operand.Mem{Base: dst})
	default: // the lower words of double words
		c.VMOVUPS(low, v(0))
		c.VPMOVQD(v(0), operand.Mem{Base: dst})
	}
	c.ADDQ(operand.U32(8*t.evenWords()), src)
	c.ADDQ(operand.U32(4*t.evenWords()), dst)
	c.DECQ(n)
	c.JNZ(operand.LabelRef("vector"))
	if t.parts > 1 {
		c.VZEROUPPER()
	}
	c.RET()
}

// evenWords is how many words a step of evens writes.
func (t tileTier) evenWords() int { return min(4*t.parts, 8) }

// load reads 16 bytes into a part of register q; the first part comes first.
func (t tileTier) load(c *build.Context, q, part int, m operand.Mem) {
	to := t.vector(q)
	switch {
	case t.parts == 1:
		c.MOVUPS(m, to)
	case part == 0:
		c.VMOVUPS(m, tileTier{parts: 1}.vector(q))
	case t.parts == 2:
		c.VINSERTF128(operand.U8(1), m, to, to)
	default: // a load with a blend, where an insertion would need the unit of the shuffles
		c.VBROADCASTF32X4(m, []reg.OpmaskPhysical{reg.K1, reg.K2, reg.K3}[part-1], to)
	}
}

func (t tileTier) store(c *build.Context, q int, m operand.Mem) {
	if t.parts == 1 {
		c.MOVUPS(t.vector(q), m)
		return
	}
	c.VMOVUPS(t.vector(q), m)
}

// four transposes the 4×4 words of each part of registers 0 to 3, using 4 to 7.
func (t tileTier) four(c *build.Context) {
	v := t.vector
	if t.parts == 1 {
		for i := range 2 { // 4+i, 6+i: low and high halves of 2i and 2i+1, word by word
			c.MOVAPS(v(2*i), v(4+i))
			c.MOVAPS(v(2*i), v(6+i))
			c.UNPCKLPS(v(2*i+1), v(4+i))
			c.UNPCKHPS(v(2*i+1), v(6+i))
		}
		for i := range 2 {
			c.MOVAPS(v(4+2*i), v(2*i))
			c.MOVAPS(v(4+2*i), v(2*i+1))
			c.UNPCKLPD(v(5+2*i), v(2*i))
			c.UNPCKHPD(v(5+2*i), v(2*i+1))
		}
		return
	}
	for i := range 2 {
		c.VUNPCKLPS(v(2*i+1), v(2*i), v(4+i))
		c.VUNPCKHPS(v(2*i+1), v(2*i), v(6+i))
	}
	for i := range 2 {
		c.VUNPCKLPD(v(5+2*i), v(4+2*i), v(2*i))
		c.VUNPCKHPD(v(5+2*i), v(4+2*i), v(2*i+1))
	}
}

// assembled returns the assembly and the declarations of what was built, for a package.
func assembled(c *build.Context, pkg, name string) (map[string][]byte, error) {
	path := pkg + "/" + name
	file, err := c.Result()
	if err == nil {
		err = pass.Compile.Execute(file)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	files := map[string][]byte{}
	config := printer.Config{Name: "internal/simd/asmgen", Pkg: pkg}
	for suffix, p := range map[string]printer.Printer{
		"_gen_amd64.s":        printer.NewGoAsm(config),
		"_stubs_gen_amd64.go": printer.NewStubs(config),
	} {
		text, err := p.Print(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		_, text, _ = bytes.Cut(text, []byte("\n"))
		files[path+suffix] = append([]byte("// Code generated by internal/simd/asmgen. DO NOT EDIT.\n"), text...)
	}
	return files, nil
}
