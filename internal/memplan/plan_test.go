package memplan_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/wavelane/wavelane/internal/memplan"
	"github.com/wavelane/wavelane/internal/program"
	_ "github.com/wavelane/wavelane/internal/testseed" // the seed of package rapid
)

// demand draws a program: steps over random operands, with several results, scratch memory, results over operands.
func demand(t *rapid.T) *memplan.Demand {
	d := &memplan.Demand{Align: rapid.SampledFrom([]int{0, 1, 4, 16}).Draw(t, "align"), NoReuse: rapid.IntRange(0, 9).Draw(t, "noreuse") == 0}
	size := rapid.SampledFrom([]int{0, 1, 3, 8, 20, 64})
	var all []program.Slot
	value := func(name string) program.Slot {
		d.Bytes = append(d.Bytes, size.Draw(t, name))
		all = append(all, program.Slot(len(d.Bytes)-1))
		return all[len(all)-1]
	}
	for range rapid.IntRange(0, 3).Draw(t, "inputs") {
		d.Before = append(d.Before, value("input"))
	}
	for range rapid.IntRange(0, 20).Draw(t, "steps") {
		var u memplan.Use
		if len(all) > 0 {
			u.In = rapid.SliceOfN(rapid.SampledFrom(all), 0, 3).Draw(t, "in")
		}
		for range rapid.IntRange(1, 2).Draw(t, "results") {
			if len(u.In) > 0 {
				u.Over = append(u.Over, rapid.SliceOfN(rapid.SampledFrom(u.In), 0, 2).Draw(t, "over"))
			}
			u.Out = append(u.Out, value("result"))
		}
		u.Scratch = rapid.SliceOfN(size, 0, 2).Draw(t, "scratch")
		d.Steps = append(d.Steps, u)
	}
	if len(all) > 0 {
		d.After = rapid.SliceOfN(rapid.SampledFrom(all), 0, 4).Draw(t, "after")
	}
	return d
}

// ram is memory that knows what was written last at each position: a value or a scratch piece, by number.
type ram map[[2]int]int

// check executes the program in memory as arranged: every operand has to be what was written as it, at every byte.
func check(t require.TestingT, d *memplan.Demand, a *memplan.Arrangement, blocks bool) {
	memory := ram{}
	align := max(d.Align, 1)
	cells := func(at, bytes int, f func(cell [2]int)) {
		if blocks {
			require.LessOrEqual(t, bytes, a.Blocks[at])
			f([2]int{at, 0}) // whole blocks: no two values are in one at a time
			return
		}
		require.Zero(t, at%align)
		require.LessOrEqual(t, at+bytes, a.Blocks[0])
		for i := range bytes {
			f([2]int{0, at + i})
		}
	}
	write := func(s program.Slot) {
		if d.Bytes[s] > 0 {
			cells(a.Values[s], d.Bytes[s], func(c [2]int) { memory[c] = int(s) })
		}
	}
	read := func(s program.Slot, why string) {
		if d.Bytes[s] > 0 {
			cells(a.Values[s], d.Bytes[s], func(c [2]int) { require.Equal(t, int(s), memory[c], "%s of value %d at %v", why, s, c) })
		}
	}
	for _, s := range d.Before {
		write(s)
	}
	for i, u := range d.Steps {
		for _, s := range u.In {
			read(s, fmt.Sprintf("step %d, operand", i))
		}
		for k, n := range u.Scratch {
			if n > 0 {
				cells(a.Scratch[i][k], n, func(c [2]int) { memory[c] = -1 - k })
			}
		}
		for _, s := range u.Out {
			write(s)
		}
		for k, n := range u.Scratch {
			if n > 0 {
				cells(a.Scratch[i][k], n, func(c [2]int) { require.Equal(t, -1-k, memory[c], "step %d, scratch memory %d", i, k) })
			}
		}
		for _, s := range u.Out {
			read(s, fmt.Sprintf("step %d, result", i))
		}
		for _, s := range u.In {
			over := slices.IndexFunc(u.Out, func(y program.Slot) bool { return d.Bytes[y] > 0 && d.Bytes[s] > 0 && a.Values[y] == a.Values[s] })
			if over < 0 {
				read(s, fmt.Sprintf("step %d, operand at its end", i))
				continue
			}
			require.False(t, d.NoReuse)
			require.Contains(t, u.Over[over], s, "step %d, result %d lies in an operand", i, over)
		}
	}
	for _, s := range d.After {
		read(s, "at the end")
	}
}

// least is how many bytes are in use at the fullest step, if every result that may lies in an operand of its size.
func least(d *memplan.Demand, a *memplan.Arrangement) int {
	align := max(d.Align, 1)
	round := func(n int) int { return (n + align - 1) / align * align }
	last, first := make([]int, len(d.Bytes)), slices.Repeat([]int{len(d.Steps) + 1}, len(d.Bytes))
	for _, s := range d.Before {
		first[s], last[s] = -1, -1
	}
	for i, u := range d.Steps {
		for _, s := range u.Out {
			first[s], last[s] = i, i
		}
		for _, s := range u.In {
			last[s] = i
		}
	}
	for _, s := range d.After {
		last[s] = len(d.Steps)
	}
	most := 0
	for i, u := range d.Steps {
		now, seen := 0, map[int]bool{}
		for s, n := range d.Bytes {
			if n > 0 && first[s] <= i && i <= last[s] && !seen[a.Values[s]] {
				seen[a.Values[s]] = true
				now += round(n)
			}
		}
		for _, n := range u.Scratch {
			now += round(n)
		}
		most = max(most, now)
	}
	return most
}

func TestMemoryOfRandomPrograms(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := demand(t)
		for _, blocks := range []bool{false, true} {
			arrange := (*memplan.Demand).Arena
			if blocks {
				arrange = (*memplan.Demand).InBlocks
			}
			a := arrange(d)
			require.Equal(t, a, arrange(d), "it is always the same")
			check(t, d, a, blocks)
			sum, all := 0, 0
			for _, n := range a.Blocks {
				sum += n
			}
			require.Equal(t, sum, a.Peak)
			require.GreaterOrEqual(t, a.Peak, least(d, a))
			apart := *d
			apart.NoReuse = true
			all = arrange(&apart).Peak
			require.LessOrEqual(t, a.Peak, all)
			if d.NoReuse {
				require.Equal(t, all, a.Peak)
			}
			if a.Step >= 0 {
				require.Less(t, a.Step, len(d.Steps))
			}
		}
	})
}
