package edge

import (
	"time"

	"golang.org/x/sys/unix"
)

// steady counts from an arbitrary start, the time spent in suspend included. Leases run on it: wall clocks
// are set, stepped and wrong, and Go's monotonic clock stands still in suspend.
func steady() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &now); err != nil {
		return time.Since(start)
	}
	return time.Duration(now.Nano())
}
