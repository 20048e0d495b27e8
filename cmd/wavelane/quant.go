//go:build !js

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"github.com/wavelane/wavelane/quant"
)

func quantCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "quant",
		Short: "Convert between float32 and GGML's block formats",
		Args:  cobra.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(quantizeCommand(), dequantizeCommand())
	return c
}

func quantizeCommand() *cobra.Command {
	return conversion("quantize", "Read float32 values, write blocks",
		`Read float32 values from standard input, little-endian and without anything around them, and write the blocks of a
format to standard output: those that GGML's reference quantisers make.`,
		`  wavelane quant quantize --type Q4_K --cols 4096 < weights.f32 > weights.q4_k
  wavelane quant quantize --type Q8_0 < weights.f32 | wavelane quant dequantize --type Q8_0 > again.f32`,
		func(t quant.Type) conversionSide { return conversionSide{quant.F32, t} })
}

func dequantizeCommand() *cobra.Command {
	return conversion("dequantize", "Read blocks, write float32 values",
		`Read the blocks of a format from standard input and write their values to standard output, as float32, little-endian
and without anything around them: bit by bit the values that GGML gives. Infinite or NaN scales are taken as they are.`,
		`  wavelane quant dequantize --type Q6_K --rows 4096 --cols 14336 < weights.q6_k > weights.f32`,
		func(t quant.Type) conversionSide { return conversionSide{t, quant.F32} })
}

// conversionSide says which format is read and which is written. One of them is F32.
type conversionSide struct{ in, out quant.Type }

func conversion(use, short, long, example string, side func(quant.Type) conversionSide) *cobra.Command {
	var name string
	var rows, cols int
	names := make([]string, 0, 16)
	for _, t := range quant.Types() {
		names = append(names, t.String())
	}
	c := &cobra.Command{
		Use:   use + " --type T",
		Short: short,
		Long: long + `

Memory does not grow with the input. With --cols, each row must be whole blocks and the input whole rows; with --rows, as
many rows as that. What has been written before an error stays written.

Formats: ` + strings.Join(names, ", ") + ".",
		Example: example,
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t, err := quant.ParseType(name)
			switch {
			case err != nil || !t.Convertible():
				return usagef("--type %q: there are %s", name, strings.Join(names, ", "))
			case c.Flags().Changed("cols") && cols < 1:
				return usagef("--cols %d: at least 1", cols)
			case c.Flags().Changed("rows") && (rows < 1 || cols == 0):
				return usagef("--rows %d: at least 1, and together with --cols", rows)
			case cols > 0 && cols%t.BlockLen() != 0:
				return usagef("--cols %d: a row is no whole blocks of %v, which have %d values", cols, t, t.BlockLen())
			case rows > 0 && cols > math.MaxInt64/8/rows:
				return usagef("--rows %d --cols %d: too many", rows, cols)
			}
			s := &converter{conversionSide: side(t), block: t.BlockLen(), rows: int64(rows), cols: int64(cols)}
			return s.run(c.Context(), c.InOrStdin(), c.OutOrStdout())
		},
	}
	c.Flags().StringVar(&name, "type", "", "`format` of the blocks")
	c.Flags().IntVar(&rows, "rows", 0, "`number` of rows of a matrix")
	c.Flags().IntVar(&cols, "cols", 0, "`number` of values of a row")
	return c
}

// converter streams values from one format to the other.
type converter struct {
	conversionSide
	block      int   // values of a block
	rows, cols int64 // zero where they were not given
	done       int64 // values
}

// run returns when ctx is done, even if in blocks.
func (s *converter) run(ctx context.Context, in io.Reader, out io.Writer) error {
	failed := make(chan error, 1)
	go func() {
		w := bufio.NewWriterSize(out, 1<<16)
		err := s.convert(ctx, in, w)
		failed <- errors.Join(err, w.Flush())
	}()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *converter) convert(ctx context.Context, in io.Reader, out io.Writer) error {
	const chunk = 1 << 13 // values, a multiple of all block lengths
	width, _ := s.in.RowSize(chunk)
	read, values := make([]byte, width), make([]float32, chunk)
	width, _ = s.out.RowSize(chunk)
	write := make([]byte, width)
	for ctx.Err() == nil {
		n, end := io.ReadFull(in, read)
		if end != nil && end != io.EOF && !errors.Is(end, io.ErrUnexpectedEOF) {
			return fmt.Errorf("reading standard input: %w", end)
		}
		k := n / s.in.BlockSize() * s.in.BlockLen()
		if k%s.block != 0 || n%s.in.BlockSize() != 0 {
			return s.cut(n)
		}
		if all := s.rows * s.cols; all > 0 && s.done+int64(k) > all {
			return fmt.Errorf("the input has more than %d × %d values", s.rows, s.cols)
		}
		to := write[:k/s.out.BlockLen()*s.out.BlockSize()]
		if err := s.values(values[:k], to, read[:n]); err != nil {
			return fmt.Errorf("in the values from number %d on: %w", s.done, err)
		}
		if _, err := out.Write(to); err != nil {
			return fmt.Errorf("writing standard output: %w", err)
		}
		s.done += int64(k)
		if end != nil {
			return s.complete()
		}
	}
	return ctx.Err()
}

func (s *converter) values(values []float32, to, from []byte) error {
	if err := quant.Dequantize(values, s.in, from); err != nil {
		return err
	}
	if s.out != quant.F32 {
		return quant.Quantize(to, s.out, values)
	}
	for i, x := range values { // a NaN is no error on this way
		binary.LittleEndian.PutUint32(to[4*i:], math.Float32bits(x))
	}
	return nil
}

// cut says what is wrong with the last n bytes of the input.
func (s *converter) cut(n int) error {
	size := s.block * s.in.BlockSize() / s.in.BlockLen()
	return fmt.Errorf("the input ends in the middle of a block: after %d values, %d bytes, not the %d of a block",
		s.done+int64(n/size*s.block), n%size, size)
}

func (s *converter) complete() error {
	switch {
	case s.rows > 0 && s.done != s.rows*s.cols:
		return fmt.Errorf("the input has %d values, not %d × %d", s.done, s.rows, s.cols)
	case s.cols > 0 && s.done%s.cols != 0:
		return fmt.Errorf("the input has %d values: %d rows of %d and %d values more",
			s.done, s.done/s.cols, s.cols, s.done%s.cols)
	}
	return nil
}
