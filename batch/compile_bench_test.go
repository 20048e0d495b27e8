package batch_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/wavelane/wavelane/batch"
	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// idle compiles programs to nothing and agrees to every fusion.
type idle struct {
	executor           // nil: nobody calls the other methods
	program.Executable // nil
}

type executor = program.Executor

func (idle) Fuses(*program.Step, []program.Type, []program.Type) bool { return true }
func (idle) Compile(context.Context, *program.Program) (program.Executable, error) {
	return idle{}, nil
}
func (idle) Start(*program.IO) *compute.Future { return compute.Failed(nil) }
func (idle) Close() error                      { return nil }

// recordElementwise records elementwise steps, as a chain that another operand enters now and then.
func recordElementwise(steps int) *batch.Batch {
	b := batch.New(program.Seal(idle{}))
	x := b.Upload(make([]float32, 1024))
	y := x
	for i := range steps {
		switch i % 3 {
		case 0:
			y = b.Scale(y, 1.5)
		case 1:
			y = b.Add(y, x)
		default:
			y = b.Tanh(y)
		}
	}
	b.Read(y)
	return b
}

func BenchmarkRecord(b *testing.B) {
	for _, steps := range []int{300, 1000, 3000} {
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				recordElementwise(steps)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, steps := range []int{300, 1000, 3000} {
		batch := recordElementwise(steps)
		b.Run(fmt.Sprint(steps), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, err := batch.Compile(context.Background())
				if err != nil {
					b.Fatal(err)
				}
				p.Close()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*steps), "ns/step")
		})
	}
}
