//go:build !amd64 && !arm64 && !js

package gemm

func active() *shape { return &shapeGo }

func (s *shape) tile(t *Tile) { tileGo(t) }

func (s *shape) transpose(dst *float32, rows **float32, width, k int) {
	transposeGo(dst, rows, width, k)
}
