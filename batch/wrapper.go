package batch

import (
	"context"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/program"
)

// wrapper is an executable around another one, which is the device's or again a wrapper.
type wrapper interface{ unwrap() program.Executable }

// wrap puts one around an executable.
type wrap func(program.Executable) program.Executable

// wrapperOf is the wrapper of that type; its zero value if there is none.
func wrapperOf[W program.Executable](x program.Executable) (none W) {
	for {
		if w, ok := x.(W); ok {
			return w
		}
		w, ok := x.(wrapper)
		if !ok {
			return none
		}
		x = w.unwrap()
	}
}

// then returns a future that ends after run, with the error that end makes of the run's, and delivers what end says. Who
// abandons it abandons the run.
func then(run *compute.Future, end func(err error) (deliver func(), _ error)) *compute.Future {
	future, resolve := compute.NewFuture(func() {
		over, cancel := context.WithCancel(context.Background())
		cancel()
		run.AwaitOrAbandon(over)
	})
	finish := func() {
		deliver, err := end(run.Err())
		resolve(err, deliver)
	}
	select {
	case <-run.Done():
		finish()
	default:
		go func() {
			<-run.Done()
			finish()
		}()
	}
	return future
}
