package gemm

// caches are the sizes in bytes that blocks are computed from: of L1 and L2.
type caches struct{ l1, l2 int }

// machine is this machine's. Where sizes cannot be found out they are those of a small core.
var machine = detect().sane()

func (c caches) sane() caches {
	within := func(v, low, high, usual int) int {
		if v == 0 {
			return usual
		}
		return min(max(v, low), high)
	}
	return caches{within(c.l1, 16<<10, 256<<10, 32<<10), within(c.l2, 128<<10, 4<<20, 256<<10)}
}
