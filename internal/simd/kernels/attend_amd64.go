package kernels

import "unsafe"

// attends says whether there are functions for so many rows of so many elements.
func attends(rows, d, keys int) bool {
	return active >= AVX2 && 0 < rows && rows <= AttendRows && d > 0 && d%32 == 0 && keys > 0
}

// Functions for 1 to 4 rows.
var (
	scoresFloats = [...]func(s, q, kv *float32, n, keys, stride, lds int){scores1FloatsAVX2, scores2FloatsAVX2, scores3FloatsAVX2, scores4FloatsAVX2}
	scoresHalves = [...]func(s, q *float32, kv *uint16, n, keys, stride, lds int){scores1HalvesAVX2, scores2HalvesAVX2, scores3HalvesAVX2,
		scores4HalvesAVX2}
	valuesFloats = [...]func(o, s, kv *float32, n, keys, stride, lds int){values1FloatsAVX2, values2FloatsAVX2, values3FloatsAVX2, values4FloatsAVX2}
	valuesHalves = [...]func(o, s *float32, kv *uint16, n, keys, stride, lds int){values1HalvesAVX2, values2HalvesAVX2, values3HalvesAVX2,
		values4HalvesAVX2}
)

func scores[T float32 | uint16](s, q []float32, k []T, rows, d, keys, stride, lds int) {
	if p := unsafe.Pointer(&k[0]); unsafe.Sizeof(k[0]) == 4 {
		scoresFloats[rows-1](&s[0], &q[0], (*float32)(p), d/16, keys, 4*stride, 4*lds)
	} else {
		scoresHalves[rows-1](&s[0], &q[0], (*uint16)(p), d/16, keys, 2*stride, 4*lds)
	}
}

func addValues[T float32 | uint16](o, s []float32, v []T, rows, d, keys, stride, lds int) {
	n := d / 16
	if rows <= 2 {
		n = d / 32
	}
	if p := unsafe.Pointer(&v[0]); unsafe.Sizeof(v[0]) == 4 {
		valuesFloats[rows-1](&o[0], &s[0], (*float32)(p), n, keys, 4*stride, 4*lds)
	} else {
		valuesHalves[rows-1](&o[0], &s[0], (*uint16)(p), n, keys, 2*stride, 4*lds)
	}
}
