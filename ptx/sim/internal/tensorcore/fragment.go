package tensorcore

// How matrices lie in the registers of a warp, as pure functions. Every figure of the PTX ISA ("Matrix Fragments for mma.*")
// is one rule: a 32-bit unit (64-bit for f64) of a matrix belongs to the lane group*4 + thread, where group walks the rows of
// A and C (columns of B) and thread the units along the other dimension; further registers repeat the rule 8 rows or 4 units
// away, rows first. Elements narrower than the unit lie in it in order, the first one in the low bits.

// FragmentA is the place of element e of register reg of lane in A, for an instruction with m rows and per elements to a register.
func FragmentA(m, per, lane, reg, e int) (row, k int) {
	group, thread := lane/4, lane%4
	tall := m / 8 // registers that differ in rows: 1 or 2
	return group + 8*(reg%tall), (thread+4*(reg/tall))*per + e
}

// FragmentB is the place in B, which has 8 columns.
func FragmentB(per, lane, reg, e int) (k, col int) {
	return (lane%4+4*reg)*per + e, lane / 4
}

// FragmentC is the place in C and D, which have 8 columns: element e counts through the registers, two columns each row.
func FragmentC(lane, e int) (row, col int) {
	return lane/4 + 8*(e/2), lane%4*2 + e%2
}

// LdmatrixElement is the lane, and the half of its register, in which ldmatrix, stmatrix and movmatrix keep element (row, col) of an
// 8×8 matrix of 16-bit elements.
func LdmatrixElement(row, col int) (lane, half int) { return row*4 + col/2, col % 2 }

// WgmmaAccumulator is the place of element e of a thread's accumulators of wgmma, in a matrix of 64 rows. Threads 0 to 127 are those
// of the warpgroup.
func WgmmaAccumulator(thread, e int) (row, col int) {
	row, col = FragmentC(thread%32, e%4)
	return row + 16*(thread/32), col + 8*(e/4)
}
