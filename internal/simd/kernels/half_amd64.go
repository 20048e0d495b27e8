package kernels

// Vectors convert all elements but the last few. They return how many they did.

func widenF16(y []float32, x []uint16) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		widenF16AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		widenF16AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}

// widenF16Rows says whether it did what WidenF16Rows is to do.
func widenF16Rows(y []float32, x []uint16, n, stride int) bool {
	if active < AVX2 || n%8 != 0 {
		return false
	}
	widenF16RowsAVX2(&y[0], &x[0], len(y)/n, n/8, 2*stride)
	return true
}

func widenBF16(y []float32, x []uint16) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		widenBF16AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		widenBF16AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}

func narrowF16(y []uint16, x []float32) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		narrowF16AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		narrowF16AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}

func narrowBF16(y []uint16, x []float32) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		narrowBF16AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		narrowBF16AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}

func widenU8(y []float32, x []uint8) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		widenU8AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		widenU8AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}

func narrowU8(y []uint8, x []float32) (done int) {
	if active == AVX512 && len(y) >= 16 {
		done = len(y) &^ 15
		narrowU8AVX512(&y[0], &x[0], done/16)
	}
	if active >= AVX2 && len(y)-done >= 8 {
		n := (len(y) - done) / 8
		narrowU8AVX2(&y[done], &x[done], n)
		done += 8 * n
	}
	return done
}
