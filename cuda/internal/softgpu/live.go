package softgpu

import (
	"fmt"
	"strings"
)

// Live counts what has been made and not destroyed.
type Live struct {
	Contexts, Modules, Allocations, HostAllocations, Streams, Events, Graphs, GraphExecs int

	Bytes, HostBytes uint64 // of the allocations
}

func (l *Live) add(m Live) {
	l.Contexts += m.Contexts
	l.Modules += m.Modules
	l.Allocations += m.Allocations
	l.HostAllocations += m.HostAllocations
	l.Streams += m.Streams
	l.Events += m.Events
	l.Graphs += m.Graphs
	l.GraphExecs += m.GraphExecs
	l.Bytes += m.Bytes
	l.HostBytes += m.HostBytes
}

// String lists what there is, "nothing" for the zero value.
func (l Live) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{{l.Contexts, "contexts"}, {l.Modules, "modules"}, {l.Allocations, "allocations"}, {l.HostAllocations, "host allocations"},
		{l.Streams, "streams"}, {l.Events, "events"}, {l.Graphs, "graphs"}, {l.GraphExecs, "graph executables"}} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}
	if l.Bytes+l.HostBytes > 0 {
		parts = append(parts, fmt.Sprintf("%d bytes on devices, %d on the host", l.Bytes, l.HostBytes))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// Live is what there is now.
func (g *GPU) Live() Live {
	g.mu.Lock()
	defer g.mu.Unlock()
	var l Live
	for _, d := range g.devices {
		if d.context != nil {
			l.add(g.live(d.context))
		}
	}
	return l
}

// Leaks is an error if there is anything now, or if a context, unless it was dead, still had something when it was released for
// the last time.
func (g *GPU) Leaks() error {
	now := g.Live()
	g.mu.Lock()
	defer g.mu.Unlock()
	if now == (Live{}) && g.leaked == (Live{}) {
		return nil
	}
	return fmt.Errorf("softgpu: not destroyed: %v; released with their context: %v", now, g.leaked)
}

// live counts a context and what belongs to it.
func (g *GPU) live(c *primary) Live {
	l := Live{Contexts: 1}
	for _, o := range g.handles {
		if ownerOf(o) != c {
			continue
		}
		switch o.(type) {
		case *module:
			l.Modules++
		case *stream:
			l.Streams++
		case *event:
			l.Events++
		case *graph:
			l.Graphs++
		case *graphExec:
			l.GraphExecs++
		}
	}
	for _, m := range c.memory.list {
		if !m.variable {
			l.Allocations++
			l.Bytes += m.size
		}
	}
	for _, m := range g.host.list {
		if m.context == c {
			l.HostAllocations++
			l.HostBytes += uint64(len(m.data))
		}
	}
	return l
}

// ownerOf is the context that an object with a handle belongs to.
func ownerOf(object any) *primary {
	switch o := object.(type) {
	case *primary:
		return o
	case *module:
		return o.context
	case *function:
		return o.module.context
	case *stream:
		return o.context
	case *event:
		return o.context
	case *graph:
		return o.context
	case *node:
		return o.graph.context
	case *graphExec:
		return o.context
	}
	return nil
}
