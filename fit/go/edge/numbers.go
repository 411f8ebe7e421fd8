package edge

// numbers count the asks of a process, from 1. An ask is settled when its answer has come, or when it has been
// given up; they may be so in any order.
type numbers struct {
	last int
	open map[int]bool
	told int // up to which one the control plane knows that all are settled
}

func (n *numbers) next() int {
	if n.open == nil {
		n.open = map[int]bool{}
	}
	n.last++
	n.open[n.last] = true
	return n.last
}

func (n *numbers) settle(number int) { delete(n.open, number) }

// settled returns up to which number all are.
func (n *numbers) settled() int {
	lowest := n.last + 1
	for number := range n.open {
		lowest = min(lowest, number)
	}
	return lowest - 1
}
