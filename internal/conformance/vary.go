package conformance

import (
	"context"
	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/catalogue"
	"github.com/wavelane/wavelane/internal/program"
)

// varying gives every scalar of every entry other values in later runs of one compiled program. The results are those, bit by bit,
// of programs that have these scalars from the beginning.
func varying(g *graph) {
	for _, e := range catalogue.All() {
		if len(e.Scalars) == 0 {
			continue
		}
		cases, err := casesOf(e)
		require.NoError(g, err)
		c := cases[int(Seed()%uint64(len(cases)))]
		in := c.inputs(newSource(Seed(), e.Name, c.number))
		record := func(a program.Attr) (*program.Program, *program.IO) {
			p, io := &program.Program{Variables: len(e.Scalars) + 1}, &program.IO{}
			var slots []program.Slot
			for _, o := range in {
				slots = append(slots, p.Add(o.Type, program.FromHost))
				io.Host = append(io.Host, o.data)
			}
			out, err := p.ApplyAll(e, a, slots...)
			require.NoError(g, err)
			p.Read = out
			for _, s := range out {
				io.Read = append(io.Read, program.MakeSlice(p.Values[s].Type))
			}
			return p, io
		}
		a := program.Attr{Scalars: c.attr.Scalars, Options: c.attr.Options, Vary: make([]int, len(e.Scalars))}
		for i := range e.Scalars {
			a.Vary[i] = len(e.Scalars) - i
		}
		p, io := record(a)
		x, err := g.d.Compile(context.Background(), p)
		require.NoError(g, err, e.Name)
		for run := range 5 {
			plain := program.Attr{Scalars: append([]float32{}, c.attr.Scalars...), Options: c.attr.Options}
			if run > 0 {
				io.Scalars = make([]float32, p.Variables)
				for i, s := range e.Scalars {
					plain.Scalars[i] = s.Test[run%len(s.Test)]
					if run == 4 { // what no test has tried
						plain.Scalars[i] = float32(g.source.between(0.1, 3))
					}
					io.Scalars[len(e.Scalars)-i-1] = plain.Scalars[i]
				}
			}
			require.NoError(g, await(x.Start(io)), e.Name)
			q, want := record(plain)
			require.NoError(g, g.d.execute(q, want))
			for k := range want.Read {
				require.True(g, sameBits(want.Read[k], io.Read[k]), "%s: %s: result %d of run %d with %v", g.d.name, c.describe(in), k, run,
					plain.Scalars)
			}
		}
		require.NoError(g, x.Close())
	}
}
