package words

func Join(words []string) string {
	all := ""
	for _, word := range words {
		all += word + ";"
	}
	return all
}

func Sum(words []string) (sum int) {
	for _, word := range words {
		for _, letter := range word {
			sum += int(letter)
		}
	}
	return sum
}
