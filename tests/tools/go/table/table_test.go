package table

import (
	"os"
	"testing"
)

func BenchmarkBuild(b *testing.B) {
	if _, err := os.ReadFile("testdata/size.txt"); err != nil {
		b.Fatal(err)
	}
	for i := 0; i < b.N; i++ {
		Build(1000)
	}
}
