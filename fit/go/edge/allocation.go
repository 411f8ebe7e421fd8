package edge

import (
	"encoding/binary"

	"golang.org/x/crypto/blake2b"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

const (
	placeBits  = 60
	deviceBits = 1<<30 - 1
)

// A mark is 64 bits that stand for a device; its identifier is not kept anywhere.
type mark uint64

func markOf(device string) mark { return mark(binary.BigEndian.Uint64(digest(device, 8))) }

// digest is BLAKE2b of this size, in bytes.
func digest(text string, size int) []byte {
	hash, err := blake2b.New(size, nil)
	if err != nil {
		panic(err) // of a size that BLAKE2b has not
	}
	hash.Write([]byte(text))
	return hash.Sum(nil)
}

// A claim is the devices of one experiment. Each device has a place among 2⁶⁰, by strongly universal hashing
// with factors drawn from the salt (fit/protocol/allocation.py); the arms grow from opposite ends, so that a wider
// share moves no device from one arm to the other.
type claim struct {
	factor, summand uint64
	treated         uint64 // where treatment ends
	control         uint64 // where control begins
}

func claimOf(salt string, treatment, control float64) claim {
	drawn := digest(salt, 16)
	treated := uint64(treatment * (1 << placeBits))
	return claim{
		factor:  binary.BigEndian.Uint64(drawn[:8]),
		summand: binary.BigEndian.Uint64(drawn[8:]),
		treated: treated,
		control: max(treated, 1<<placeBits-uint64(control*(1<<placeBits))),
	}
}

// armOf returns the arm in which a device falls; empty for nearly every device.
func (c claim) armOf(device mark) fit.Arm {
	place := (uint64(device)&deviceBits*c.factor + c.summand) % (1 << placeBits)
	switch {
	case place < c.treated:
		return fit.Treatment
	case place >= c.control:
		return fit.Control
	}
	return ""
}
