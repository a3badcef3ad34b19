package table

func Build(n int) map[int]string {
	found := map[int]string{}
	for i := 0; i < n; i++ {
		found[i] = string(make([]byte, 8))
	}
	return found
}
