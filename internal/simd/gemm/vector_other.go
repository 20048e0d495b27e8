//go:build !amd64

package gemm

func dotRows(y, a *float32, ld int, x *float32, n, fours int) { dotRowsGo(y, a, ld, x, n, fours) }

func hasColumns() bool { return false }

func columns(_, _ *float32, _ int, _ *float32, _, _ int) {}

func axpyRows(y, a *float32, ld int, f *float32, n, eights int) {
	axpyRowsGo(y, a, ld, f, n, eights)
}
