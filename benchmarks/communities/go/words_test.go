package words

import (
	"fmt"
	"strings"
	"testing"
)

var words int

func BenchmarkCount(b *testing.B) {
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprintf("n=%d", n), func(b *testing.B) {
			text := strings.Repeat("word ", n)
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				words = Count(text)
			}
		})
	}
}

func BenchmarkCountOther(b *testing.B) {
	text := strings.Repeat("other words ", 15)
	for i := 0; i < b.N; i++ {
		words = Count(text)
	}
}
