package blocks

import (
	"unsafe"

	"github.com/wavelane/wavelane/internal/simd/kernels"
	"github.com/wavelane/wavelane/quant"
)

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return avx2() }

// mostRest is the most groups of 32 after the last chunk that are multiplied as they lie: zeros, which would make a chunk of them, take
// longer than they do otherwise.
const mostRest = 6

// intoLanes transposes n integers of the row from lo on.
func (m *room) intoLanes(u *unpacked, lo, n int) {
	done := m.nibblesIntoLanes(u, lo, n/chunk)
	if done == n {
		return
	}
	to, q := u.q[done:], m.integers(lo+done, n-done)
	flip := byte(0)
	if m.quants == nil && bytewise() {
		flip = 0x80
	}
	if whole, rest := split(len(q)); rest > 0 {
		to := to[whole*chunk:][:32*rest]
		copy(to, q[whole*chunk:])
		if flip != 0 {
			for i := 0; i < len(to); i += 8 {
				*(*uint64)(unsafe.Pointer(&to[i])) ^= 0x8080808080808080
			}
		}
		q = q[:whole*chunk]
	}
	if len(q) == 0 {
		return
	}
	if m.quants != nil {
		lanesAVX2(&to[0], &q[0], (len(q)+255)/256) // after them is memory of the room
		return
	}
	whole := len(q) &^ 255
	if whole > 0 {
		lanesStoredAVX2(&to[0], &q[0], whole/256, flip)
	}
	if whole < len(q) {
		copy(m.q[:256], q[whole:])
		lanesStoredAVX2(&to[whole/chunk*chunk+whole%chunk/8], &m.q[0], 1, flip)
	}
}

// nibblesIntoLanes unpacks chunks right into lanes, and returns of how many integers.
func (m *room) nibblesIntoLanes(u *unpacked, lo, chunks int) int {
	if chunks == 0 || kernels.Active() != kernels.AVX512 {
		return 0
	}
	from := &m.planes[0][m.size[0]*(lo/m.block):][0]
	switch m.Type {
	case quant.Q4_0, quant.Q4_1:
		lanesNibblesAVX512(&u.q[0], from, chunks)
	case quant.Q4_K:
		lanesQ4KAVX512(&u.q[0], from, chunks)
	default:
		return 0
	}
	return chunk * chunks
}

// Functions for 1, 2, 4 and 8 rows.
var (
	several32VNNI     = []severalFunction{products32x1VNNI, products32x2VNNI, products32x4VNNI, products32x8VNNI}
	several16VNNI     = []severalFunction{products16x1VNNI, products16x2VNNI, products16x4VNNI, products16x8VNNI}
	several32AVXVNNI  = []severalFunction{products32x1AVXVNNI, products32x2AVXVNNI, products32x4AVXVNNI}
	several16AVXVNNI  = []severalFunction{products16x1AVXVNNI, products16x2AVXVNNI, products16x4AVXVNNI}
	several32AVX2     = []severalFunction{products32x1AVX2, products32x2AVX2, products32x4AVX2}
	several16AVX2     = []severalFunction{products16x1AVX2, products16x2AVX2, products16x4AVX2}
	severalSignedAVX2 = []severalFunction{productsSignedx1AVX2, productsSignedx2AVX2, productsSignedx4AVX2}
)

func (m *room) severalFunctions() []severalFunction {
	wide := kernels.Active() == kernels.AVX512
	switch {
	case bytewise() && wide && m.width == 32:
		return several32VNNI
	case bytewise() && wide:
		return several16VNNI
	case bytewise() && m.width == 32:
		return several32AVXVNNI
	case bytewise():
		return several16AVXVNNI
	case m.quants == nil:
		return severalSignedAVX2
	case m.width == 32:
		return several32AVX2
	}
	return several16AVX2
}
