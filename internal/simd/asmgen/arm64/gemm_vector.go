package arm64

import "fmt"

// widened is what a matrix holds that meets a vector of float32: eight elements become two vectors in registers.
type widened struct {
	suffix, goType string
	size           int
	lower, upper   string // instructions that widen halves of a register; none for float32
}

var widths = []widened{{"", "float32", 4, "", ""}, {"F16", "uint16", 2, "fcvtl", "fcvtl2"}, {"BF16", "uint16", 2, "shll", "shll2"}}

// load loads eight elements into a register and the next, and moves the pointer on.
func (w *widened) load(t *text, pointer, to int) {
	if w.size == 4 {
		moveVectors(t, true, ".P", pointer, 32, to, to+1)
		return
	}
	moveVectors(t, true, ".P", pointer, 16, to+1)
	t.vec(w.lower, to, to+1)
	t.vec(w.upper, to+1, to+1)
}

// loadOne loads an element, and zeros into the other lanes.
func (w *widened) loadOne(t *text, pointer, to, spare int) {
	if w.size == 4 {
		t.ins("FMOVS.P 4(R%d), F%d", pointer, to)
		return
	}
	t.ins("MOVHU.P 2(R%d), R%d", pointer, spare)
	t.ins("FMOVS R%d, F%d", spare, to)
	t.vec(w.lower, to, to)
}

// begin begins a function of rows of a matrix, ld elements apart, and loads its arguments into R0 to R5, ld in bytes.
func (w *widened) begin(t *text, name, x, rows string) string {
	const ld = 2
	name += w.suffix
	t.line("\n// func %sNEON(y *float32, a *%s, ld int, %s *float32, n int, %s int)", name, w.goType, x, rows)
	t.line("TEXT ·%sNEON(SB), NOSPLIT, $0-48", name)
	for i, arg := range []string{"y", "a", "ld", x, "n", rows} {
		t.ins("MOVD %s+%d(FP), R%d", arg, 8*i, i)
	}
	t.ins("LSL $%d, R%d, R%d", w.size/2, ld, ld)
	return name
}

// dotKernels write the functions that multiply rows with a vector: four at a time, which share what is loaded of it, then single ones.
// Loads limit them: of four rows 10 in 16 multiplications of float32, and of 8 with halves, which take as many conversions.
func dotKernels(t *text) {
	const y, a, ld, x, n, rows = 0, 1, 2, 3, 4, 5
	const left, at, spare, row = 6, 7, 8, 9 // of the present group
	for _, w := range widths {
		name := w.begin(t, "dotRows", "x", "rows")
		for _, together := range []int{4, 1} {
			label := func(s string) string { return fmt.Sprintf("%s%s%d", name, s, together) }
			pairs := 1 // of vectors in a step: a single row has as many sums as multiplications are in flight
			if together == 1 {
				pairs = 2
			}
			sum := func(r, v int) int { return 2*pairs*r + v }
			t.ins("SUBS $%d, R%d, R%d", together, rows, rows)
			t.ins("BLT %s", label("None"))
			t.label(label("Group"))
			for r := range together {
				if r == 0 {
					t.ins("MOVD R%d, R%d", a, row)
				} else {
					t.ins("ADD R%d, R%d, R%d", ld, row+r-1, row+r)
				}
			}
			t.ins("ADD R%d, R%d, R%d", ld, row+together-1, a)
			t.ins("MOVD R%d, R%d", x, at)
			for i := range sum(together, 0) {
				t.vec("zero", i)
			}
			t.ins("SUBS $%d, R%d, R%d", 8*pairs, n, left)
			t.ins("BLT %s", label("Rest"))
			t.loop(label("Loop"))
			for p := range pairs {
				const v = 16
				moveVectors(t, true, ".P", at, 32, v, v+1)
				for r := range together {
					to := 18 + 2*r
					w.load(t, row+r, to)
					t.vec("fmla", sum(r, 2*p), to, v)
					t.vec("fmla", sum(r, 2*p+1), to+1, v+1)
				}
			}
			t.ins("SUBS $%d, R%d, R%d", 8*pairs, left, left)
			t.ins("BGE %s", label("Loop"))
			t.label(label("Rest"))
			t.ins("ADDS $%d, R%d, R%d", 8*pairs, left, left)
			t.ins("BEQ %s", label("Sum"))
			t.label(label("One")) // in the lowest lane; the others are zeros
			t.ins("FMOVS.P 4(R%d), F16", at)
			for r := range together {
				w.loadOne(t, row+r, 18, spare)
				t.vec("fmla", sum(r, 0), 18, 16)
			}
			t.ins("SUBS $1, R%d, R%d", left, left)
			t.ins("BNE %s", label("One"))
			t.label(label("Sum"))
			for i := 0; i < sum(together, 0); i += 2 {
				t.vec("fadd", i, i, i+1)
			}
			if together == 4 {
				t.vec("faddp", 0, 0, 2)
				t.vec("faddp", 4, 4, 6)
				t.vec("faddp", 0, 0, 4)
				t.ins("FMOVQ.P F0, 16(R%d)", y)
			} else {
				t.vec("fadd", 0, 0, 2)
				t.vec("faddp", 0, 0, 0)
				t.vec("faddp.s", 0, 0)
				t.ins("FMOVS.P F0, 4(R%d)", y)
			}
			t.ins("SUBS $%d, R%d, R%d", together, rows, rows)
			t.ins("BGE %s", label("Group"))
			t.label(label("None"))
			t.ins("ADDS $%d, R%d, R%d", together, rows, rows)
		}
		t.ins("RET")
	}
}

// axpyKernels write the functions that add rows, eight at a time, each times a factor. Loads limit them, and conversions of halves.
func axpyKernels(t *text) {
	const y, a, ld, f, n, eights = 0, 1, 2, 3, 4, 5
	const left, at, row, spare = 6, 7, 8, 16 // of the present eight; rows have registers up to 15
	const factors, v, to = 16, 18, 20
	for _, w := range widths {
		name := w.begin(t, "axpyRows", "f", "eights")
		t.label(name + "Group")
		for r := range 8 {
			t.ins("MOVD R%d, R%d", a, row+r)
			t.ins("ADD R%d, R%d, R%d", ld, a, a)
		}
		moveVectors(t, true, ".P", f, 32, factors, factors+1)
		t.ins("MOVD R%d, R%d", y, at)
		t.ins("SUBS $8, R%d, R%d", n, left)
		t.ins("BLT %sRest", name)
		t.loop(name + "Loop")
		moveVectors(t, true, "", at, 0, v, v+1)
		for r := range 8 {
			to := to + r%4*2
			w.load(t, row+r, to)
			t.vec("fmla.e", v, to, factors+r/4, r%4)
			t.vec("fmla.e", v+1, to+1, factors+r/4, r%4)
		}
		moveVectors(t, false, ".P", at, 32, v, v+1)
		t.ins("SUBS $8, R%d, R%d", left, left)
		t.ins("BGE %sLoop", name)
		t.label(name + "Rest")
		t.ins("ADDS $8, R%d, R%d", left, left)
		t.ins("BEQ %sNext", name)
		t.label(name + "One")
		t.ins("FMOVS (R%d), F%d", at, v)
		for r := range 8 {
			to := to + r%4*2
			w.loadOne(t, row+r, to, spare)
			t.vec("fmla.e", v, to, factors+r/4, r%4)
		}
		t.ins("FMOVS.P F%d, 4(R%d)", v, at)
		t.ins("SUBS $1, R%d, R%d", left, left)
		t.ins("BNE %sOne", name)
		t.label(name + "Next")
		t.ins("SUBS $1, R%d, R%d", eights, eights)
		t.ins("BNE %sGroup", name)
		t.ins("RET")
	}
}
