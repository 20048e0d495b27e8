//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/ptx/ir"

	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/ptx/parse"
	"github.com/wavelane/wavelane/ptx/sim"
)

func ptxCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "ptx",
		Short: "Write, check and execute PTX, without a GPU",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(ptxEmitCommand(), ptxCheckCommand(), ptxRunCommand(), ptxOptCommand(), ptxMapCommand())
	return c
}

// readModule parses a file, "-" for standard input. Where there is no such file, it is the kernel of the catalogue with that name.
func readModule(file string) (*ir.Module, error) {
	var src []byte
	var err error
	if file == "-" {
		src, err = io.ReadAll(os.Stdin)
	} else {
		src, err = os.ReadFile(file)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if k := kit.KernelNamed(file); k != nil {
			return k.Module()
		}
		return nil, fmt.Errorf("%w, and no kernel of that name: 'wavelane ptx emit' lists them", err)
	}
	if err != nil {
		return nil, err
	}
	return parse.Module(file, src)
}

type runFlags struct {
	entry                string
	grid, block, cluster string
	shared               int
	args                 []string
	seed                 uint64
	fast, perturb        bool
	stats, json          bool
}

func ptxRunCommand() *cobra.Command {
	var f runFlags
	c := &cobra.Command{
		Use:   "run FILE.ptx|KERNEL",
		Short: "Execute a kernel on the software GPU and print its buffers",
		Long: `Execute a kernel, of a file or of this library, on the software GPU, with every check on, and print its buffers afterwards.

Arguments are given in the kernel's order, each with --arg:
  u32:7, f32:1.5, s64:-3    a number
  buf:f32:1,2,3             the address of a buffer with these values
  buf:u8:@FILE              … with the bytes of a file
  zero:f32:1024             … with 1024 zeros
Types: ` + argumentTypeNames() + `.

It fails with a report when the software GPU finds an error: access out of bounds, uninitialised data, a race, a barrier that
not all threads reach, a deadlock, a missing wait, and others.`,
		Example: `  wavelane ptx run add_flat --arg u32:1 --arg u32:0 --arg buf:f32:1,2,3,4 --arg buf:f32:10,20,30,40 --arg zero:f32:4
  wavelane ptx run kernel.ptx --entry scale --grid 4,2 --block 32,8 --arg zero:f32:1024 --seed 7 --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			return ptxRun(c.Context(), c.OutOrStdout(), c.ErrOrStderr(), files[0], f)
		},
	}
	c.Flags().StringVar(&f.entry, "entry", "", "`name` of the kernel; not needed where there is one")
	c.Flags().StringVar(&f.grid, "grid", "1", "blocks, `X,Y,Z`; what is missing is 1")
	c.Flags().StringVar(&f.block, "block", "", "threads of a block, `X,Y,Z`; without it the kernel's .reqntid, or 1")
	c.Flags().StringVar(&f.cluster, "cluster", "1", "blocks of a cluster, `X,Y,Z`")
	c.Flags().IntVar(&f.shared, "shared", 0, "`bytes` of dynamic shared memory")
	c.Flags().StringArrayVar(&f.args, "arg", nil, "an `argument`, see above; repeat it in the kernel's order")
	c.Flags().Uint64Var(&f.seed, "seed", 0, "choose another order of blocks, warps and completions by this `number`")
	c.Flags().BoolVar(&f.fast, "fast", false, "check bounds only")
	c.Flags().BoolVar(&f.perturb, "perturb", false, "give approximate instructions their largest allowed error")
	c.Flags().BoolVar(&f.stats, "stats", false, "count instructions, bank conflicts and sectors, and print them to standard error")
	c.Flags().BoolVar(&f.json, "json", false, "print the buffers as JSON: an array of {arg, type, values}, where arg counts from 0")
	return c
}

func ptxRun(ctx context.Context, out, errOut io.Writer, file string, f runFlags) error {
	launch, args, err := f.parse()
	if err != nil {
		return err
	}
	source, err := readModule(file)
	if err != nil {
		return err
	}
	config := sim.Config{Checks: sim.AllChecks, Seed: f.seed, Perturb: f.perturb, Counters: f.stats}
	if f.fast {
		config.Checks = 0
	}
	gpu := sim.New(config)
	module, err := gpu.Load(source)
	if err != nil {
		return err
	}
	if f.entry == "" {
		if f.entry, err = onlyKernel(source); err != nil {
			return err
		}
	}
	kernel, err := module.Kernel(f.entry)
	if err != nil {
		return err
	}
	if f.block == "" {
		b := source.Func(f.entry).Bounds.ReqThreads
		launch.Block = sim.Dim3{X: max(1, b[0]), Y: max(1, b[1]), Z: max(1, b[2])}
	}
	addresses, err := upload(gpu, args)
	if err != nil {
		return err
	}
	if launch.Params, err = pack(kernel, args, addresses); err != nil {
		return err
	}
	stats, err := gpu.Run(ctx, kernel, launch)
	if err != nil {
		return err
	}
	for i := range args {
		if args[i].buffer {
			if err := gpu.Read(args[i].bytes, addresses[i]); err != nil {
				return fmt.Errorf("argument %d after the run: %w", i, err)
			}
		}
	}
	if f.stats {
		fmt.Fprintln(errOut, stats)
	}
	return writeBuffers(out, args, f.json)
}

func (f *runFlags) parse() (launch sim.Launch, args []argument, err error) {
	for _, d := range []struct {
		name, value string
		to          *sim.Dim3
	}{{"grid", f.grid, &launch.Grid}, {"block", f.block, &launch.Block}, {"cluster", f.cluster, &launch.Cluster}} {
		if d.value == "" && d.name == "block" {
			continue
		}
		if *d.to, err = parseDim(d.value); err != nil {
			return launch, nil, usagef("--%s %w", d.name, err)
		}
	}
	if f.shared < 0 {
		return launch, nil, usagef("--shared %d: want a number of bytes", f.shared)
	}
	launch.Shared = f.shared
	for i, s := range f.args {
		a, err := parseArgument(s)
		if err != nil {
			return launch, nil, usagef("--arg %d: %w", i, err)
		}
		args = append(args, a)
	}
	return launch, args, nil
}

func parseDim(s string) (sim.Dim3, error) {
	d := [3]int{1, 1, 1}
	parts := strings.Split(s, ",")
	if len(parts) > 3 {
		return sim.Dim3{}, fmt.Errorf("%q: want X,Y,Z", s)
	}
	for i, p := range parts {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || n < 1 {
			return sim.Dim3{}, fmt.Errorf("%q: want X,Y,Z, each at least 1", s)
		}
		d[i] = n
	}
	return sim.Dim3{X: d[0], Y: d[1], Z: d[2]}, nil
}

// onlyKernel is for modules that leave no choice.
func onlyKernel(m *ir.Module) (string, error) {
	var names []string
	for _, f := range m.Funcs {
		if f.Entry && f.Body != nil {
			names = append(names, f.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", errors.New("no kernel (.entry) in this file")
	case 1:
		return names[0], nil
	}
	return "", usagef("--entry is needed, one of %s", strings.Join(names, ", "))
}

func upload(gpu *sim.GPU, args []argument) ([]uint64, error) {
	addresses := make([]uint64, len(args))
	for i := range args {
		if !args[i].buffer {
			continue
		}
		var err error
		if addresses[i], err = gpu.Alloc(len(args[i].bytes)); err != nil {
			return nil, err
		}
		if err := gpu.Write(addresses[i], args[i].bytes); err != nil {
			return nil, err
		}
	}
	return addresses, nil
}

// pack is the kernel's parameter block. Sizes must agree, and numbers must be floating-point where the kernel says so.
func pack(k *sim.Kernel, args []argument, addresses []uint64) ([]byte, error) {
	params := k.Params()
	if len(params) != len(args) {
		return nil, usagef("the kernel has %d parameters, and there are %d --arg: %s", len(params), len(args), signature(params))
	}
	values := make([]any, len(args))
	for i := range args {
		a, p := &args[i], &params[i]
		typ := a.typ
		if a.buffer {
			typ = ir.U64
			values[i] = addresses[i]
		} else {
			values[i] = a.bytes
		}
		differ := p.Type.Class() != ir.Bits && p.Type.IsFloat() != typ.IsFloat()
		if p.Size() != typ.Size() || differ {
			return nil, usagef("--arg %d is a %s, and the kernel wants %s", i, describe(a), p.String())
		}
	}
	return k.Pack(values...)
}

func describe(a *argument) string {
	if a.buffer {
		return "buffer"
	}
	return a.typ.String()
}

func signature(params []ir.Var) string {
	list := make([]string, len(params))
	for i := range params {
		list[i] = params[i].String()
	}
	return "(" + strings.Join(list, ", ") + ")"
}

func writeBuffers(out io.Writer, args []argument, asJSON bool) error {
	type buffer struct {
		Arg    int    `json:"arg"`
		Type   string `json:"type"`
		Values []any  `json:"values"`
	}
	buffers := []buffer{}
	for i := range args {
		if args[i].buffer {
			buffers = append(buffers, buffer{i, args[i].typ.String(), args[i].values()})
		}
	}
	if asJSON {
		return writeJSON(out, buffers)
	}
	var text strings.Builder
	for _, b := range buffers {
		fmt.Fprintf(&text, "arg %d, %s[%d]:", b.Arg, b.Type, len(b.Values))
		for _, v := range b.Values {
			fmt.Fprintf(&text, " %v", v)
		}
		text.WriteByte('\n')
	}
	_, err := io.WriteString(out, text.String())
	return err
}
