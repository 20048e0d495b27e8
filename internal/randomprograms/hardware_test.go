//go:build hardware

package randomprograms

import "os"

var cudaSoftware = os.Getenv("WAVELANE_TEST_SOFTWARE") == "1"
