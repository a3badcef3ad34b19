package text

import (
	"fmt"
	"testing"
)

var sink int

func words(n int) []string {
	found := make([]string, n)
	for i := range found {
		found[i] = fmt.Sprintf("banana%d", i)
	}
	return found
}

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{1, 10} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			all := words(n)
			b.SetBytes(int64(7 * n))
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				sink += Count(all)
			}
		})
	}
}

func BenchmarkCountOther(b *testing.B) {
	all := words(3)
	for i := 0; i < b.N; i++ {
		sink += Count(all)
	}
	b.ReportMetric(float64(sink%7+1), "chars/op")
}

func BenchmarkOdd(b *testing.B) {
	for _, name := range []string{"a+b", "two words", "x/y", "ends-2"} {
		b.Run(name, func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				sink += len(fmt.Sprint(i))
			}
		})
	}
	b.Run("skipped", func(b *testing.B) { b.Skip("not here") })
}
