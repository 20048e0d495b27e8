package recent_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/wavelane/wavelane/internal/recent"
)

func TestMap(t *testing.T) {
	m := recent.New[int](4)
	forgotten := map[string]int{}
	for i := range 1000 {
		for k, v := range m.Put(fmt.Sprint(i), i) {
			forgotten[k] = v
		}
		require.LessOrEqual(t, m.Len(), 8)
		v, ok := m.Get("0") // used all the time
		require.True(t, ok)
		require.Equal(t, 0, v)
		for back := range min(i+1, 4) {
			v, ok := m.Get(fmt.Sprint(i - back))
			require.True(t, ok, "%d of %d", i-back, i)
			require.Equal(t, i-back, v)
		}
	}
	require.Len(t, m.All(), m.Len())
	require.Equal(t, 1000, len(forgotten)+m.Len(), "each is kept or was handed back")
	m.Delete("999")
	_, ok := m.Get("999")
	require.False(t, ok)
}
