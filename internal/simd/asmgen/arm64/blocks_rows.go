package arm64

// rows is what a function needs that multiplies rows of weights with one row of x. Integers, scales and sums of products stay in registers
// from the bytes of a block to the end of the row, so that rows of a few blocks cost no more by the block than long ones.
//
// Minima, and what a format's offset makes of scales, are subtracted as products with the sums of x.
type rows struct {
	scalesOfStep func() // makes scales of a step
	scales       []int  // vectors of four scales that are left in a step
	sum          int    // of products
	least        int    // sum of products of minima, or of scales, with sums of x
	factor       int    // of those, in lane 0: the offset
	added        bool   // minima are what is added, rather
	words        [4]int // see spread
	partial      [2]int // sums of one vector and of two that wait for their neighbours, −1 for none
	single       bool   // there is one group of 32 values in a step
	groups       int    // of products with floats that a step has had
}

// Registers of the parameters, and of what moves in a row.
const (
	rowsY = iota
	rowsX
	rowsScale
	rowsSum
	rowsW
	rowsStride
	rowsPlane1
	rowsPlane2
	rowsN
	rowsRows
	_ // for constants
	rowFrom
	rowTo
	rowN
	rowPlane1
	rowPlane2
	rowScale
	rowSum
)

// openRows opens the function.
func (f *unpacked) openRows() {
	x := "is *int8: scale and sum are those of its groups."
	name := "rows" + f.name + f.tier()
	if f.unpacking == floats {
		name, x = "rows"+f.name+"Floats"+suffix, "is *float32: sum is those of its groups, and scale is not used."
	}
	f.begin(name, "multiplies rows ≥ 1 of n ≥ 1 blocks, stride bytes apart, whose other planes begin plane1 and plane2 bytes after w, with a row x that "+x,
		false, "y *float32", "x *byte", "scale *float32", "sum *float32", "w *byte", "stride int", "plane1 int", "plane2 int", "n int", "rows int")
	f.from, f.to, f.n, f.high, f.partial = rowFrom, rowTo, rowN, rowPlane1, [2]int{-1, -1}
	f.sum = f.take()
	if f.subtracts() {
		f.least = f.take()
	}
	if f.offset > 0 {
		f.factor = f.take()
		f.ins("FMOVS $%d.0, F%d", f.offset, f.factor)
	}
	if f.unpacking == floats || f.planes[0] > 32 { // formats of 256 values pack their scales
		f.words = f.spread()
	}
}

func (f *unpacked) subtracts() bool { return f.affine || f.offset > 0 }

// eachRow writes the loops over rows and blocks.
func (f *unpacked) eachRow(values int, do func(block int)) {
	f.loop("row")
	f.ins("MOVD R%d, R%d", rowsW, f.from)
	f.ins("MOVD R%d, R%d", rowsX, f.to)
	f.ins("MOVD R%d, R%d", rowsN, f.n)
	for i, plane := range [2]int{rowsPlane1, rowsPlane2} {
		if f.planes[i+1] > 0 {
			f.ins("ADD R%d, R%d, R%d", plane, rowsW, rowPlane1+i)
		}
	}
	size, groups := 1, []int(nil)
	if f.unpacking == floats {
		size = 4
	} else {
		f.ins("MOVD R%d, R%d", rowsScale, rowScale)
		groups = append(groups, rowScale)
	}
	f.vec("zero", f.sum)
	if f.subtracts() {
		f.ins("MOVD R%d, R%d", rowsSum, rowSum)
		groups = append(groups, rowSum)
		f.vec("zero", f.least)
	}
	f.eachBlock(values, do, func(blocks int) {
		for i, r := range [3]int{f.from, rowPlane1, rowPlane2} {
			f.forward(f.planes[i]*blocks, r)
		}
		f.forward(size*values*blocks, f.to)
		for _, r := range groups {
			f.forward(4*values/f.width*blocks, r)
		}
	})
	switch {
	case f.offset > 0:
		f.vec("fmls.e", f.sum, f.least, f.factor, 0)
	case f.added:
		f.vec("fadd", f.sum, f.sum, f.least)
	case f.affine:
		f.vec("fsub", f.sum, f.sum, f.least)
	}
	f.vec("faddp", f.sum, f.sum, f.sum)
	f.vec("faddp.s", f.sum, f.sum)
	f.ins("FMOVS.P F%d, 4(R%d)", f.sum, rowsY)
	f.ins("ADD R%d, R%d, R%d", rowsStride, rowsW, rowsW)
	f.ins("SUBS $1, R%d, R%d", rowsRows, rowsRows)
	f.ins("BNE row")
	f.ins("RET")
}

// step makes the scales of a step.
func (f *unpacked) step() {
	f.groups = 0
	if f.unpacking != stored {
		f.scalesOfStep()
	}
}

// put takes vector k of scales: times those of x, they wait for their groups.
func (f *unpacked) put(k, w int) {
	if f.offset > 0 {
		f.subtract(k, w)
	}
	if f.unpacking != floats {
		s := f.ofGroup("FMOVQ", rowScale, k)
		f.vec("fmul", w, w, s)
		f.free(s)
	}
	f.scales = append(f.scales, w)
}

// putLeast takes a vector of minima.
func (f *unpacked) putLeast(k, w int) {
	f.subtract(k, w)
	f.free(w)
}

func (f *unpacked) subtract(k, w int) {
	s := f.ofGroup("FMOVQ", rowSum, k)
	f.vec("fmla", f.least, w, s)
	f.free(s)
}

// ofGroup loads scales or sums of x.
func (f *unpacked) ofGroup(move string, pointer, k int) int {
	s := f.take()
	f.ins("%s %d(R%d), F%d", move, 16*k, pointer, s)
	return s
}

// scaling32 is for formats of 32 values: four blocks in a step, or a single one, of which lane 0 of vectors is.
func (f *unpacked) scaling32(plane int) {
	f.added = f.affine
	from := rowPlane1 + plane - 1
	f.scalesOfStep = func() {
		if f.single {
			f.scaleSingle(from)
			return
		}
		d := f.take()
		if !f.affine {
			f.ins("FMOVD (R%d), F%d", from, d)
			f.vec("fcvtl", d, d)
			f.put(0, d)
			return
		}
		f.ins("FMOVQ (R%d), F%d", from, d)
		least := f.take()
		f.vec("uzp2.h", least, d, d)
		f.vec("uzp1.h", d, d, d)
		f.vec("fcvtl", least, least)
		f.vec("fcvtl", d, d)
		f.put(0, d)
		f.putLeast(0, least)
	}
}

func (f *unpacked) scaleSingle(from int) {
	d := f.halves(from, f.affine)
	if f.subtracts() {
		lane := 0
		if f.affine {
			lane = 1
		}
		s := f.ofGroup("FMOVS", rowSum, 0)
		f.vec("fmla.e", f.least, s, d, lane)
		f.free(s)
	}
	if f.unpacking != floats {
		s := f.ofGroup("FMOVS", rowScale, 0)
		f.vec("fmul", d, d, s)
		f.free(s)
	}
	f.scales = append(f.scales, d)
}

func (f *unpacked) scalingK4() {
	if f.unpacking == stored {
		return
	}
	scales := f.scalesK4(f.words)
	f.scalesOfStep = func() {
		scales(f.from, func(k, w int) {
			if k < 2 {
				f.put(k, w)
			} else {
				f.putLeast(k-2, w)
			}
		})
	}
}

func (f *unpacked) scalingQ2K() {
	if f.unpacking == stored {
		return
	}
	scales := f.scalesQ2K(f.words)
	f.scalesOfStep = func() { scales(f.from, rowPlane1, f.put, f.putLeast) }
}

func (f *unpacked) scalingQ3K() {
	if f.unpacking == stored {
		return
	}
	scales := f.scalesQ3K(f.words)
	f.scalesOfStep = func() { scales(rowPlane1, rowPlane2, f.put) }
}

func (f *unpacked) scalingQ6K() {
	if f.unpacking == stored {
		return
	}
	scales := f.scalesQ6K(f.words)
	f.scalesOfStep = func() { scales(f.from, rowPlane1, f.put) }
}
