package wire

import "testing"

func BenchmarkJoin(b *testing.B) {
	n := 0
	for i := 0; i < b.N; i++ {
		n += i
	}
	b.ReportMetric(-1, "drift")
	b.ReportMetric(float64(n&1), "odd/op")
}

func BenchmarkSkipped(b *testing.B) { b.Skip("not here") }
