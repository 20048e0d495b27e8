package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/wavelane/wavelane/ptx/ir"
)

// Stats is what a launch did. The counts of threads and instructions are always there; the rest needs Config.Counters.
type Stats struct {
	Kernel  string `json:"kernel"`
	Blocks  int    `json:"blocks"`
	Threads int    `json:"threads"` // in the whole grid
	Shared  int    `json:"shared"`  // bytes of shared memory per block, static and dynamic
	// Instructions that warps executed, and the lanes that were active in them.
	Instructions uint64 `json:"instructions"`
	Lanes        uint64 `json:"lane_instructions"`

	Counts
	Classes map[string]uint64 `json:"classes,omitempty"` // warp instructions by class: "float", "integer", "load", "barrier" …
	Lines   []LineStats       `json:"lines,omitempty"`   // the instructions that ran, in the order of the program
}

// Counts are the counters of one instruction, or of a whole kernel.
type Counts struct {
	Flops            uint64 `json:"flops"`              // of f16 to f64: an addition, multiplication, division … is 1, an fma 2, an m×n×k product 2mnk
	IntegerMatrixOps uint64 `json:"integer_matrix_ops"` // of products of integer matrices, which are no flops: 2mnk

	Branches uint64 `json:"branches"` // executed by warps
	Diverged uint64 `json:"diverged"` // those that split the active lanes

	// Requests are instructions of warps that touched global memory, Sectors the pieces of 32 aligned bytes that they
	// needed, and SectorsIdeal the fewest that could have held the bytes asked for.
	GlobalRequests uint64 `json:"global_requests"`
	Sectors        uint64 `json:"sectors"`
	SectorsIdeal   uint64 `json:"sectors_ideal"`
	GlobalRead     uint64 `json:"global_read_bytes"` // as the lanes asked, each byte as often as it was asked for
	GlobalWritten  uint64 `json:"global_written_bytes"`

	// Requests are instructions of warps that touched shared memory, Wavefronts the turns that its 32 banks of 4 bytes
	// took, and Conflicts the turns that a conflict-free pattern of the same width would have saved.
	SharedRequests uint64 `json:"shared_requests"`
	Wavefronts     uint64 `json:"wavefronts"`
	Conflicts      uint64 `json:"bank_conflicts"`
	SharedRead     uint64 `json:"shared_read_bytes"`
	SharedWritten  uint64 `json:"shared_written_bytes"`

	LocalBytes uint64 `json:"local_bytes"`
	Atomics    uint64 `json:"atomics"` // of lanes
}

// LineStats are the counters of one instruction.
type LineStats struct {
	Pos          ir.Pos `json:"pos"`
	Instr        string `json:"instr"`
	Class        string `json:"class"`
	Instructions uint64 `json:"instructions"`
	Lanes        uint64 `json:"lane_instructions"`
	Counts
}

// Add adds other counts.
func (c *Counts) Add(d *Counts) {
	c.Flops += d.Flops
	c.IntegerMatrixOps += d.IntegerMatrixOps
	c.Branches += d.Branches
	c.Diverged += d.Diverged
	c.GlobalRequests += d.GlobalRequests
	c.Sectors += d.Sectors
	c.SectorsIdeal += d.SectorsIdeal
	c.GlobalRead += d.GlobalRead
	c.GlobalWritten += d.GlobalWritten
	c.SharedRequests += d.SharedRequests
	c.Wavefronts += d.Wavefronts
	c.Conflicts += d.Conflicts
	c.SharedRead += d.SharedRead
	c.SharedWritten += d.SharedWritten
	c.LocalBytes += d.LocalBytes
	c.Atomics += d.Atomics
}

// String is a summary in a few lines, with the three instructions that lose most to bank conflicts and to scattered
// sectors.
func (s *Stats) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %d blocks, %d threads, %d warp instructions (%.1f lanes each)\n", s.Kernel, s.Blocks, s.Threads,
		s.Instructions, ratio(s.Lanes, s.Instructions))
	if s.Classes == nil {
		return b.String()
	}
	names := make([]string, 0, len(s.Classes))
	for n := range s.Classes {
		names = append(names, n)
	}
	slices.SortFunc(names, func(x, y string) int {
		if s.Classes[x] != s.Classes[y] {
			return -compare(s.Classes[x], s.Classes[y])
		}
		return strings.Compare(x, y)
	})
	for i, n := range names {
		names[i] = fmt.Sprintf("%s %d", n, s.Classes[n])
	}
	fmt.Fprintf(&b, "classes: %s\n", strings.Join(names, ", "))
	fmt.Fprintf(&b, "flops: %d, of integer matrices %d; branches: %d, %d diverged; atomics: %d\n", s.Flops, s.IntegerMatrixOps, s.Branches, s.Diverged, s.Atomics)
	fmt.Fprintf(&b, "global: %d B read, %d B written, %d requests, %d sectors (%d at least)\n", s.GlobalRead, s.GlobalWritten,
		s.GlobalRequests, s.Sectors, s.SectorsIdeal)
	fmt.Fprintf(&b, "shared: %d B read, %d B written, %d requests, %d wavefronts, %d of them bank conflicts\n", s.SharedRead,
		s.SharedWritten, s.SharedRequests, s.Wavefronts, s.Conflicts)
	s.worst(&b, "bank conflicts", func(c *Counts) uint64 { return c.Conflicts })
	s.worst(&b, "superfluous sectors", func(c *Counts) uint64 { return c.Sectors - min(c.Sectors, c.SectorsIdeal) })
	return b.String()
}

func (s *Stats) worst(b *strings.Builder, what string, of func(*Counts) uint64) {
	lines := slices.Clone(s.Lines)
	slices.SortStableFunc(lines, func(x, y LineStats) int { return -compare(of(&x.Counts), of(&y.Counts)) })
	for i := range lines[:min(3, len(lines))] {
		if n := of(&lines[i].Counts); n > 0 {
			fmt.Fprintf(b, "%d %s at %s: %s\n", n, what, lines[i].Pos, lines[i].Instr)
		}
	}
}

func ratio(a, b uint64) float64 { return float64(a) / float64(max(1, b)) }

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// classOf is the class under which an instruction is counted.
func classOf(in *ir.Instr) string {
	switch k := in.Kind(); k {
	case ir.Arithmetic, ir.Carry, ir.SetPred:
		if in.Type(0).IsFloat() || k == ir.SetPred && in.Type(1).IsFloat() {
			return "float"
		}
		return "integer"
	case ir.Move:
		if in.Op == "cvt" || in.Op == "cvt.pack" {
			return "conversion"
		}
		return "move"
	case ir.Load, ir.Store, ir.Atomic:
		kind := map[ir.Kind]string{ir.Load: "load ", ir.Store: "store ", ir.Atomic: "atomic "}[k]
		switch s := in.Space(); s {
		case ir.NoSpace:
			return kind + "generic"
		case ir.SharedClusterSpace:
			return kind + "shared"
		default:
			return kind + s.String()
		}
	case ir.Texture:
		return "texture"
	case ir.Fetch:
		return "prefetch"
	case ir.Branch, ir.Call, ir.Leave:
		return "control"
	case ir.Barrier, ir.Mbarrier:
		return "barrier"
	case ir.Fence:
		return "fence"
	case ir.WarpSync:
		return "warp"
	case ir.Matrix, ir.Wgmma:
		return "matrix"
	case ir.Async:
		return "async"
	}
	return "other"
}
