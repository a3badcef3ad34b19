/* A reader of a language like JSON: depth, strings and numbers of a text, one pass. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define HOT __attribute__((noinline, noclone))
#define COLD __attribute__((noinline))
enum { ROUNDS = 220, LENGTH = 32768 };

char text[LENGTH + 64];

int fill(void) {
    int at = 0;
    text[at++] = '[';
    for (unsigned i = 0; at < LENGTH; i++)
        at += sprintf(text + at, "{\"id\":%u,\"of\":[%u,%u],\"on\":\"a\\\"%x\"},", i, i * 7 % 97, i * i, i * 31);
    text[at - 1] = ']';
    return at;
}

COLD void report(uint64_t sum) {
    printf("sum %llu\n", (unsigned long long)sum);
}

HOT uint64_t read_number(const char **at) {
    uint64_t value = 0;
    while (**at >= '0' && **at <= '9') value = value * 10 + (uint64_t)(*(*at)++ - '0');
    return value;
}

HOT uint64_t read_string(const char **at) {
    uint64_t length = 0;
    while (**at != '"') {
        if (**at == '\\') (*at)++;
        (*at)++;
        length++;
    }
    (*at)++;
    return length;
}

HOT uint64_t read_all(const char *at, const char *end) {
    uint64_t sum = 0, depth = 0;
    while (at < end) {
        char c = *at;
        if (c >= '0' && c <= '9') {
            sum += read_number(&at);
            continue;
        }
        at++;
        if (c == '"') sum += read_string(&at);
        else if (c == '{' || c == '[') depth++;
        else if (c == '}' || c == ']') sum += depth--;
    }
    return sum;
}

int main(void) {
    uint64_t sum = 0;
    int length = fill();
    for (int round = 0; round < ROUNDS; round++) sum += read_all(text, text + length);
    report(sum);
    return 0;
}
