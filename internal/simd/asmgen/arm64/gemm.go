package arm64

import "fmt"

// Registers of micro-kernels. The accumulator of row i and vector j of columns is vector register i*width+j.
const (
	tileArg   = 0
	aReg      = 1
	bReg      = 2
	kReg      = 3
	aStep     = 4 // strides, in bytes
	bStep     = 5
	cReg      = 6
	cStep     = 7
	rowsReg   = 8
	colsReg   = 9
	bAgain    = 10 // B for the second group of rows
	rowReg    = 11 // rows of A from here on, but for the platform's R18
	bVector   = 24 // a row of B
	aVector   = 27 // factors out of A
	alphaReg  = 24 // after the products
	betaReg   = 25
	oldVector = 26 // a row of C
)

const (
	tileRows   = 8
	tileWidth  = 3 // vectors
	tileUnroll = 4 // steps of the inner dimension
)

// gemmFiles are the functions of package gemm.
func gemmFiles() map[string][]byte {
	t := &text{}
	t.b.WriteString(header + "#include \"go_asm.h\"\n" + include)
	tileKernels(t)
	packKernel(t)
	dotKernels(t)
	axpyKernels(t)
	return map[string][]byte{"gemm/micro_gen_arm64.s": []byte(t.b.String())}
}

// tileKernels writes the function with a micro-kernel for each shape of a tile, and for both ways in which A may lie. With
// 8×12 elements 24 registers accumulate, 3 hold a row of B and 4 a column of A with the next.
func tileKernels(t *text) {
	t.line("\n// func tileNEON(t *Tile)")
	t.line("TEXT ·tileNEON(SB), NOSPLIT, $0-8")
	t.ins("MOVD t+0(FP), R%d", tileArg)
	for i, field := range []string{"A", "B", "K", "AK", "BK", "C", "LDC", "Rows", "Cols"} {
		t.ins("MOVD Tile_%s(R%d), R%d", field, tileArg, aReg+i)
	}
	t.ins("LSL $2, R%d, R%d", bStep, bStep)
	t.ins("LSL $2, R%d, R%d", cStep, cStep)
	t.ins("CMP $1, R%d", aStep)
	t.ins("BEQ byRows")
	t.ins("LSL $2, R%d, R%d", aStep, aStep)
	choose(t, "c", func(rows, width int) { columnsOfA(t, rows, width) })
	t.label("byRows")
	t.ins("MOVD Tile_AI(R%d), R%d", tileArg, aStep)
	t.ins("LSL $2, R%d, R%d", aStep, aStep)
	choose(t, "r", func(rows, width int) { rowsOfA(t, rows, width) })
	for rows := tileRows; rows > 0; rows-- {
		for width := tileWidth; width > 0; width-- {
			storeTile(t, rows, width)
		}
	}
}

// shapeName is the part of labels that names a shape.
func shapeName(rows, width int) string { return fmt.Sprintf("%dx%d", rows, lanes*width) }

// choose writes the branches to the code for a shape, and that code. Whole tiles come first.
func choose(t *text, prefix string, body func(rows, width int)) {
	for rows := tileRows; rows > 1; rows-- {
		t.ins("CMP $%d, R%d", rows, rowsReg)
		t.ins("BEQ %s%d", prefix, rows)
	}
	for _, rows := range []int{1, 8, 7, 6, 5, 4, 3, 2} {
		if rows > 1 {
			t.label(fmt.Sprintf("%s%d", prefix, rows))
		}
		for width := tileWidth; width > 1; width-- {
			t.ins("CMP $%d, R%d", lanes*width, colsReg)
			t.ins("BEQ %s%s", prefix, shapeName(rows, width))
		}
		for _, width := range []int{1, 3, 2} {
			if width > 1 {
				t.label(prefix + shapeName(rows, width))
			}
			body(rows, width)
		}
	}
}

// products writes the loops over the inner dimension: by tileUnroll steps, then by single ones.
func products(t *text, name string, rows, width int, step func(count int)) {
	for i := range rows * width {
		t.vec("zero", i)
	}
	t.ins("SUBS $%d, R%d, R%d", tileUnroll, kReg, kReg)
	t.ins("BLT %sRest", name)
	t.loop(name + "Loop")
	step(tileUnroll)
	t.ins("SUBS $%d, R%d, R%d", tileUnroll, kReg, kReg)
	t.ins("BGE %sLoop", name)
	t.label(name + "Rest")
	t.ins("ADDS $%d, R%d, R%d", tileUnroll, kReg, kReg)
	t.ins("BEQ store%s", shapeName(rows, width))
	t.label(name + "One")
	step(1)
	t.ins("SUBS $1, R%d, R%d", kReg, kReg)
	t.ins("BNE %sOne", name)
	t.ins("B store%s", shapeName(rows, width))
	t.line("")
}

// lane is where a factor lies.
type lane struct{ reg, lane int }

// loadColumn loads a column of A into two registers and tells where each row's factor is. Of five to seven rows both
// registers hold some, so that nothing beside them is read.
func loadColumn(t *text, rows, reg int) []lane {
	at := make([]lane, rows)
	for i := range at {
		at[i] = lane{reg, i}
	}
	second := func(op string, first int) {
		t.ins("%s %d(R%d), F%d", op, 4*first, aReg, reg+1)
		for i := first; i < rows; i++ {
			at[i] = lane{reg + 1, i - first}
		}
	}
	switch rows {
	case 1:
		t.ins("FMOVS (R%d), F%d", aReg, reg)
	case 2, 3:
		t.ins("FMOVD (R%d), F%d", aReg, reg)
		if rows == 3 {
			second("FMOVS", 2)
		}
	case 8:
		t.ins("FLDPQ (R%d), (F%d, F%d)", aReg, reg, reg+1)
		for i := 4; i < rows; i++ {
			at[i] = lane{reg + 1, i - 4}
		}
	default:
		t.ins("FMOVQ (R%d), F%d", aReg, reg)
		if rows > 4 {
			second("FMOVQ", rows-4)
		}
	}
	t.ins("ADD R%d, R%d, R%d", aStep, aReg, aReg)
	return at
}

// loadB loads a vector of the row of B that a register points to.
func loadB(t *text, reg, j int) { t.ins("FMOVQ %d(R%d), F%d", 16*j, reg, bVector+j) }

// columnsOfA is for AI = 1. Each step loads the next one's operands as soon as a register has been used for the last time.
func columnsOfA(t *text, rows, width int) {
	products(t, "c"+shapeName(rows, width), rows, width, func(count int) {
		factors := loadColumn(t, rows, aVector)
		for j := range width {
			loadB(t, bReg, j)
		}
		for p := range count {
			t.ins("ADD R%d, R%d, R%d", bStep, bReg, bReg)
			var next []lane
			if p+1 < count {
				next = loadColumn(t, rows, aVector+2*((p+1)%2))
			}
			for j := range width {
				for i, f := range factors {
					t.vec("fmla.e", i*width+j, bVector+j, f.reg, f.lane)
				}
				if p+1 < count {
					loadB(t, bReg, j)
				}
			}
			factors = next
		}
	})
}

// row is the register that points to a row of A.
func row(i int) int {
	if i < 7 {
		return rowReg + i
	}
	return rowReg + i + 1
}

// rowsOfA is for AK = 1: a register holds factors of four steps of a row of A. Rows go in groups of at most four, for which
// there are registers; the second group reads B again.
func rowsOfA(t *text, rows, width int) {
	t.ins("MOVD R%d, R%d", aReg, row(0))
	for i := 1; i < rows; i++ {
		t.ins("ADD R%d, R%d, R%d", aStep, row(i-1), row(i))
	}
	products(t, "r"+shapeName(rows, width), rows, width, func(count int) {
		for first := 0; first < rows; first += 4 {
			group := min(rows-first, 4)
			for i := range group {
				if count == 1 {
					t.ins("FMOVS.P 4(R%d), F%d", row(first+i), aVector+i)
				} else {
					t.ins("FMOVQ.P 16(R%d), F%d", row(first+i), aVector+i)
				}
			}
			b := bReg
			if first+group < rows {
				b = bAgain
				t.ins("MOVD R%d, R%d", bReg, bAgain)
			}
			for j := range width {
				loadB(t, b, j)
			}
			for p := range count {
				if p+1 < count || b == bReg {
					t.ins("ADD R%d, R%d, R%d", bStep, b, b)
				}
				for j := range width {
					for i := range group {
						t.vec("fmla.e", (first+i)*width+j, bVector+j, aVector+i, p)
					}
					if p+1 < count {
						loadB(t, b, j)
					}
				}
			}
		}
	})
}

// storeTile writes alpha·sum + beta·C.
func storeTile(t *text, rows, width int) {
	name := "store" + shapeName(rows, width)
	t.label(name)
	t.ins("FMOVS Tile_Alpha(R%d), F%d", tileArg, alphaReg)
	t.ins("FMOVS Tile_Beta(R%d), F%d", tileArg, betaReg)
	t.ins("FCMPS $(0.0), F%d", betaReg)
	t.ins("BNE %sBeta", name)
	for _, beta := range []bool{false, true} {
		if beta {
			t.label(name + "Beta")
		}
		for i := range rows {
			if beta {
				moveRow(t, true, width, oldVector)
			}
			for j := range width {
				acc := i*width + j
				t.vec("fmul.e", acc, acc, alphaReg, 0)
				if beta {
					t.vec("fmla.e", acc, oldVector+j, betaReg, 0)
				}
			}
			moveRow(t, false, width, i*width)
			if i+1 < rows {
				t.ins("ADD R%d, R%d, R%d", cStep, cReg, cReg)
			}
		}
		t.ins("RET")
	}
	t.line("")
}

// moveRow loads or stores the vectors of a row of C.
func moveRow(t *text, load bool, width, first int) {
	if width > 1 {
		moveVectors(t, load, "", cReg, 0, first, first+1)
	}
	if width%2 == 1 {
		moveVectors(t, load, "", cReg, 16*(width-1), first+width-1)
	}
}

// exchange makes columns of the four rows in V0 to V3; V4 to V7 change.
func exchange(t *text) {
	for i := range 2 { // rows that are two apart, then what came of neighbours
		t.vec("zip1", 4+2*i, i, i+2)
		t.vec("zip2", 5+2*i, i, i+2)
	}
	for i := range 2 {
		t.vec("zip1", 2*i, 4+i, 6+i)
		t.vec("zip2", 2*i+1, 4+i, 6+i)
	}
}

// packKernel writes the function that packs four lanes whose steps are contiguous.
func packKernel(t *text) {
	const dst, rows, width, k = 0, 1, 2, 3
	t.line("\n// func transposeNEON(dst *float32, rows **float32, width int, k int)")
	t.line("TEXT ·transposeNEON(SB), NOSPLIT, $0-32")
	for i, name := range []string{"dst", "rows", "width", "k"} {
		t.ins("MOVD %s+%d(FP), R%d", name, 8*i, i)
	}
	for i := range lanes {
		t.ins("MOVD %d(R%d), R%d", 8*i, rows, row(i))
	}
	t.ins("LSL $2, R%d, R%d", width, width)
	t.ins("SUBS $%d, R%d, R%d", lanes, k, k)
	t.ins("BLT rest")
	t.loop("loop")
	for i := range lanes {
		t.ins("FMOVQ.P 16(R%d), F%d", row(i), i)
	}
	exchange(t)
	for p := range lanes {
		t.ins("FMOVQ F%d, (R%d)", p, dst)
		t.ins("ADD R%d, R%d, R%d", width, dst, dst)
	}
	t.ins("SUBS $%d, R%d, R%d", lanes, k, k)
	t.ins("BGE loop")
	t.label("rest")
	t.ins("ADDS $%d, R%d, R%d", lanes, k, k)
	t.ins("BEQ done")
	t.label("one")
	for i := range lanes {
		t.ins("FMOVS.P 4(R%d), F%d", row(i), i)
	}
	for i := range 2 {
		t.vec("zip1", 4+i, i, i+2)
	}
	t.vec("zip1", 0, 4, 5)
	t.ins("FMOVQ F0, (R%d)", dst)
	t.ins("ADD R%d, R%d, R%d", width, dst, dst)
	t.ins("SUBS $1, R%d, R%d", k, k)
	t.ins("BNE one")
	t.label("done")
	t.ins("RET")
}
