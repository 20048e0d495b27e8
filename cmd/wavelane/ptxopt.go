//go:build !js

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/ptx/opt"
)

type optFlags struct {
	unroll         int
	contract, json bool
	stats          bool
}

func ptxOptCommand() *cobra.Command {
	var f optFlags
	c := &cobra.Command{
		Use:   "opt FILE.ptx|KERNEL",
		Short: "Print shorter PTX that computes the same",
		Long: `Print a module, of a file or of this library, with its functions rewritten: constants folded, copies and repeated
computations taken out, divisions strength-reduced, addresses joined, dead code deleted, and loops unrolled that ask for it. Results
stay the same bit for bit. Registers are counted by ptxas alone, which may need more of them or fewer afterwards: compare.`,
		Example: `  wavelane ptx opt kernel.ptx --stats > shorter.ptx
  wavelane ptx opt softmax --unroll 4 --json | jq .after`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			return ptxOpt(c.OutOrStdout(), c.ErrOrStderr(), files[0], f)
		},
	}
	c.Flags().IntVar(&f.unroll, "unroll", 0, "`iterations` that innermost loops make at once where no pragma says otherwise")
	c.Flags().BoolVar(&f.contract, "contract", false, "let mul and add without rounding modifiers become fma, which rounds once")
	c.Flags().BoolVar(&f.stats, "stats", false, "print to standard error what the passes did")
	c.Flags().BoolVar(&f.json, "json", false, "write as JSON what the passes did, in place of the module")
	return c
}

func ptxOpt(out, errOut io.Writer, file string, f optFlags) error {
	if f.unroll < 0 {
		return usagef("--unroll %d: must not be negative", f.unroll)
	}
	m, err := readModule(file)
	if err != nil {
		return err
	}
	m, stats, err := opt.Run(m, opt.Options{Passes: opt.All, Contract: f.contract, Unroll: f.unroll})
	if err != nil {
		return err
	}
	if f.stats {
		fmt.Fprintf(errOut, "%d instructions, now %d\n", stats.Before, stats.After)
		for _, p := range stats.Passes {
			fmt.Fprintf(errOut, "%s: %d changed, %d removed, %d added\n", p.Pass, p.Changed, p.Removed, p.Added)
		}
		for _, l := range stats.Loops {
			fmt.Fprintf(errOut, "loop %s of %s: %d copies %s\n", l.Loop, l.Function, l.Copies, l.Reason)
		}
	}
	if f.json {
		return writeJSON(out, stats)
	}
	_, err = io.WriteString(out, m.String())
	return err
}
