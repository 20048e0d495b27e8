// Package peaks does one thing as fast as a core can, so that what kernels take has something to be a share of: floating-point operations
// that depend on nothing, and reads of memory whose result nobody needs. Copies are those of the language.
package peaks

// Flops does at least n floating-point operations, and returns how many it has done: multiply-adds of whole vectors of the active tier,
// which count as two each, in twelve independent chains. Where there is no assembly they are those of compiled Go.
func Flops(n int) int {
	each, run := flops()
	loops := max(1, (n+each-1)/each)
	run(loops)
	return loops * each
}

// Read reads all of x, with vectors of the active tier where there is assembly.
func Read(x []float32) {
	if len(x) > 0 {
		read(x)
	}
}

// flopsGo does twelve multiply-adds in each loop.
func flopsGo(loops int) {
	f := float32(1)
	var s [12]float32
	for range loops {
		s[0], s[1], s[2], s[3] = s[0]*f+f, s[1]*f+f, s[2]*f+f, s[3]*f+f
		s[4], s[5], s[6], s[7] = s[4]*f+f, s[5]*f+f, s[6]*f+f, s[7]*f+f
		s[8], s[9], s[10], s[11] = s[8]*f+f, s[9]*f+f, s[10]*f+f, s[11]*f+f
	}
	keep(s[:])
}

func readGo(x []float32) {
	var s [8]float32
	for len(x) >= 8 {
		for i, v := range (*[8]float32)(x) {
			s[i] += v
		}
		x = x[8:]
	}
	for _, v := range x {
		s[0] += v
	}
	keep(s[:])
}

// keep is not inlined, so that no sum is dropped.
//
//go:noinline
func keep([]float32) {}
