//go:build !amd64

package gemm

func (s *shape) copyPanels(dst, x *float32, ld, panels, k int) {
	copyPanelsGo(dst, x, ld, panels, k, s.nr)
}

func (s *shape) copyRim(dst, x *float32, ld, cols, width, k int) {
	copyRimGo(dst, x, ld, cols, width, k)
}
