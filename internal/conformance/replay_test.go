package conformance

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// A compiled program runs again without allocations, whatever its operation and however many workers there are.
func TestCPUReplaysAllocateNothing(t *testing.T) {
	for _, workers := range []int{1, 4} {
		name, d := openCPU(t, cpu.WithWorkers(workers))
		for _, e := range catalogue.All() {
			cases, err := casesOf(e)
			require.NoError(t, err)
			for _, c := range sample(cases, max(1, len(cases)/4)) {
				n, err := replayAllocations(d, c)
				for again := 0; n > 0 && again < 3; again++ { // what else ends in this process allocates too, but not always
					n, err = replayAllocations(d, c)
				}
				require.NoError(t, err)
				require.Zero(t, n, "%s: allocations of %s #%d (%s)\nrepeat with WAVELANE_SEED=%d", name, e.Name, c.number, c.note, Seed())
			}
		}
	}
}

// replayAllocations counts the allocations of a run of a case that is compiled and warm.
func replayAllocations(d *cpu.Device, c *testCase) (float64, error) {
	p, io := &program.Program{}, &program.IO{}
	var slots []program.Slot
	for _, o := range c.inputs(newSource(Seed(), c.entry.Name, c.number)) {
		slots = append(slots, p.Add(o.Type, program.FromHost))
		io.Host = append(io.Host, o.data)
	}
	out, err := p.ApplyAll(c.entry, c.attr, slots...)
	if err != nil {
		return 0, err
	}
	p.Read = out
	for _, s := range out {
		io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
	}
	x, err := program.ExecutorOf(d).Compile(context.Background(), p)
	if err != nil {
		return 0, err
	}
	defer x.Close()
	n := testing.AllocsPerRun(10, func() {
		run, e := x.(program.Direct).Begin(io)
		if e == nil {
			e = run.Wait(context.Background())
		}
		if e != nil {
			err = e
		}
	})
	return n, err
}
