package kernels

// Arithmetic that keeps what rounding loses: the result is a sum hi + lo. Knuth's and Dekker's algorithms, see Muller et al.,
// "Handbook of Floating-Point Arithmetic", 2018, ch. 4.

// twoSum is x + y exactly.
func twoSum(b *builder, x, y f) (hi, lo f) {
	hi = b.Add(x, y)
	d := b.Sub(hi, x)
	return hi, b.Add(b.Sub(x, b.Sub(hi, d)), b.Sub(y, d))
}
