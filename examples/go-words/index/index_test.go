package index

import (
	"os"
	"strings"
	"testing"
)

func BenchmarkFind(b *testing.B) {
	// Tests and benchmarks run in the folder of their package.
	text, err := os.ReadFile("testdata/words.txt")
	if err != nil {
		b.Fatal(err)
	}
	index := New(strings.Fields(string(text)))
	b.ResetTimer()
	for i := 0; i < b.N; i++ {
		index.Find("re")
	}
}
