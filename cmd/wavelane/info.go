//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane"
	"github.com/wavelane/wavelane/cpu"
	"github.com/wavelane/wavelane/cuda"
	"github.com/wavelane/wavelane/gpu"
	"github.com/wavelane/wavelane/simd"
)

func infoCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "info",
		Short: "List the devices of this machine with limits and features",
		Long: `List the devices of this machine with limits and features, say which one programs get
by default, and why others are not available.`,
		Example: `  wavelane info
  wavelane info --json | jq '.adapters[].name'`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := gather(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), r)
			}
			return r.write(c.OutOrStdout())
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

// report is what info knows.
type report struct {
	Version  string            `json:"version"`
	Default  *wavelane.Info    `json:"default"` // what Open returns, nil if it fails
	Failure  string            `json:"default_error,omitempty"`
	CPU      cpu.Info          `json:"cpu"`
	CUDA     []cuda.Info       `json:"cuda"`
	Adapters []gpu.AdapterInfo `json:"adapters"`
	// GPU says why there is no hardware adapter, empty if there is one.
	GPU string `json:"gpu_unavailable,omitempty"`
	// NoCUDA says why there is no GPU of NVIDIA's driver, empty if there is one.
	NoCUDA string `json:"cuda_unavailable,omitempty"`
}

func gather(ctx context.Context) (*report, error) {
	r := &report{Version: version(), Adapters: []gpu.AdapterInfo{}, CUDA: []cuda.Info{}}
	if list, err := cuda.Devices(ctx); err != nil {
		r.NoCUDA = err.Error()
	} else {
		r.CUDA = list
	}
	if err := gpu.Available(ctx); err != nil {
		r.GPU = err.Error()
	}
	if list, err := gpu.Adapters(ctx); err == nil { // else GPU has the reason
		r.Adapters = append(r.Adapters, list...)
	}
	cpu, err := cpu.Open(context.Background())
	if err != nil {
		return nil, err
	}
	defer cpu.Close()
	r.CPU = cpu.Info()
	dev, err := wavelane.Open(ctx)
	if err != nil {
		r.Failure = err.Error()
		return r, ctx.Err()
	}
	defer dev.Close()
	info := dev.Info()
	r.Default = &info
	return r, ctx.Err()
}

func (r *report) write(w io.Writer) error {
	fmt.Fprintf(w, "wavelane %s\n\n", r.Version)
	if r.Default != nil {
		fmt.Fprintf(w, "Default device: %s, %s\n  %s\n", r.Default.Kind, r.Default.Name, indent(r.Default.Reason))
	} else {
		fmt.Fprintf(w, "Default device: none\n  %s\n", indent(r.Failure))
	}
	fmt.Fprintf(w, "\ncpu: %s\n", r.CPU.Name)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  kernels\t%s (of %s)\n", r.CPU.Tier, strings.Join(simd.Tiers(), ", "))
	fmt.Fprintf(table, "  workers\t%d on %d processors\n", r.CPU.Workers, r.CPU.Cores)
	for _, c := range r.CUDA {
		writeCUDA(table, c)
	}
	for _, a := range r.Adapters {
		l := a.Limits
		fmt.Fprintf(table, "\ngpu:%d: %s\n", a.Index, a.Name)
		kind := string(a.Type)
		if a.Type == gpu.Software || a.Backend == "dx12" {
			kind += ", opened only when asked for"
		}
		features := "none"
		if len(a.Features) > 0 {
			features = strings.Join(a.Features, ", ")
		}
		fmt.Fprintf(table, "  type\t%s\n  backend\t%s\n  library\t%s\n", kind, strings.TrimSpace(a.Backend+" "+a.Driver+" "+a.DriverInfo), a.Library)
		fmt.Fprintf(table, "  features\t%s\n", features)
		fmt.Fprintf(table, "  buffer\t%s\n  storage binding\t%s\n  storage buffers\t%d a kernel\n", size(l.MaxBuffer), size(l.MaxBinding), l.MaxStorageBuffers)
		fmt.Fprintf(table, "  workgroup\t%d invocations, at most %v, %s of memory\n  workgroups\t%d a dimension\n", l.MaxInvocations,
			l.MaxWorkgroupSize, size(uint64(l.MaxShared)), l.MaxWorkgroups)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if r.NoCUDA != "" || r.GPU != "" {
		fmt.Fprintln(w)
	}
	if r.NoCUDA != "" {
		fmt.Fprintf(w, "No CUDA: %s\n", r.NoCUDA)
	}
	if r.GPU != "" {
		fmt.Fprintf(w, "No hardware GPU through WebGPU: %s\n", r.GPU)
	}
	return nil
}

func writeCUDA(w io.Writer, i cuda.Info) {
	fmt.Fprintf(w, "\ncuda:%d: %s\n", i.Ordinal, i.Name)
	fmt.Fprintf(w, "  architecture\t%s\n  driver\tCUDA %s\n", i.Target(), i.Driver)
	ecc := ""
	if i.ECC {
		ecc = ", ECC"
	}
	fmt.Fprintf(w, "  memory\t%s, %d bits at %d MHz%s\n  L2 cache\t%s\n", size(i.Memory), i.MemoryBus, i.MemoryClock, ecc, size(uint64(i.L2)))
	fmt.Fprintf(w, "  multiprocessors\t%d at %d MHz, %d threads and %d registers each\n", i.Multiprocessors, i.Clock, i.ThreadsMP, i.RegistersMP)
	fmt.Fprintf(w, "  shared memory\t%s a multiprocessor, %s a block, %s on demand\n", size(uint64(i.SharedMP)), size(uint64(i.Shared)),
		size(uint64(i.SharedOptin)))
	fmt.Fprintf(w, "  identity\t%s, PCI %s\n", i.UUID, i.PCIBus)
}

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n  ") }

// size writes bytes in binary units. Drivers without a limit report nearly 2⁶⁴.
func size(n uint64) string {
	if n >= 1<<62 {
		return "unlimited"
	}
	for i, unit := range []string{"GiB", "MiB", "KiB"} {
		if one := uint64(1) << (30 - 10*i); n >= one {
			return strconv.FormatFloat(float64(n)/float64(one), 'g', 4, 64) + " " + unit
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
