package main

import "maps"

// startPeers starts the processes in which peers compute, and returns their versions. It returns those that it has started even
// if another does not start.
func startPeers() (all []*worker, versions map[string]string, err error) {
	versions = map[string]string{}
	for _, f := range []func() ([]*worker, map[string]string, error){startBLAS, startGGML, startONNX} {
		workers, v, err := f()
		all = append(all, workers...)
		if err != nil {
			return all, nil, err
		}
		maps.Copy(versions, v)
	}
	return all, versions, nil
}
