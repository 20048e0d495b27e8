package ir

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
)

// formsOfOp are the forms of a root, parsed when first asked for: a program uses few of them.
type formsOfOp struct {
	lines []string
	forms func() []*Form
}

// formTable is the table by roots.
var formTable = sync.OnceValue(func() map[Op]*formsOfOp {
	m := map[Op]*formsOfOp{}
	for _, text := range []string{arithmeticForms, logicForms, moveForms, convertForms, memoryForms, atomicForms, controlForms,
		warpForms, matrixForms, sparseForms, orderedForms, tensorForms, tensorMoves(), asyncForms, mbarrierForms, textureForms, videoForms} {
		for line := range strings.SplitSeq(text, "\n") {
			if line == "" || line[0] == '#' {
				continue
			}
			op, _, ok := SplitOpcode(fixedPart(line))
			if !ok {
				panic("table of forms: " + line)
			}
			of := m[op]
			if of == nil {
				of = &formsOfOp{}
				of.forms = sync.OnceValue(of.parse)
				m[op] = of
			}
			of.lines = append(of.lines, line)
		}
	}
	return m
})

func (of *formsOfOp) parse() []*Form {
	var forms []*Form
	for _, line := range of.lines {
		for _, l := range places(line) {
			forms = append(forms, parseForm(l))
		}
	}
	return forms
}

// fixedPart is the beginning of the opcode in a line, as far as there is no choice.
func fixedPart(line string) string {
	if i := strings.IndexAny(line, "{($ "); i >= 0 {
		line = line[:i]
	}
	return strings.TrimSuffix(line, ".")
}

// macros are the abbreviations of the table.
var macros = strings.NewReplacer(append(wgmmaShapes(),
	"$int", "u16 u32 u64 s16 s32 s64",
	"$ld", "b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
	"$vec", vectors(),
	"$sel", "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
	"$word", "(u32 s32)",
	"$rnd", "rn rz rm rp",
	"$rint", "rni rzi rmi rpi",
	"$fcmp", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
	"$sem", "relaxed@70/6.0 acquire@70/6.0",
	"$scope", "cta gpu sys cluster@90/7.8",
	"$shared", "shared shared::cta@50/7.8",
	"$order", "{.(relaxed@70/6.0 acquire@70/6.0 release@70/6.0 acq_rel@70/6.0)}"+atomicScope,
	"$releasing", "{.(relaxed@70/6.0 release@70/6.0)}"+atomicScope,
	"$released", "release.cta@80/8.0 release.cluster@90/8.0 relaxed.cta@90/8.6 relaxed.cluster@90/8.6",
	"$acquired", "acquire.cta@80/8.0 acquire.cluster@90/8.0 relaxed.cta@90/8.6 relaxed.cluster@90/8.6",
	"$reduced", "{.(weak relaxed.cta relaxed.cluster relaxed.gpu relaxed.sys acquire.gpu acquire.sys)}",
	"$priority", "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
	"$wshape", "m16n16k16 m8n32k16 m32n8k16",
	"$s8", "u8.u8 s8.s8 u8.s8@90a/8.4 s8.u8@90a/8.4",
	"$prefetch", "{.(L2::64B@75/7.4 L2::128B@75/7.4 L2::256B@80/7.4)}",
	"$hint", "{.L2::cache_hint@80/7.4}",
	"$pol", "s:u64@L2::cache_hint",
	"$evict", "{.(L1::evict_normal@70/7.4 L1::evict_unchanged@70/7.4 L1::evict_first@70/7.4 L1::evict_last@70/7.4 "+
		"L1::no_allocate@70/7.4)}",
	"$tx", "mbarrier::complete_tx::bytes",
	"$group", "(cta_group::1 cta_group::2)",
	"$kind", "(kind::f16 kind::tf32 kind::f8f6f4 kind::i8)",
	"$scaled", "(kind::mxf8f6f4.block_scale.scale_vec::1X kind::mxf4.block_scale.scale_vec::2X "+
		"kind::mxf4nvf4.block_scale.scale_vec::2X@100a/8.7 kind::mxf4nvf4.block_scale.scale_vec::4X@100a/8.7 "+
		"kind::mxf8f6f4.block_scale@100a/8.8 kind::mxf8f6f4.block_scale.block32@100a/8.8 kind::mxf4.block_scale@100a/8.8 "+
		"kind::mxf4.block_scale.block32@100a/8.8 kind::mxf4nvf4.block_scale.block16@100a/8.8 kind::mxf4nvf4.block_scale.block32@100a/8.8)",
	"$multicast", "64x128b.warpx2::02_13 64x128b.warpx2::01_23 32x128b.warpx4 "+
		"warpx2::02_13.64x128b warpx2::01_23.64x128b warpx4.32x128b",
	"$collector", "{.(collector::a::fill collector::a::use collector::a::lastuse collector::a::discard)}",
	"$dim", "1d 2d 3d 4d 5d")...)

const atomicScope = "{.(cta@60/5.0 gpu@60/5.0 sys@60/5.0 cluster@90/7.8)}"

// places makes two lines of one with $place or $common: hints about caches go with global and generic addresses only. $common
// is without the local space.
func places(line string) []string {
	far := strings.NewReplacer("$place", "{.global}", "$common", "{.global}")
	near := strings.NewReplacer("$place", ".(local $shared shared::cluster@90/7.8)",
		"$common", ".($shared shared::cluster@90/7.8)", "$evict", "", "$hint", "", "$prefetch", "", "$pol", "")
	if far.Replace(line) == line {
		return []string{line}
	}
	return []string{far.Replace(line), near.Replace(line)}
}

// vectors are the types that loads and stores move, and vectors of them of up to 128 bits.
func vectors() string {
	types := strings.Fields("b8 b16 b32 b64 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64")
	list := types
	for _, t := range types {
		list = append(list, "v2."+t)
		if !strings.HasSuffix(t, "64") {
			list = append(list, "v4."+t)
		}
	}
	return strings.Join(list, " ")
}

// wgmmaShapes are the macros $wk8 … for the shapes m64nNk8 …; $wi32 and $wi256 have the fewer N of integers and bits.
func wgmmaShapes() []string {
	var list []string
	for _, k := range []string{"k8", "k16", "k32", "i32", "i256"} {
		var shapes []string
		for n := 8; n <= 256; n += 8 {
			if k[0] == 'k' || n <= 24 || n%16 == 0 {
				shapes = append(shapes, fmt.Sprintf("m64n%dk%s", n, k[1:]))
			}
		}
		list = append(list, "$w"+k, strings.Join(shapes, " "))
	}
	return list
}

func parseForm(line string) *Form {
	f := &Form{Syntax: line, SM: OldestTarget, PTX: OldestVersion}
	line = macros.Replace(line)
	if code, need, ok := strings.Cut(line, "|"); ok {
		words := strings.Fields(need)
		f.SM, f.PTX = parseNeed(words[0] + "/" + words[1])
		line = strings.TrimSpace(code)
	}
	code, args := line, ""
	for i, depth := 0, 0; i < len(line); i++ {
		switch line[i] {
		case '(', '{':
			depth++
		case ')', '}':
			depth--
		}
		if depth == 0 && line[i] == ' ' {
			code, args = line[:i], line[i:]
			break
		}
	}
	fixed := fixedPart(code)
	op, mods, _ := SplitOpcode(fixed)
	f.Op = op
	for _, m := range mods {
		f.parts = append(f.parts, part{alts: []alternative{{mods: []Mod{m}}}})
	}
	f.parts = append(f.parts, parseParts(code[len(fixed):])...)
	for _, a := range strings.Fields(args) {
		f.args = append(f.args, parseArgument(a))
	}
	return f
}

// parseParts reads {.a}, .(a b), .a in turn.
func parseParts(s string) []part {
	var parts []part
	for s != "" {
		p := part{}
		var inner string
		switch {
		case s[0] == '{':
			inner, s, _ = strings.Cut(s[1:], "}")
			p.optional = true
		case strings.HasPrefix(s, ".("):
			i := strings.IndexByte(s, ')')
			inner, s = s[:i+1], s[i+1:]
		default:
			i := strings.IndexAny(s[1:], ".{")
			if i < 0 {
				i = len(s) - 1
			}
			inner, s = s[:i+1], s[i+1:]
		}
		inner = strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(inner, "."), "("), ")")
		for a := range strings.FieldsSeq(inner) {
			word, need, _ := strings.Cut(a, "@")
			alt := alternative{}
			for m := range strings.SplitSeq(word, ".") {
				alt.mods = append(alt.mods, Mod(m))
			}
			if need != "" {
				alt.sm, alt.ptx = parseNeed(need)
			}
			p.alts = append(p.alts, alt)
		}
		parts = append(parts, p)
	}
	return parts
}

// parseNeed reads 90a/8.0.
func parseNeed(s string) (Target, Version) {
	sm, ptx, _ := strings.Cut(s, "/")
	digits := strings.TrimRight(sm, "af")
	t := Target{Suffix: sm[len(digits):]}
	var v Version
	major, minor, _ := strings.Cut(ptx, ".")
	var err [3]error
	t.SM, err[0] = strconv.Atoi(digits)
	v.Major, err[1] = strconv.Atoi(major)
	v.Minor, err[2] = strconv.Atoi(minor)
	if err != [3]error{} {
		panic("table of forms: " + s)
	}
	return t, v
}
