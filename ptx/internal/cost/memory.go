package cost

import "slices"

// Banks counts the passes over the 32 banks of 4 bytes of shared memory that serve the lanes of mask, each with size bytes at its
// address. Accesses of 8 bytes go by half-warps, of 16 by quarters, of 32 as two of 16. Lanes that access the same word share it;
// different words of one bank take a pass each. sum is the passes of all groups together, worst those of the group that takes most and
// ideal what sum would be without conflicts.
//
// (CUDA C++ Programming Guide, "Shared Memory".)
func Banks(addr *[32]uint64, mask uint32, size int) (worst, sum, ideal int) {
	group := 32
	if size > 4 {
		group = 32 * 4 / min(size, 16)
	}
	for from := 0; from < 32; from += group {
		if mask>>from&(1<<group-1) == 0 {
			continue
		}
		for part := 0; part < size; part += 16 {
			n := passes(addr, mask, from, from+group, part, min(size, part+16))
			worst = max(worst, n)
			sum += n
			ideal++
		}
	}
	return worst, sum, ideal
}

// passes counts, for lanes from ≤ lane < to and their bytes first ≤ byte < last, the most distinct words in one bank.
func passes(addr *[32]uint64, mask uint32, from, to, first, last int) int {
	var seen [64]uint64 // distinct words
	var next [64]int8   // the seen one before it in the same bank, -1 for none
	var head, count [32]int8
	for i := range head {
		head[i] = -1
	}
	n, most := int8(0), int8(0)
	for lane := from; lane < to; lane++ {
		if mask>>lane&1 == 0 {
			continue
		}
		end := (addr[lane] + uint64(last) - 1) >> 2
	words:
		for w := (addr[lane] + uint64(first)) >> 2; w <= end; w++ {
			bank := w & 31
			for j := head[bank]; j >= 0; j = next[j] {
				if seen[j] == w {
					continue words
				}
			}
			seen[n], next[n] = w, head[bank]
			head[bank] = n
			n++
			count[bank]++
			most = max(most, count[bank])
		}
	}
	return int(most)
}

// Sectors is the number of aligned pieces of 32 bytes that the lanes of mask touch, each with size bytes at its address,
// and the fewest that could hold the distinct bytes among them.
func Sectors(addr *[32]uint64, mask uint32, size int) (touched, ideal int) {
	var firsts, places [64]uint64
	n, m := 0, 0
	for lane := range 32 {
		if mask>>lane&1 == 0 {
			continue
		}
		a := addr[lane]
		for s := a >> 5; s <= (a+uint64(size)-1)>>5; s++ {
			firsts[n] = s
			n++
		}
		places[m] = a
		m++
	}
	slices.Sort(firsts[:n])
	slices.Sort(places[:m])
	bytes, end := uint64(0), uint64(0)
	for _, a := range places[:m] {
		bytes += a + uint64(size) - min(max(a, end), a+uint64(size))
		end = max(end, a+uint64(size))
	}
	return len(slices.Compact(firsts[:n])), int((bytes + 31) / 32)
}
