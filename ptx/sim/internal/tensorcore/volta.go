package tensorcore

// Volta's mma.m8n8k4 of halves is four products, each by eight lanes: four of the lower half of the warp, and the four whose numbers are
// larger by 16. PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type".

// VoltaProducts is how many products an instruction computes.
const VoltaProducts = 4

// VoltaProduct is the product that a lane takes part in.
func VoltaProduct(lane int) int { return lane % 16 / 4 }

// voltaRow is the row or column of eight that a lane has.
func voltaRow(lane int) int { return lane%4 + lane/16*4 }

// VoltaA is the place of element e of a lane in A, which lies by rows or by columns.
func VoltaA(lane, e int, columns bool) (row, k int) {
	if columns {
		return e + lane/16*4, lane % 4
	}
	return voltaRow(lane), e
}

// VoltaB is the place in B.
func VoltaB(lane, e int, columns bool) (k, col int) {
	if columns {
		return e, voltaRow(lane)
	}
	return lane % 4, e + lane/16*4
}

// VoltaC is the place in C and D, of halves or of float32.
func VoltaC(lane, e int, halves bool) (row, col int) {
	if halves {
		return voltaRow(lane), e
	}
	return lane&1 + e&2 + lane/16*4, e&4 + lane&2 + e&1
}
