package proxy

import "time"

// Batch has proofs be exported so long after they ended; it returns what sets that back.
func Batch(delay time.Duration) func() {
	before := proofDelay
	proofDelay = delay
	return func() { proofDelay = before }
}
