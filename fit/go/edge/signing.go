package edge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	fit "github.com/ldfi-dev/ldfi/fit/go"
)

// A stamp is what a failure context says, before it is signed. Lot is what lengths are drawn by.
type stamp struct {
	experiment string
	arm        fit.Arm
	expires    int64 // Unix seconds
	faults     []fault
	longest    int64 // milliseconds that a call may hang
	lot        string
}

// sign writes a failure context, character by character as fit/protocol/context.py does. It returns an error for what
// would not be read back.
func (s stamp) sign(keys *fit.Keys) (string, error) {
	version, listed := s.notation()
	payload := strings.Join([]string{
		version, keys.IDs()[0], s.experiment, string(s.arm[:1]), strconv.FormatInt(s.expires, 10), listed,
	}, ".")
	value := payload + "." + keys.Sign(payload)
	if _, err := fit.Decode(keys, value, time.Unix(s.expires-1, 0)); err != nil {
		return "", fmt.Errorf("what %s asks for does not fit a failure context: %w", s.experiment, err)
	}
	return value, nil
}

// notation returns the first version that can say these faults, and how it says them.
func (s stamp) notation() (version, listed string) {
	faults := strongest(s.faults)
	if !slices.ContainsFunc(faults, fault.isNew) {
		parts := make([]string, len(faults))
		for i, each := range faults {
			parts[i] = s.single(each)
		}
		return "1", strings.Join(parts, "~")
	}
	var ways []string
	hashes := map[string]string{}
	for _, each := range faults {
		way := s.way(each)
		if _, known := hashes[way]; !known {
			ways = append(ways, way)
		}
		hashes[way] += fit.PointHash(each.point)
	}
	for i, way := range ways {
		ways[i] = way + "~" + hashes[way]
	}
	least := 2
	for _, each := range faults {
		least = max(least, each.kind.Version())
	}
	return strconv.Itoa(least), strings.Join(ways, "~")
}

// isNew tells whether version 1 cannot say a fault.
func (f fault) isNew() bool { return f.kind != fit.Error && f.word() != string(fit.Delay) }

// single writes a fault of version 1.
func (s stamp) single(each fault) string {
	text := string(each.kind[:1]) + fit.PointHash(each.point)
	if each.late() {
		text += strconv.FormatInt(each.milliseconds(s.longest, s.lot), 10)
	}
	if each.first > 0 {
		text += "n" + strconv.Itoa(each.first)
	}
	return text
}

// way writes how a group of points fails, from version 2 on.
func (s stamp) way(each fault) string {
	text := strings.Replace(string(each.kind), ":", "-", 1)
	if each.late() {
		text = each.word() + "-" + strconv.FormatInt(each.milliseconds(s.longest, s.lot), 10)
	}
	if each.first > 0 {
		text += "-n" + strconv.Itoa(each.first)
	}
	return text
}

// strongest keeps one fault a point, in a fixed order: a reader refuses a point that is named twice.
func strongest(faults []fault) []fault {
	weakestFirst := slices.SortedFunc(slices.Values(faults), func(a, b fault) int {
		return cmp.Or(
			cmp.Compare(a.strength(), b.strength()), cmp.Compare(a.kind, b.kind),
			cmp.Compare(narrowness(a), narrowness(b)), cmp.Compare(a.first, b.first),
		)
	})
	kept := map[string]fault{}
	for _, each := range weakestFirst {
		kept[each.point] = each
	}
	return slices.SortedFunc(maps.Values(kept), func(a, b fault) int { return cmp.Compare(a.point, b.point) })
}

// narrowness is 0 where only the first calls are hit: to hit all of them is stronger.
func narrowness(f fault) int {
	if f.first == 0 {
		return 1
	}
	return 0
}
