package cpu

import (
	"fmt"
	"io"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// Code implements program.Executor.
func (executor) Code(io.Writer, *program.Program) error {
	return fmt.Errorf("code of a plan: the device runs functions that are compiled already: %w", compute.ErrUnsupported)
}
