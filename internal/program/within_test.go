package program

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
)

// waiting is a program whose compilation waits for a release.
type waiting struct {
	release, closed chan struct{}
}

func (w waiting) compile() (Executable, error) {
	<-w.release
	return w, nil
}

func discard(x Executable) { x.Close() }

func (w waiting) Start(*IO) *compute.Future { return nil }
func (w waiting) Memory() Memory            { return Memory{} }
func (w waiting) Launches() [][]Launch      { return nil }
func (w waiting) Close() error {
	close(w.closed)
	return nil
}

// Whoever stops waiting for a compilation gets the context's error at once, and what is compiled is closed.
func TestWithinGivesUp(t *testing.T) {
	w := waiting{release: make(chan struct{}), closed: make(chan struct{})}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	_, err := Within(ctx, w.compile, discard)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	close(w.release)
	<-w.closed

	w.closed = make(chan struct{})
	x, err := Within(t.Context(), w.compile, discard)
	require.NoError(t, err)
	require.Equal(t, w, x)
	select {
	case <-w.closed:
		t.Fatal("closed")
	default:
	}
}
