package profile

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// WriteText writes each kernel's figures and a table of its lines, those with most instructions first.
func (p *Profile) WriteText(w io.Writer) error {
	for _, k := range p.Kernels {
		var b strings.Builder
		for _, row := range p.summary(k) {
			fmt.Fprintf(&b, "%s: %s\n", row[0], row[1])
		}
		t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "instr\tshare\tlanes\tdiverged\tsectors\tof ideal\tconflicts\tflops\t  line")
		lines := slices.Clone(k.Lines)
		slices.SortStableFunc(lines, func(a, b *Line) int { return cmp.Compare(b.Instructions, a.Instructions) })
		for _, l := range lines {
			fmt.Fprintf(t, "%d\t%.1f %%\t%.1f\t%d\t%d\t%s\t%d\t%d\t  %s: %s\n", l.Instructions, 100*l.Share, l.LanesPerWarp(), l.Diverged, l.Sectors,
				times(l.SectorRatio()), l.Conflicts, l.Flops, l.Pos, strings.TrimSpace(l.Text))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if _, err := io.WriteString(w, b.String()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func times(x float64) string {
	if x == 0 {
		return "–"
	}
	return fmt.Sprintf("%.1f×", x)
}

// summary is what there is to say of a kernel as a whole: a name and a sentence each.
func (p *Profile) summary(k *Kernel) [][2]string {
	plural := map[bool]string{true: "launch", false: "launches"}[k.Launches == 1]
	rows := [][2]string{
		{k.Name, fmt.Sprintf("%d %s, grid %v, block %v", k.Launches, plural, k.Grid, k.Block)},
		{"instructions", fmt.Sprintf("%s of warps, %.1f of 32 lanes active", big(k.Instructions), k.LanesPerWarp())},
		{"branches", fmt.Sprintf("%s, %s diverged", big(k.Branches), big(k.Diverged))},
	}
	if k.GlobalRequests > 0 {
		rows = append(rows, [2]string{"global memory", fmt.Sprintf("%s read, %s written; %s sectors of 32 bytes, %s of the least", bytes(k.GlobalRead),
			bytes(k.GlobalWritten), big(k.Sectors), times(k.SectorRatio()))})
	}
	if k.SharedRequests > 0 {
		rows = append(rows, [2]string{"shared memory", fmt.Sprintf("%s read, %s written; %s turns of the banks, %s of them conflicts",
			bytes(k.SharedRead), bytes(k.SharedWritten), big(k.Wavefronts), big(k.Conflicts))})
	}
	if k.LocalBytes > 0 {
		rows = append(rows, [2]string{"local memory", bytes(k.LocalBytes) + " (spills, arrays with computed indices)"})
	}
	if k.Atomics > 0 {
		rows = append(rows, [2]string{"atomic operations", big(k.Atomics)})
	}
	occupancy := "no multiprocessor holds a block"
	if k.Occupancy != nil {
		occupancy = k.Occupancy.String()
	}
	rows = append(rows, [2]string{"occupancy", fmt.Sprintf("%s, with about %d registers per thread and %s of shared memory per block", occupancy,
		k.Registers, bytes(uint64(k.Shared)))})
	r := k.Roofline
	if r.Bytes+r.Operations > 0 {
		rows = append(rows, [2]string{"roofline", fmt.Sprintf("%s operations (%s) on %s, %.3g per byte; from %.3g per byte on arithmetic limits: bound by %s, at least %s",
			big(r.Operations), r.Rate, bytes(r.Bytes), r.Intensity, r.Ridge, r.Bound, seconds(r.Seconds))})
	}
	return append(rows, [2]string{"GPU", p.GPU.Name})
}

// big is a number with its thousands apart.
func big(n uint64) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func bytes(n uint64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

func seconds(s float64) string {
	switch {
	case s >= 1:
		return fmt.Sprintf("%.3g s", s)
	case s >= 1e-3:
		return fmt.Sprintf("%.3g ms", s*1e3)
	case s < 1e-6:
		return fmt.Sprintf("%.3g ns", s*1e9)
	}
	return fmt.Sprintf("%.3g µs", s*1e6)
}
