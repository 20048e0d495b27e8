package gemm

import (
	"fmt"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit/tiling"
	"github.com/wavelane/wavelane/ptx"
)

// AsyncTile is the tile of a gemm_async: 8 × 16 of the result for each thread, so that 128 of 134 instructions at a depth multiply.
var AsyncTile = tiling.Shape{M: 128, N: 256, K: 8}

// asyncStages of tiles, of which all but one are on their way: 37 KiB.
const asyncStages = 3

// gemmsAsync are the kernels by whether a and b are K-major. Operands go from memory to shared memory without passing registers
// (cp.async, from sm_80 on): elements one by one where they are K-major, which transposes the tile, else fours, which therefore have to
// be aligned.
var gemmsAsync = byMajor(func(a, b bool, suffix string) kit.Kernel {
	t := AsyncTile
	return kit.Kernel{Family: "matmul_async", Name: fmt.Sprintf("gemm_async_%dx%dx%d_%s", t.M, t.N, t.K, suffix),
		Block: [3]int{tiling.GemmThreads, 1, 1},
		Doc: "As gemm, with operands that arrive in the background; in the name, k says that an operand is K-major (a [m, k], b [n, k]), x " +
			"that it is not, with rows at multiples of 16 bytes.",
		Params:    gemmParams{},
		BuildWith: func(k *ptx.Kernel, _ *kit.Prologue, e *kit.Epilogue) { buildAsync(k, a, b, e) }}
})

// byMajor has the kernel for operands that are K-major or not; in the suffix of its name that is k or x for each.
func byMajor(f func(a, b bool, suffix string) kit.Kernel) (all [2][2]*kit.Kernel) {
	for a := range all {
		for b := range all[a] {
			all[a][b] = kit.Register(f(a == 1, b == 1, "xk"[a:a+1]+"xk"[b:b+1]))
		}
	}
	return all
}

func buildAsync(k *ptx.Kernel, kMajorA, kMajorB bool, e *kit.Epilogue) {
	var at gemmParams
	p, params, a, b := at.product(k, AsyncTile, 1, e)
	tileA, tileB := tiling.PaddedTiles(k, asyncStages, AsyncTile)
	p.Multistage(asyncStages,
		tiling.SIMTOperand(tileA, kMajorA, params.U32(&at.LDA), a, p.Top, p.M, p.First),
		tiling.SIMTOperand(tileB, kMajorB, params.U32(&at.LDB), b, p.Left, p.N, p.First), tileA, tileB)
}
