//go:build !js

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/cuda"
)

type monitorFlags struct {
	json, software bool
	device, count  int
	interval       time.Duration
}

func monitorCommand() *cobra.Command {
	var f monitorFlags
	c := &cobra.Command{
		Use:   "monitor",
		Short: "Watch the memory of NVIDIA GPUs",
		Long: `Watch the memory of NVIDIA GPUs, all processes together: a line for each GPU and each interval, until
interrupted. Watching takes a context on each GPU, which itself needs some memory.`,
		Example: `  wavelane monitor
  wavelane monitor --device 0 --interval 200ms
  wavelane monitor --count 1 --json | jq .used`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error { return monitor(c.Context(), c.OutOrStdout(), f) },
	}
	c.Flags().BoolVar(&f.json, "json", false, "write a line of JSON each")
	c.Flags().BoolVar(&f.software, "software", false, "watch a software GPU: shows what the output looks like")
	c.Flags().IntVar(&f.device, "device", -1, "only the GPU with this `ordinal`; -1 is all of them")
	c.Flags().IntVar(&f.count, "count", 0, "stop after this number of `lines` for each GPU; 0 is never")
	c.Flags().DurationVar(&f.interval, "interval", time.Second, "`time` between lines")
	return c
}

// sample is one look at one GPU. Memory is in bytes.
type sample struct {
	Time    time.Time `json:"time"`
	Ordinal int       `json:"ordinal"`
	Name    string    `json:"name"`
	Used    uint64    `json:"used"`
	Total   uint64    `json:"total"`
}

const barWidth = 40

func (s sample) String() string {
	full := int(barWidth * s.Used / max(s.Total, 1))
	bar := strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
	return fmt.Sprintf("%s  cuda:%d %s  %s  %s of %s", s.Time.Format(time.TimeOnly), s.Ordinal, s.Name, bar, size(s.Used), size(s.Total))
}

func monitor(ctx context.Context, out io.Writer, f monitorFlags) error {
	if f.interval <= 0 || f.count < 0 || f.device < -1 {
		return usagef("--interval must be positive, --count must not be negative, --device is an ordinal or -1")
	}
	var opts []cuda.Option
	if f.software {
		opts = append(opts, cuda.WithSoftware())
	}
	list, err := cuda.Devices(ctx, opts...)
	if err != nil {
		return err
	}
	var devices []*cuda.Device
	for _, info := range list {
		if f.device >= 0 && info.Ordinal != f.device {
			continue
		}
		d, err := cuda.Open(ctx, append(opts, cuda.WithDevice(info.Ordinal))...)
		if err != nil {
			return err
		}
		defer d.Close()
		devices = append(devices, d)
	}
	if len(devices) == 0 {
		return usagef("--device %d: there are %d GPUs, counted from 0", f.device, len(list))
	}
	tick := time.NewTicker(f.interval)
	defer tick.Stop()
	for i := 1; ; i++ {
		for _, d := range devices {
			if err := look(out, d, f.json); err != nil {
				return err
			}
		}
		if i == f.count {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}

// look writes a line about one GPU.
func look(out io.Writer, d *cuda.Device, asJSON bool) error {
	m, err := d.Memory()
	if err != nil {
		return err
	}
	info := d.Info()
	s := sample{time.Now(), info.Ordinal, info.Name, m.DeviceTotal - m.DeviceFree, m.DeviceTotal}
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	_, err = fmt.Fprintln(out, s)
	return err
}
