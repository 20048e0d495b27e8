package ptxkernels

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/wavelane/wavelane/internal/ptxkernels/kerneltest"
	"github.com/wavelane/wavelane/ptx/sim"
)

// The software GPU with every check on makes much garbage beside little that stays.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func NewRig(t testing.TB, c sim.Config) *kerneltest.Rig { return kerneltest.New(t, c, Lower) }
