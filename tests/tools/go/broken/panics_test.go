//go:build panics

package broken

import "testing"

func BenchmarkPanics(b *testing.B) {
	if b.N > 1 {
		panic("not found")
	}
}
