// Package words counts the words of a text, again and again.
package words

const work = 100

// Count returns how many words a text has, times the passes over it.
func Count(text string) int {
	words := 0
	for pass := 0; pass < work; pass++ {
		inside := false
		for i := 0; i < len(text); i++ {
			letter := text[i] != ' '
			if letter && !inside {
				words++
			}
			inside = letter
		}
	}
	return words
}
