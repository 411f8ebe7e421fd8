//go:build !linux

package edge

import "time"

// steady counts from an arbitrary start. Leases run on it: wall clocks are set, stepped and wrong.
func steady() time.Duration { return time.Since(start) }
