package kernels

func normalizeGo(y, x []float32, mean, rstd float32) {
	x = x[:len(y)]
	for i, v := range x {
		y[i] = (v - mean) * rstd
	}
}

func normAffineGo(y, x, gamma, beta []float32, mean, rstd float32) {
	x, gamma, beta = x[:len(y)], gamma[:len(y)], beta[:len(y)]
	for i, v := range x {
		y[i] = (v-mean)*rstd*gamma[i] + beta[i]
	}
}

func normScaleGo(y, x, gamma []float32, f float32) {
	x, gamma = x[:len(y)], gamma[:len(y)]
	for i, v := range x {
		y[i] = v * f * gamma[i]
	}
}
