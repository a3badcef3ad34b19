/* idle: needs no heap and next to no time. */
int main(void) { return 0; }
