package blocks

// inLanes says whether integers are in lanes where several rows of x are multiplied.
func inLanes() bool { return neon() }

// mostRest is the most groups of 32 after the last chunk that are not put into lanes.
const mostRest = 0

// intoLanes transposes n integers of the row from lo on.
func (m *room) intoLanes(u *unpacked, lo, n int) {
	q := m.integers(lo, n)
	for at := 0; at < len(q); at += chunk {
		q, whole := q[at:min(at+chunk, len(q))], 0
		if whole = len(q) / 128; whole > 0 {
			lanesNEON(&u.q[at], &q[0], whole)
		}
		if rest := q[128*whole:]; len(rest) > 0 {
			copy(m.q[:128], rest)
			lanesNEON(&u.q[at+16*whole], &m.q[0], 1)
		}
	}
}

// Functions for 1, 2 and 4 rows.
var (
	several32SDOT     = []severalFunction{products32x1SDOT, products32x2SDOT, products32x4SDOT}
	several16SDOT     = []severalFunction{products16x1SDOT, products16x2SDOT, products16x4SDOT}
	several32NEON     = []severalFunction{products32x1NEON, products32x2NEON}
	several16NEON     = []severalFunction{products16x1NEON, products16x2NEON}
	severalSignedNEON = []severalFunction{productsSignedx1NEON, productsSignedx2NEON}
)

func (m *room) severalFunctions() []severalFunction {
	switch {
	case bytewise() && m.width == 32:
		return several32SDOT
	case bytewise():
		return several16SDOT
	case m.quants == nil:
		return severalSignedNEON
	case m.width == 32:
		return several32NEON
	}
	return several16NEON
}
