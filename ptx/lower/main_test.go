package lower

import (
	"os"
	"runtime/debug"
	"testing"

	"github.com/wavelane/wavelane/ptx/sim"
)

// The software GPU with every check on makes much garbage beside little that stays.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func newRig(t testing.TB, c sim.Config) *rig { return newRigOf(t, c, Lower) }
