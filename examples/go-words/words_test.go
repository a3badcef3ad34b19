package words

import (
	"fmt"
	"strings"
	"testing"
)

func BenchmarkCount(b *testing.B) {
	for _, size := range []int{10, 1000} {
		b.Run(fmt.Sprintf("words=%d", size), func(b *testing.B) {
			text := strings.Repeat("the Quick brown fox jumps ", size/5)
			b.SetBytes(int64(len(text)))
			b.ResetTimer()
			for i := 0; i < b.N; i++ {
				Count(text)
			}
		})
	}
}
