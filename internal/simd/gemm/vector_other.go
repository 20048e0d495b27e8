//go:build !amd64 && !arm64

package gemm

func dotRows(y, a *float32, ld int, x *float32, n, rows int) { dotRowsGo(y, a, ld, x, n, rows) }

func hasColumns() bool { return false }

func columns(_, _ *float32, _ int, _ *float32, _, _ int) {}

func axpyRows(y, a *float32, ld int, f *float32, n, eights int) {
	axpyRowsGo(y, a, ld, f, n, eights)
}
