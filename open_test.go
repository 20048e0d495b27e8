package wavelane

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// withCandidates replaces what Open chooses from.
func withCandidates(t *testing.T, cs ...candidate) {
	old := candidates
	candidates = cs
	t.Cleanup(func() { candidates = old })
}

func absent(kind string) candidate {
	return candidate{kind, func(context.Context, *config) (*opened, error) {
		return nil, fmt.Errorf("no such hardware: %w", ErrUnavailable)
	}}
}

func broken(kind string) candidate {
	return candidate{kind, func(context.Context, *config) (*opened, error) {
		return nil, errors.New("driver crashed")
	}}
}

func present(kind string) candidate {
	return candidate{kind, openCPU}
}

func TestOpenTakesTheFirstThatExists(t *testing.T) {
	t.Setenv(environment, "")
	withCandidates(t, absent("gpu"), present("cpu"))
	d, err := Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, "cpu", d.Info().Kind)
	require.Contains(t, d.Explain(), "not gpu: no such hardware")

	withCandidates(t, absent("cuda"), present("gpu"), present("cpu"))
	d, err = Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, "gpu", d.Info().Kind)
	require.Contains(t, d.Explain(), "chosen as the best")

	require.Equal(t, "cuda", realCandidates[0].kind)
}

// realCandidates are what Open chooses from.
var realCandidates = candidates

func TestOpenReportsABrokenDevice(t *testing.T) {
	t.Setenv(environment, "")
	withCandidates(t, broken("gpu"), present("cpu"))
	_, err := Open(context.Background())
	require.ErrorContains(t, err, "driver crashed")
}

func TestAnImpossibleWishIsAnError(t *testing.T) {
	withCandidates(t, absent("cuda"), absent("gpu"), present("cpu"))
	for _, wish := range []string{"gpu", "gpu:0", "gpu:99", "cuda", "cuda:1"} {
		t.Setenv(environment, wish)
		_, err := Open(context.Background())
		require.ErrorIs(t, err, ErrUnavailable, wish)
		t.Setenv(environment, "")
		_, err = Open(context.Background(), WithDevice(wish))
		require.ErrorIs(t, err, ErrUnavailable, wish)
	}
	for _, wish := range []string{"tpu", "gpu:", "gpu:x", "gpu:-1", "cpu:0", "GPU", "cuda:", "cuda:-1"} {
		t.Setenv(environment, wish)
		_, err := Open(context.Background())
		require.ErrorIs(t, err, ErrArgument, wish)
		t.Setenv(environment, "")
		_, err = Open(context.Background(), WithDevice(wish))
		require.ErrorIs(t, err, ErrArgument, wish)
	}
	t.Setenv(environment, "")
	_, err := Open(context.Background(), nil)
	require.ErrorIs(t, err, ErrArgument)
	_, err = Open(context.Background(), WithLogger(nil))
	require.ErrorIs(t, err, ErrArgument)
}

func TestEnvironmentAndOptionChoose(t *testing.T) {
	withCandidates(t, present("gpu"), present("cpu"))
	t.Setenv(environment, "cpu")
	d, err := Open(context.Background())
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, "cpu", d.Info().Kind)
	require.Contains(t, d.Explain(), environment)

	d, err = Open(context.Background(), WithDevice("gpu"))
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, "gpu", d.Info().Kind)
	require.Contains(t, d.Explain(), "WithDevice")
}

// The software GPU is there for who asks for it by name, and never chosen otherwise.
func TestOpenSoftwareCUDA(t *testing.T) {
	t.Setenv(environment, "")
	d, err := Open(context.Background(), WithDevice("cuda"), WithSoftware())
	if cudaLeftOut(err) {
		return
	}
	require.NoError(t, err)
	defer d.Close()
	require.Equal(t, "cuda", d.Info().Kind)
	require.True(t, d.Info().Software)
	require.Contains(t, d.Explain(), "WithDevice")
	y := make([]float32, 3)
	require.NoError(t, d.AddAsync(y, []float32{1, 2, 3}, []float32{4, 5, 6}).Await(context.Background()))
	require.Equal(t, []float32{5, 7, 9}, y)
	_, err = Open(context.Background(), WithDevice("cuda:1"), WithSoftware())
	require.ErrorIs(t, err, ErrUnavailable)
	require.ErrorContains(t, err, "device 1")
}

// cudaLeftOut tells a build without package cuda, which has to say so.
func cudaLeftOut(err error) bool {
	return err != nil && errors.Is(err, ErrUnavailable) &&
		(strings.Contains(err.Error(), "-tags nocuda") || strings.Contains(err.Error(), "browser"))
}
