// Serve serves the demo site on this machine, for trying it out: browsers give WebGPU and cameras only to pages over https or
// from localhost.
//
//	make serve
//	go run ./wasm/serve -addr localhost:8080 out/site
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	addr := flag.String("addr", "localhost:8080", "host and port; port 0 takes a free one")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: serve [-addr host:port] folder")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := serve(os.Stdout, *addr, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

// serve prints the address and answers until the process ends.
func serve(w io.Writer, addr, dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "index.html")); err != nil {
		return fmt.Errorf("%w (make site builds it)", err)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if host == "" {
		host = "localhost"
	}
	fmt.Fprintf(w, "http://%s\n", net.JoinHostPort(host, fmt.Sprint(l.Addr().(*net.TCPAddr).Port)))
	return http.Serve(l, handler(dir))
}

// handler serves a folder, with the types that modules and WebAssembly need whatever the system's table says, and nothing cached.
func handler(dir string) http.Handler {
	types := map[string]string{".wasm": "application/wasm", ".js": "text/javascript; charset=utf-8"}
	files := http.FileServer(http.Dir(dir))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for suffix, mime := range types {
			if strings.HasSuffix(r.URL.Path, suffix) {
				w.Header().Set("Content-Type", mime)
			}
		}
		w.Header().Set("Cache-Control", "no-store")
		files.ServeHTTP(w, r)
	})
}
