package rendezvous

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// address returns one that nobody listens on.
func address(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// TestShare has ranks come before rank 0 and after it, strangers among them.
func TestShare(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		m := Meeting{Address: address(t), Size: size, Attempt: 3, Secret: "secret"}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		results := make(chan error, size)
		join := func(rank int) {
			mine := m
			mine.Rank = rank
			var id []byte
			if rank == 0 {
				id = []byte("the id")
			}
			got, err := mine.Share(ctx, id)
			if err == nil && string(got) != "the id" {
				err = fmt.Errorf("rank %d got %q", rank, got)
			}
			results <- err
		}
		for rank := 1; rank < size; rank += 2 {
			go join(rank)
		}
		time.Sleep(20 * time.Millisecond)
		go join(0)
		if size > 1 {
			require.Eventually(t, func() bool { // one that says nothing, and one that says something else
				c, err := net.Dial("tcp", m.Address)
				if err == nil {
					defer c.Close()
					_, err = c.Write([]byte(strings.Repeat("x", 200)))
				}
				return err == nil || size == 2
			}, 10*time.Second, time.Millisecond)
			if c, err := net.Dial("tcp", m.Address); err == nil {
				defer c.Close()
			}
		}
		for rank := 2; rank < size; rank += 2 {
			go join(rank)
		}
		for range size {
			require.NoError(t, <-results)
		}
	}
}

// TestRefusals has a rank come that rank 0 does not wait for: neither of them gets on.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *Meeting)
		want   string
	}{
		"secret":  {func(m *Meeting) { m.Secret = "guess" }, "secret"},
		"attempt": {func(m *Meeting) { m.Attempt++ }, "another attempt"},
		"size":    {func(m *Meeting) { m.Size++ }, "another number of ranks"},
		"rank":    {func(m *Meeting) { m.Rank = 0 }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := Meeting{Address: address(t), Size: 2, Secret: "secret"}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			served := make(chan error)
			go func() {
				_, err := m.Share(ctx, []byte("the id"))
				served <- err
			}()
			other := m
			other.Rank = 1
			c.change(&other)
			if c.want != "" {
				_, err := other.Share(ctx, nil)
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.ErrorContains(t, err, c.want)
			}
			err := <-served
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "rank 1 of 2 did not come")
		})
	}
}

// TestTaken has two processes claim a rank.
func TestTaken(t *testing.T) {
	m := Meeting{Address: address(t), Size: 3, Rank: 1}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	served := make(chan error)
	go func() {
		first := m
		first.Rank = 0
		_, err := first.Share(ctx, []byte("the id"))
		served <- err
	}()
	id, err := m.Share(ctx, nil)
	require.NoError(t, err)
	require.Equal(t, "the id", string(id))
	_, err = m.Share(ctx, nil)
	require.ErrorContains(t, err, "another process has this rank")
	require.ErrorContains(t, <-served, "rank 2 of 3 did not come")
}
