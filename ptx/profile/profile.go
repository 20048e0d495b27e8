// Package profile shows what kernels spend on the software GPU, by line of source: instructions, lanes, bank conflicts, sectors, divergence;
// with the occupancy and the roofline of a known GPU. Times are not known: what is counted is exact, and the least time follows from a
// data sheet.
//
//	p := &profile.Profile{GPU: model}
//	p.Add(module, launch, stats)            // of each launch of a GPU with Config.Counters
//	err := p.WriteHTML(file)
//
// A profile encodes as JSON. It is not safe for concurrent use.
package profile

import (
	"cmp"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/flow"
	"github.com/wavelane/wavelane/ptx/internal/cost"
	"github.com/wavelane/wavelane/ptx/internal/source"
	"github.com/wavelane/wavelane/ptx/ir"
	"github.com/wavelane/wavelane/ptx/roofline"
	"github.com/wavelane/wavelane/ptx/sim"
)

// Profile is that of launches, those of one kernel and equal extents together.
type Profile struct {
	GPU     roofline.Model `json:"gpu"`
	Kernels []*Kernel      `json:"kernels"`
	// SourceDirs are searched for source files that are not where the compiler found them.
	SourceDirs []string `json:"-"`

	files *source.Files
}

// Kernel is what the launches of a kernel did.
type Kernel struct {
	Name     string   `json:"name"`
	Grid     sim.Dim3 `json:"grid"`
	Block    sim.Dim3 `json:"block"`
	Launches int      `json:"launches"`
	// Registers is the most that are live at once, of 32 bits, per thread; NVIDIA's assembler takes about as many. Shared is in bytes per
	// block.
	Registers int                 `json:"registers"`
	Shared    int                 `json:"shared"`
	Occupancy *roofline.Occupancy `json:"occupancy,omitempty"` // nil if no multiprocessor of the GPU holds a block
	Counts
	Roofline Roofline `json:"roofline"`
	Lines    []*Line  `json:"lines"` // by file and line
}

// Counts are those of a line or of a kernel, over all launches.
type Counts struct {
	Instructions uint64 `json:"instructions"` // of warps
	Lanes        uint64 `json:"lane_instructions"`
	sim.Counts
}

// LanesPerWarp is the average number of lanes that take part in an instruction, of 32.
func (c *Counts) LanesPerWarp() float64 { return ratio(c.Lanes, c.Instructions) }

// SectorRatio is the sectors of global memory that were touched ÷ the least that could hold the bytes: 1 is best, 0 without accesses.
func (c *Counts) SectorRatio() float64 { return ratio(c.Sectors, c.SectorsIdeal) }

// ConflictRatio is the turns of shared memory's banks ÷ the least: 1 is best, 0 without accesses.
func (c *Counts) ConflictRatio() float64 { return ratio(c.Wavefronts, c.Wavefronts-c.Conflicts) }

func ratio(a, b uint64) float64 {
	if b == 0 {
		return 0
	}
	return float64(a) / float64(b)
}

// Line is a line of source, or of PTX where the PTX does not say what it comes from.
type Line struct {
	Pos   ir.Pos  `json:"pos"` // without column
	Text  string  `json:"text"`
	Share float64 `json:"share"` // of the kernel's instructions
	Counts
	PTX []Instr `json:"ptx"`
}

// Instr is an instruction of PTX that belongs to a line.
type Instr struct {
	Pos  ir.Pos `json:"pos"`
	Text string `json:"text"`
	Counts
}

// Roofline is where a kernel lies under the GPU's roofline. Bytes are those of the sectors of global memory that were touched, each time:
// what a cache saves is not known.
type Roofline struct {
	Rate       roofline.Rate  `json:"rate"` // the arithmetic that most operations are of
	Operations uint64         `json:"operations"`
	Bytes      uint64         `json:"bytes"`
	Intensity  float64        `json:"intensity"`  // operations per byte
	Ridge      float64        `json:"ridge"`      // the intensity from which on arithmetic limits
	Attainable float64        `json:"attainable"` // operations per second
	Bound      roofline.Bound `json:"bound"`
	Seconds    float64        `json:"seconds"` // the least time for all launches
}

// Add adds a launch. Stats are those of a GPU with Config.Counters; the module is the one that it was loaded from.
func (p *Profile) Add(m *ir.Module, l sim.Launch, stats *sim.Stats) {
	if p.files == nil {
		p.files = &source.Files{Dirs: p.SourceDirs}
	}
	l.Grid, l.Block = l.Grid.Sized(), l.Block.Sized()
	i := slices.IndexFunc(p.Kernels, func(k *Kernel) bool { return k.Name == stats.Kernel && k.Grid == l.Grid && k.Block == l.Block })
	if i < 0 {
		i = len(p.Kernels)
		p.Kernels = append(p.Kernels, &Kernel{Name: stats.Kernel, Grid: l.Grid, Block: l.Block})
	}
	k := p.Kernels[i]
	k.Launches++
	k.Counts.add(stats.Instructions, stats.Lanes, &stats.Counts)
	if f := m.Func(stats.Kernel); f != nil && k.Registers == 0 {
		k.Registers = flow.New(f).Liveness().Pressure().Units.Live
	}
	k.Shared = max(k.Shared, stats.Shared)
	for i := range stats.Lines {
		p.addLine(k, m, &stats.Lines[i])
	}
	slices.SortStableFunc(k.Lines, func(a, b *Line) int {
		return cmp.Or(strings.Compare(a.Pos.File, b.Pos.File), a.Pos.Line-b.Pos.Line)
	})
	for _, line := range k.Lines {
		line.Share = ratio(line.Instructions, k.Instructions)
	}
	if limits, err := p.GPU.Limits(); err == nil {
		if o, err := limits.Occupancy(l.Block.X*l.Block.Y*l.Block.Z, min(k.Registers, limits.MaxRegisters), k.Shared); err == nil && o.Blocks > 0 {
			k.Occupancy = &o
		}
	}
	k.place(p.GPU, m)
}

func (p *Profile) addLine(k *Kernel, m *ir.Module, s *sim.LineStats) {
	at := p.files.Of(s.Pos, m.Source(s.Pos))
	at.Col = 0
	i := slices.IndexFunc(k.Lines, func(l *Line) bool { return l.Pos == at })
	if i < 0 {
		i = len(k.Lines)
		text := p.files.Line(at)
		if text == "" {
			text = s.Instr
		}
		k.Lines = append(k.Lines, &Line{Pos: at, Text: text})
	}
	l := k.Lines[i]
	l.Counts.add(s.Instructions, s.Lanes, &s.Counts)
	j := slices.IndexFunc(l.PTX, func(in Instr) bool { return in.Pos == s.Pos })
	if j < 0 {
		j = len(l.PTX)
		l.PTX = append(l.PTX, Instr{Pos: s.Pos, Text: s.Instr})
	}
	l.PTX[j].Counts.add(s.Instructions, s.Lanes, &s.Counts)
}

func (c *Counts) add(instructions, lanes uint64, d *sim.Counts) {
	c.Instructions += instructions
	c.Lanes += lanes
	c.Counts.Add(d)
}

// place finds the kernel's place under the roofline.
func (k *Kernel) place(gpu roofline.Model, m *ir.Module) {
	ops := map[roofline.Rate]uint64{}
	instrs := map[ir.Pos]*ir.Instr{}
	for _, f := range m.Funcs {
		for i := range f.Body {
			instrs[f.Body[i].Pos] = &f.Body[i]
		}
	}
	for _, l := range k.Lines {
		for i := range l.PTX {
			if in := instrs[l.PTX[i].Pos]; in != nil {
				ops[cost.RateOf(in)] += l.PTX[i].Flops + l.PTX[i].IntegerMatrixOps
			}
		}
	}
	r := Roofline{Rate: roofline.F32, Operations: k.Flops + k.IntegerMatrixOps, Bytes: 32 * k.Sectors}
	for _, rate := range gpu.Rates() {
		if ops[rate] > ops[r.Rate] {
			r.Rate = rate
		}
	}
	if r.Bytes > 0 {
		r.Intensity = float64(r.Operations) / float64(r.Bytes)
	}
	// The rate is one that the GPU has.
	r.Ridge, _ = gpu.Ridge(r.Rate)
	r.Attainable, _ = gpu.Attainable(r.Rate, r.Intensity)
	r.Bound, _ = gpu.Bound(r.Rate, r.Intensity)
	r.Seconds, _ = gpu.Seconds(r.Rate, float64(r.Operations), float64(r.Bytes))
	k.Roofline = r
}
