//go:build cgo && !js

package main

import (
	"bytes"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPicture(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out, true))
	lines := strings.Split(out.String(), "\n")
	picture := lines[1 : height+1]
	for _, line := range picture {
		require.Len(t, line, width)
	}
	for row := range height / 2 { // the set is symmetric to the real axis
		require.Equal(t, picture[row], picture[height-1-row])
	}
	require.Equal(t, byte('@'), picture[height/2][57], "the origin belongs to the set")
	require.Equal(t, byte('.'), picture[0][0], "the corner is far outside")

	area := regexp.MustCompile(`: ([\d.]+) \(known`).FindStringSubmatch(out.String())
	require.NotNil(t, area)
	got, err := strconv.ParseFloat(area[1], 64)
	require.NoError(t, err)
	require.InDelta(t, 1.51, got, 0.1)
}
