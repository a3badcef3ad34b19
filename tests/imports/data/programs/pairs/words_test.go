package words

import "testing"

var some = []string{"alpha", "beta", "gamma", "delta"}

func BenchmarkJoin(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Join(some)
	}
}

func BenchmarkSum(b *testing.B) {
	for i := 0; i < b.N; i++ {
		Sum(some)
	}
}
