package kernels

// Vectors convert all elements but the last few. They return how many they did.

func widenF16(y []float32, x []uint16) (done int) {
	if active == NEON && len(y) >= 4 {
		widenF16NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func widenBF16(y []float32, x []uint16) (done int) {
	if active == NEON && len(y) >= 4 {
		widenBF16NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func narrowF16(y []uint16, x []float32) (done int) {
	if active == NEON && len(y) >= 4 {
		narrowF16NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func narrowBF16(y []uint16, x []float32) (done int) {
	if active == NEON && len(y) >= 4 {
		narrowBF16NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func widenU8(y []float32, x []uint8) (done int) {
	if active == NEON && len(y) >= 4 {
		widenU8NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func narrowU8(y []uint8, x []float32) (done int) {
	if active == NEON && len(y) >= 4 {
		narrowU8NEON(&y[0], &x[0], len(y)/4)
		done = len(y) &^ 3
	}
	return done
}

func widenF16Rows(_ []float32, _ []uint16, _, _ int) bool { return false }
