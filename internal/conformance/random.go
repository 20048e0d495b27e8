package conformance

import (
	"math"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

func init() {
	byName["random_uniform"], byName["random_normal"] = randomCases, randomCases
	largeByName["random_uniform"] = func(b *builder) { b.seeded("", 3, beyond) }
	largeByName["random_normal"] = func(b *builder) { b.seeded("", 3, 1_000_003) }
}

// seeded adds a case of numbers drawn with any seed.
func (b *builder) seeded(note string, stream int, shape ...int) {
	b.add(note, program.Attr{Options: compute.RandomOptions{Shape: shape, Stream: stream}}, func(r *source) []operand {
		return []operand{seedOf(r.Uint32(), r.Uint32())}
	})
}

func seedOf(words ...uint32) operand {
	return operand{program.Type{DType: compute.Uint32, Shape: []int{len(words)}}, words}
}

func randomCases(b *builder) {
	for _, n := range lengths {
		b.seeded("", 0, n)
	}
	for i, s := range [][]int{{}, {3, 5}, {2, 0, 3}, {64, 65}, {1, 2, 1, 3, 2, 1, 2, 2}} {
		b.seeded("", 1<<(7*i), s...)
	}
	b.given("known answer", program.Attr{Options: compute.RandomOptions{Shape: []int{4}}}, seedOf(0, 0))
	b.given("all bits", program.Attr{Options: compute.RandomOptions{Shape: []int{9}, Stream: math.MaxInt32}}, seedOf(math.MaxUint32, math.MaxUint32))
	// Among the counters are those whose first word is next to the largest, where the logarithm vanishes.
	b.seeded("tails", 0, 300_000)
}
