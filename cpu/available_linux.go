package cpu

import (
	"bytes"
	"os"
	"path"
	"strconv"
)

// available returns how many bytes the process can still have: those that the kernel says are available, swap included, or fewer in
// control groups with limits. Files that cannot be read limit nothing.
func available() uint64 {
	info, _ := os.ReadFile("/proc/meminfo")
	free := uint64(addressSpace)
	if n, ok := field(info, "MemAvailable:"); ok {
		swap, _ := field(info, "SwapFree:")
		free = min(free, (n+swap)<<10)
	}
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for line := range bytes.Lines(groups) {
		parts := bytes.SplitN(bytes.TrimSpace(line), []byte(":"), 3)
		if len(parts) < 3 {
			continue
		}
		root, most, used, cache := "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"
		if controllers := string(parts[1]); controllers == "memory" {
			root, most, used, cache = "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
		} else if controllers != "" {
			continue
		}
		// A limit holds for all groups below. In a container the path may be that of the host, and the root is the group itself.
		for group := path.Clean("/" + string(parts[2])); ; group = path.Dir(group) {
			free = min(free, freeIn(root+group, most, used, cache))
			if group == "/" {
				break
			}
		}
	}
	return free
}

// freeIn returns what a control group has left, counting what the kernel would take back from its files.
func freeIn(group, most, used, cache string) uint64 {
	limit, limited := number(path.Join(group, most))
	use, known := number(path.Join(group, used))
	if !limited || !known {
		return addressSpace
	}
	stat, _ := os.ReadFile(path.Join(group, "memory.stat"))
	files, _ := field(stat, cache)
	use -= min(files, use)
	return limit - min(use, limit)
}

// number reads a file that holds one.
func number(file string) (uint64, bool) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(string(bytes.TrimSpace(text)), 10, 64) // not "max"
	return n, err == nil
}

// field returns the number after a name at the beginning of a line.
func field(text []byte, name string) (uint64, bool) {
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) > 1 && string(f[0]) == name {
			n, err := strconv.ParseUint(string(f[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
