//go:build uncompiled

package broken

import "testing"

func BenchmarkUncompiled(b *testing.B) {
	for i := 0; i < b.N; i++ {
		missing(i)
	}
}
