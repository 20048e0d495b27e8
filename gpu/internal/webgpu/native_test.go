//go:build ((linux && !android) || darwin || windows) && (amd64 || arm64)

package webgpu

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// openSoftware opens a software adapter by a library, "" for the one that programs use.
func openSoftware(t testing.TB, library string) Driver {
	t.Helper()
	list, err := Adapters(t.Context(), library)
	require.NoError(t, err)
	i := slices.IndexFunc(list, func(a Adapter) bool { return a.Type == softwareAdapter })
	require.GreaterOrEqual(t, i, 0, "no software adapter")
	d, _, err := Open(t.Context(), list[i])
	require.NoError(t, err)
	t.Cleanup(d.Close)
	return d
}

// Calls that the layers above would not make are errors of the library, not the end of the process.
func TestDriverErrors(t *testing.T) {
	d := openSoftware(t, "")
	_, err := d.NewBuffer(StorageBuffer, 1<<60)
	require.Error(t, err)
	a, err := d.NewBuffer(StorageBuffer, 256)
	require.NoError(t, err)
	b, err := d.NewBuffer(ReadbackBuffer, 256)
	require.NoError(t, err)
	up, err := d.NewBuffer(UploadBuffer, 256)
	require.NoError(t, err)
	never := func(error) { t.Error("done was called for work that was not submitted") }
	for name, s := range map[string]*Submission{
		"out of range":            {Commands: []Command{{From: a, To: b, FromOffset: 128, Size: 256}}, Staging: []Object{b}},
		"unaligned":               {Commands: []Command{{From: a, To: b, Size: 3}}, Staging: []Object{b}},
		"wrong usage":             {Commands: []Command{{From: b, To: a, Size: 16}}, Staging: []Object{b}},
		"mapped, not handed over": {Commands: []Command{{From: up, To: a, Size: 16}}},
		"result not handed over":  {Commands: []Command{{From: a, To: b, Size: 16}}},
		"same buffer":             {Commands: []Command{{From: a, To: a, Size: 16}}},
	} {
		s.Done = never
		require.Error(t, d.Submit(s), name)
	}
	require.Error(t, d.Unmap(b))
	done := make(chan error)
	require.NoError(t, d.Submit(&Submission{Commands: []Command{{From: a, To: b, Size: 256}}, Staging: []Object{b}, Done: func(err error) { done <- err }}))
	require.NoError(t, <-done)
	again := &Submission{Commands: []Command{{From: a, To: b, Size: 256}}, Staging: []Object{b}, Done: never}
	require.Error(t, d.Submit(again), "still mapped")
	require.NoError(t, d.Unmap(b))
	// An error after a cut is told when the work before it is done.
	require.NoError(t, d.Submit(&Submission{Commands: []Command{{From: a, To: b, Size: 256}, {From: a, To: b, FromOffset: 128, Size: 256}},
		Cuts: []int{1}, Staging: []Object{b}, Done: func(err error) { done <- err }}))
	require.ErrorContains(t, <-done, "submit")
	require.NoError(t, d.Lost())
	up.Free()
	a.Free()
	b.Free()
}
