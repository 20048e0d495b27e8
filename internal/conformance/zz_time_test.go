//go:build cgo || js

package conformance

import (
	"fmt"
	"testing"
	"time"

	"github.com/wavelane/wavelane/internal/op"
)

func TestZZTime(t *testing.T) {
	name, dev := openSoftware(t, "")
	d := newDevice(name, dev)
	for _, e := range []*op.Entry{op.Dequantize, op.QuantMatMulRowMajor, op.QuantMatMulColMajor, op.QuantRMSNormMatVec, op.QuantGateUpSwiGLU, op.QuantQKV} {
		cases, _ := casesOf(e)
		var all time.Duration
		for _, c := range cases {
			if c.note == "no weights" {
				continue
			}
			t0 := time.Now()
			d.cases(t, []*testCase{c})
			dt := time.Since(t0)
			all += dt
			in := c.inputs(newSource(Seed(), c.entry.Name, c.number))
			fmt.Println(dt.Milliseconds(), e.Name, c.describe(in))
		}
		fmt.Println("ALL", e.Name, all, len(cases))
	}
}
