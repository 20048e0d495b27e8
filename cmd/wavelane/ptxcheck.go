//go:build !js

package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/ptx/analyze"
	"github.com/wavelane/wavelane/ptx/ir"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/roofline"
)

func ptxEmitCommand() *cobra.Command {
	family := ""
	c := &cobra.Command{
		Use:   "emit [KERNEL]",
		Short: "Print a kernel of this library as PTX, or list them",
		Long: `Print a kernel of this library as PTX: those that the operations of the catalogue run on NVIDIA GPUs. With --family, print a
whole module of them, as the driver gets it. Without either, list them.`,
		Example: `  wavelane ptx emit
  wavelane ptx emit softmax > softmax.ptx
  wavelane ptx emit --family matmul > matmul.ptx`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 && family == "" {
				return listKernels(c.OutOrStdout())
			}
			if len(args) > 0 && family != "" {
				return usagef("a family is printed as a whole: KERNEL or --family, not both")
			}
			m, err := emitted(args, family)
			if err != nil {
				return err
			}
			_, err = io.WriteString(c.OutOrStdout(), m.String())
			return err
		},
	}
	c.Flags().StringVar(&family, "family", "", "`name` of a family of the catalogue's kernels")
	return c
}

func emitted(args []string, family string) (*ir.Module, error) {
	if family != "" {
		if f := kit.FamilyOf(family); f != nil {
			return f.Module()
		}
		return nil, usagef("no family %q: 'wavelane ptx emit' lists them", family)
	}
	if k := kit.KernelNamed(args[0]); k != nil {
		return k.Module()
	}
	return nil, usagef("no kernel %q: 'wavelane ptx emit' lists them", args[0])
}

func listKernels(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, f := range kit.Families() {
		for _, k := range f.Kernels {
			fmt.Fprintf(w, "%s: %s\t%d × %d × %d threads\t%s Parameters: %s.\n", f.Name, k.Name, k.Block[0], k.Block[1], k.Block[2], k.Doc, k.Parameters())
		}
	}
	return w.Flush()
}

type checkFlags struct {
	json, strict, bugs bool
	sm                 int
	block, grid, gpu   string
	shared             int
}

func ptxCheckCommand() *cobra.Command {
	var f checkFlags
	c := &cobra.Command{
		Use:   "check FILE.ptx|KERNEL",
		Short: "Analyse PTX without executing it",
		Long: `Analyse PTX, that of a file or of a kernel of this library, without executing it: registers and occupancy, memory accesses,
coalescing and bank conflicts, arithmetic intensity, and defects such as missing barriers, races, early exits, accesses out of
bounds and missing waits.

It fails when it finds a bug; other findings do not make it fail.`,
		Example: `  wavelane ptx check kernel.ptx
  wavelane ptx check kernel.ptx --block 256 --gpu H200 --strict
  wavelane ptx check softmax --gpu H200
  wavelane ptx check kernel.ptx --bugs --json | jq '.findings[].message'`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error { return ptxCheck(c.OutOrStdout(), files[0], f) },
	}
	c.Flags().BoolVar(&f.json, "json", false, "write JSON")
	c.Flags().BoolVar(&f.strict, "strict", false, "add findings that are not defects in most code")
	c.Flags().BoolVar(&f.bugs, "bugs", false, "bugs only")
	c.Flags().IntVar(&f.sm, "sm", 0, "`architecture` for occupancy, such as 90; without it that of --gpu or of the file")
	c.Flags().StringVar(&f.block, "block", "", "threads of a block, `X,Y,Z`; without it the file's .reqntid or .maxntid, or 128")
	c.Flags().StringVar(&f.grid, "grid", "", "blocks, `X,Y,Z`: then the first and the last one are analysed")
	c.Flags().IntVar(&f.shared, "shared", 0, "`bytes` of dynamic shared memory")
	c.Flags().StringVar(&f.gpu, "gpu", "", "show kernels under the roofline of a `GPU`: "+strings.Join(roofline.Names(), ", "))
	return c
}

func ptxCheck(out io.Writer, file string, f checkFlags) error {
	o := analyze.Options{SM: f.sm, Strict: f.strict, BugsOnly: f.bugs, Shared: f.shared}
	for _, d := range []struct {
		name, value string
		to          *[3]int
	}{{"block", f.block, &o.Block}, {"grid", f.grid, &o.Grid}} {
		if d.value == "" {
			continue
		}
		dim, err := parseDim(d.value)
		if err != nil {
			return usagef("--%s %w", d.name, err)
		}
		*d.to = [3]int{dim.X, dim.Y, dim.Z}
	}
	if f.gpu != "" {
		model, err := roofline.Named(f.gpu)
		if err != nil {
			return usagef("--gpu: %w", err)
		}
		o.GPU = &model
	}
	var m *ir.Module
	m, err := readModule(file)
	if err != nil {
		return err
	}
	r, err := analyze.Module(m, o)
	if err != nil {
		return err
	}
	if f.json {
		err = writeJSON(out, r)
	} else {
		err = r.WriteText(out)
	}
	if n := r.Count(analyze.Bug); n > 0 && err == nil {
		err = fmt.Errorf("%s: %d %s", file, n, map[bool]string{true: "bug", false: "bugs"}[n == 1])
	}
	return err
}
