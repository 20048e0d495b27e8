package device_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/compute"
	"github.com/wavelane/wavelane/internal/device"
)

func TestLifetime(t *testing.T) {
	var fault error
	ended := 0
	l := device.NewLifetime("test", func() error { return fault }, func() { ended++ })
	require.NoError(t, l.Begin())
	l.Extend()
	l.End()
	l.Close()
	l.Close()
	require.Zero(t, ended, "held")
	require.ErrorIs(t, l.Begin(), compute.ErrClosed)
	require.ErrorIs(t, l.Hold(), compute.ErrClosed)
	l.End()
	l.Close()
	require.Equal(t, 1, ended)

	l = device.NewLifetime("test", func() error { return fault }, func() { ended++ })
	fault = errors.New("lost")
	require.Equal(t, fault, l.Begin())
	require.NoError(t, l.Hold())
	l.End()
	l.Close()
	require.Equal(t, 2, ended, "a fault holds nothing")
}

func TestChildren(t *testing.T) {
	var c device.Children[int]
	require.False(t, c.Remove(1))
	c.Add(1)
	c.Add(1)
	c.Add(2)
	require.Equal(t, 2, c.Len())
	require.ElementsMatch(t, []int{1, 2}, c.All())
	require.True(t, c.Remove(1))
	require.False(t, c.Remove(1))
	require.Equal(t, []int{2}, c.All())
}

func TestHandle(t *testing.T) {
	var h device.Handle[int]
	uses := 1
	h.Open(7, func(int) { uses-- })
	retain := func(m int) int { uses++; return m }
	m, ok := h.Acquire(retain)
	require.True(t, ok && h.IsOpen())
	require.Equal(t, 7, m)
	require.Equal(t, 2, uses)
	h.Close()
	h.Close()
	require.Equal(t, 1, uses)
	_, ok = h.Acquire(retain)
	require.False(t, ok || h.IsOpen())
	require.Equal(t, 1, uses)
}

func TestIdle(t *testing.T) {
	var p device.Idle[int]
	_, ok, err := p.Take()
	require.NoError(t, err)
	require.False(t, ok)
	require.True(t, p.Put(1, 2) && p.Put(2, 2))
	require.False(t, p.Put(3, 2), "full")
	x, ok, err := p.Take()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, 2, x)
	require.Equal(t, []int{1}, p.Drop())
	require.Empty(t, p.Drop())
	p.Close()
	require.False(t, p.Put(1, 2))
	_, _, err = p.Take()
	require.ErrorIs(t, err, compute.ErrClosed)
}

// The zero value of a device has no lifetime: using it is an error, closing it is not.
func TestNoLifetime(t *testing.T) {
	var l *device.Lifetime
	require.ErrorIs(t, l.Begin(), compute.ErrArgument)
	require.ErrorIs(t, l.Hold(), compute.ErrArgument)
	l.Close()
}
