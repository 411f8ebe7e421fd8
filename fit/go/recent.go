package fit

import "container/list"

// remembered is how many requests, or points of theirs, are known at once.
const remembered = 4096

// recent holds values by key. The longest untouched are forgotten first. Its zero value is empty.
type recent[K comparable, V any] struct {
	held  map[K]*list.Element
	order list.List // of *entry[K, V], the latest in front
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// find returns the value of a key, and whether there is one.
func (r *recent[K, V]) find(key K) (value V, known bool) {
	element, known := r.held[key]
	if known {
		value = element.Value.(*entry[K, V]).value
	}
	return value, known
}

// at returns where the value of a key is, which is zero for a new one.
func (r *recent[K, V]) at(key K) *V {
	element, known := r.held[key]
	if known {
		r.order.MoveToFront(element)
		return &element.Value.(*entry[K, V]).value
	}
	if r.held == nil {
		r.held = map[K]*list.Element{}
	}
	made := &entry[K, V]{key: key}
	r.held[key] = r.order.PushFront(made)
	if r.order.Len() > remembered {
		oldest := r.order.Remove(r.order.Back()).(*entry[K, V])
		delete(r.held, oldest.key)
	}
	return &made.value
}
