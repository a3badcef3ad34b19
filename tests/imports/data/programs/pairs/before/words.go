package words

func Join(words []string) string {
	var all []byte
	for _, word := range words {
		all = append(all, word...)
	}
	return string(all)
}

func Sum(words []string) (sum int) {
	for _, word := range words {
		for _, letter := range word {
			sum += int(letter)
		}
	}
	return sum
}
