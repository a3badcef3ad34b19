//go:build broken

package broken

import (
	"fmt"
	"testing"
)

func BenchmarkFails(b *testing.B) { b.Fatal("no data") }

func BenchmarkParent(b *testing.B) {
	b.Run("good", func(b *testing.B) {
		for i := 0; i < b.N; i++ {
			fmt.Sprint(i)
		}
	})
	b.Run("bad", func(b *testing.B) { b.Error("wrong") })
}

func BenchmarkPrints(b *testing.B) {
	fmt.Println("hello")
	for i := 0; i < b.N; i++ {
		fmt.Sprint(i)
	}
}

func BenchmarkFailsLate(b *testing.B) {
	if b.N > 1 {
		b.Fatal("late")
	}
}
