package text

import "strings"

const Work = 100

func Count(words []string) int {
	sum := 0
	for i := 0; i < Work; i++ {
		for _, word := range words {
			sum += strings.Count(word, "a") + len(word)%3
		}
	}
	return sum
}
