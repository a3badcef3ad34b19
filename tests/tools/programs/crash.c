/* crash: ends by SIGSEGV. */
int main(void) {
    int *volatile nowhere = 0;
    return *nowhere;
}
