package program

import "context"

// Compile is the device's Compile, which it does not wait for longer than until ctx ends: compiling waits for whoever compiles the same
// code, and for a driver's compiler. What is compiled after that is closed.
func Compile(ctx context.Context, d Executor, p *Program) (Executable, error) {
	if ctx.Done() == nil {
		return d.Compile(p)
	}
	type result struct {
		Executable
		error
	}
	compiled := make(chan result)
	go func() {
		x, err := d.Compile(p)
		select {
		case compiled <- result{x, err}:
		case <-ctx.Done():
			if err == nil {
				x.Close()
			}
		}
	}()
	select {
	case r := <-compiled:
		return r.Executable, r.error
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
