package demo

import "testing"

var parts = []string{"alpha", "beta", "gamma", "delta"}
var sink string

func BenchmarkJoin(b *testing.B) {
	b.SetBytes(20)
	for i := 0; i < b.N; i++ {
		sink = Join(parts)
	}
}

func BenchmarkBuild(b *testing.B) {
	for _, name := range []string{"small-4", "some words"} {
		b.Run(name, func(b *testing.B) {
			for i := 0; i < b.N; i++ {
				sink = Build(parts)
			}
			b.ReportMetric(float64(len(sink)), "chars/op")
			b.ReportMetric(1e9/float64(b.Elapsed().Nanoseconds())*float64(b.N), "joins/s")
		})
	}
}
