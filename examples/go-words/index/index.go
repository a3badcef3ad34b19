// Package index finds words by their beginning.
package index

import (
	"sort"
	"strings"
)

// Index is a sorted list of words.
type Index []string

// New returns an index of words.
func New(words []string) Index {
	found := append(Index{}, words...)
	sort.Strings(found)
	return found
}

// Find returns the words that begin with a prefix.
func (index Index) Find(prefix string) []string {
	first := sort.SearchStrings(index, prefix)
	last := first
	for last < len(index) && strings.HasPrefix(index[last], prefix) {
		last++
	}
	return index[first:last]
}
