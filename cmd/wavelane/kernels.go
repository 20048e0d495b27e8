//go:build !js

package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/internal/catalogue"

	"github.com/wavelane/wavelane/internal/ptxkernels"
	"github.com/wavelane/wavelane/internal/ptxkernels/kit"
	"github.com/wavelane/wavelane/simd"
	"github.com/wavelane/wavelane/wgsl"
)

// listedKernel is a kernel of one device, with what is known of it without running it.
type listedKernel struct {
	Device  string   `json:"device"` // "cuda", "gpu" or "cpu"
	Family  string   `json:"family"` // on CUDA the module, elsewhere the class of operations
	Name    string   `json:"name"`
	Doc     string   `json:"doc,omitempty"`
	Entries []string `json:"entries"` // of the catalogue that use it
	DTypes  []string `json:"dtypes"`  // of their operands

	// On CUDA.
	Block      *[3]int               `json:"block,omitempty"` // threads
	Parameters []listedParameter     `json:"parameters,omitempty"`
	Target     string                `json:"target,omitempty"`   // least
	Compiled   []ptxkernels.Compiled `json:"compiled,omitempty"` // by NVIDIA's assembler, for several targets
	Intensity  float64               `json:"flops_per_byte,omitempty"`
	Bound      string                `json:"bound,omitempty"` // of an H200 at that intensity: memory or compute

	WebGPU *wgsl.Listed `json:"webgpu,omitempty"`
	Tiers  []string     `json:"tiers,omitempty"` // of the CPU: instruction sets that this machine has it for
}

type listedParameter struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Bytes int    `json:"bytes"`
}

var kernelDevices = []string{"cuda", "gpu", "cpu"}

func kernelsCommand() *cobra.Command {
	var asJSON bool
	var device, family string
	c := &cobra.Command{
		Use:   "kernels [NAME]",
		Short: "List the kernels of this library, for every device",
		Long: `List the kernels of this library: for NVIDIA GPUs (cuda) with block, parameters, registers and spills as ptxas counts them, and
what limits them on an H200; for WebGPU (gpu) with workgroup, bindings and workgroup memory at the limits that every browser grants;
and for the CPU by operation, with the instruction sets that this machine has. No device is needed.

NAME picks the kernels with that name and those that the operation of that name uses.`,
		Example: `  wavelane kernels
  wavelane kernels softmax
  wavelane kernels --device cuda --family matmul
  wavelane kernels --json | jq '.[] | select(.bound == "compute") | .name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := listedKernels()
			if err != nil {
				return err
			}
			if list, err = pickKernels(list, device, family, args); err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), list)
			}
			return writeKernels(c.OutOrStdout(), list)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	c.Flags().StringVar(&device, "device", "", "`device` whose kernels to list: "+strings.Join(kernelDevices, ", ")+"; all without it")
	c.Flags().StringVar(&family, "family", "", "`name` of a family")
	return c
}

// listedKernels are all there are.
func listedKernels() (list []listedKernel, err error) {
	for _, f := range kit.Families() {
		for _, k := range f.Kernels {
			layout, err := k.Layout()
			if err != nil {
				return nil, err
			}
			use := ptxkernels.UseOf(k)
			x := listedKernel{Device: "cuda", Family: k.Family, Name: k.Name, Doc: k.Doc + " Parameters: " + k.Parameters() + ".", Entries: use.Entries, Block: &k.Block,
				Target: use.Target, Compiled: ptxkernels.CompiledOf(k), Intensity: use.Intensity, Bound: use.Bound}
			for i := range layout.Len() {
				p := layout.Param(i)
				x.Parameters = append(x.Parameters, listedParameter{p.Name, p.Type.String(), p.Size})
			}
			list = append(list, x)
		}
	}
	shaders, err := wgsl.List()
	if err != nil {
		return nil, err
	}
	for i := range shaders {
		s := &shaders[i]
		list = append(list, listedKernel{Device: "gpu", Family: familyOf(s.Entries), Name: s.Name, Entries: s.Entries, WebGPU: s})
	}
	for _, e := range catalogue.All() {
		list = append(list, listedKernel{Device: "cpu", Family: e.Class.String(), Name: e.Name, Doc: e.Doc, Entries: []string{e.Name},
			Tiers: simd.Tiers()})
	}
	for i := range list {
		list[i].DTypes = dtypesOf(list[i].Entries)
	}
	return list, nil
}

// familyOf is the class of entries that share a kernel.
func familyOf(entries []string) string {
	for _, name := range entries {
		if e := catalogue.Lookup(name); e != nil {
			return e.Class.String()
		}
	}
	return ""
}

// dtypesOf are the element types that the operands of entries may have.
func dtypesOf(entries []string) []string {
	types := []string{}
	for _, name := range entries {
		e := catalogue.Lookup(name)
		if e == nil {
			continue
		}
		for _, in := range e.Inputs {
			if in.Types == nil {
				types = append(types, "f32")
			}
			for _, d := range in.Types {
				types = append(types, d.String())
			}
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

// pickKernels applies the flags. What picks nothing is an error that says what there is.
func pickKernels(list []listedKernel, device, family string, args []string) ([]listedKernel, error) {
	if device != "" && !slices.Contains(kernelDevices, device) {
		return nil, usagef("no device %q: there are %s", device, strings.Join(kernelDevices, ", "))
	}
	list = slices.DeleteFunc(list, func(k listedKernel) bool { return device != "" && k.Device != device })
	if family != "" {
		var families []string
		for _, k := range list {
			families = append(families, k.Family)
		}
		slices.Sort(families)
		if families = slices.Compact(families); !slices.Contains(families, family) {
			return nil, usagef("no family %q: there are %s", family, strings.Join(families, ", "))
		}
		list = slices.DeleteFunc(list, func(k listedKernel) bool { return k.Family != family })
	}
	if len(args) > 0 {
		list = slices.DeleteFunc(list, func(k listedKernel) bool { return k.Name != args[0] && !slices.Contains(k.Entries, args[0]) })
		if len(list) == 0 {
			return nil, usagef("no kernel and no operation %q: 'wavelane kernels' lists them", args[0])
		}
	}
	return list, nil
}

func writeKernels(out io.Writer, list []listedKernel) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	last := ""
	for _, k := range list {
		if k.Device != last {
			heads := map[string]string{
				"cuda": "CUDA\tBLOCK\tTARGET\tREGISTERS\tSPILLS\tSTACK\tBOUND\tOPERATIONS",
				"gpu":  "WEBGPU\tWORKGROUP\tBINDINGS\tSHARED\tVARIANTS\t\t\tOPERATIONS",
				"cpu":  "CPU\tINSTRUCTION SETS\tTYPES\t\t\t\t\tCLASS",
			}
			if last != "" {
				fmt.Fprintln(w)
			}
			fmt.Fprintln(w, heads[k.Device])
			last = k.Device
		}
		switch entries := strings.Join(k.Entries, " "); k.Device {
		case "cuda":
			registers, spills, stack := k.most()
			fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Family, k.Name, times(*k.Block), k.Target, registers, spills, stack,
				k.Bound, entries)
		case "gpu":
			g := k.WebGPU.Workgroup
			fmt.Fprintf(w, "%s\t%s\t%d\t%d\t%d\t\t\t%s\n", k.Name, times([3]int{int(g[0]), int(g[1]), int(g[2])}), len(k.WebGPU.Bindings),
				k.WebGPU.Shared, k.WebGPU.Kernels, entries)
		default:
			fmt.Fprintf(w, "%s\t%s\t%s\t\t\t\t\t%s\n", k.Name, strings.Join(k.Tiers, " "), strings.Join(k.DTypes, " "), k.Family)
		}
	}
	return w.Flush()
}

// most is what the kernel takes on the target where that is most; "?" where ptxas has not seen it.
func (k *listedKernel) most() (registers, spills, stack string) {
	if len(k.Compiled) == 0 {
		return "?", "?", "?"
	}
	var r, s, f int
	for _, c := range k.Compiled {
		r, s, f = max(r, c.Registers), max(s, c.SpillStores+c.SpillLoads), max(f, c.Stack)
	}
	return fmt.Sprint(r), fmt.Sprint(s), fmt.Sprint(f)
}

func times(n [3]int) string {
	switch {
	case n[2] > 1:
		return fmt.Sprintf("%d×%d×%d", n[0], n[1], n[2])
	case n[1] > 1:
		return fmt.Sprintf("%d×%d", n[0], n[1])
	}
	return fmt.Sprint(n[0])
}
