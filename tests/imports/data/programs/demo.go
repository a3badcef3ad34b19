package demo

import "strings"

func Join(parts []string) string {
	s := ""
	for _, p := range parts {
		s += p
	}
	return s
}
func Build(parts []string) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p)
	}
	return b.String()
}
