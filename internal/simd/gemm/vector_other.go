//go:build !amd64

package gemm

func dotRows(y *[4]float32, a *float32, ld int, x *float32, n int) { dotRowsGo(y, a, ld, x, n) }

func axpyRows(y, a *float32, ld int, f *[8]float32, n int) { axpyRowsGo(y, a, ld, f, n) }
