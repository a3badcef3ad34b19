/*
 * wordfreq: the most frequent words of a text.
 *
 *     wordfreq [--method=list|table] [--words=N]
 *
 * Both methods print the same bytes. `list` is the first version anybody writes: split the text into a copy of every
 * word, then count the copies in linked lists, one list per first letter. `table` reads the words where they stand and
 * counts them in a hash table that grows with the number of different words.
 *
 * The text is generated, the same one every time, so that there is no input file to carry around. Functions that a
 * profile should show under their own name are marked NOINLINE.
 */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NOINLINE __attribute__((noinline))

enum { DEFAULT_WORDS = 260000, MAX_WORDS = 100000000, VOCABULARY = 500, SPELLED = 12, LONGEST = 31, SHOWN = 8, LINE = 12 };

struct text {
    char *bytes;
    size_t length;
};

struct count {
    const char *word;
    size_t length;
    size_t times;
};

struct counts {
    struct count *items;
    size_t used;
    size_t total;
};

static void *allocate(size_t bytes) {
    void *memory = malloc(bytes);
    if (memory == NULL) {
        fputs("wordfreq: out of memory\n", stderr);
        exit(EXIT_FAILURE);
    }
    return memory;
}

static char *copy_word(const char *word, size_t length) {
    char *copy = allocate(length + 1);
    memcpy(copy, word, length);
    copy[length] = '\0';
    return copy;
}

/* Compared here rather than by memcmp: the words are short, and most differ within a few letters. */
static inline bool same_word(const char *left, const char *right, size_t length) {
    size_t i = 0;
    while (i < length && left[i] == right[i]) {
        i++;
    }
    return i == length;
}

/* ---- the input ---- */

/* xorshift32 (Marsaglia 2003): the same numbers on every machine, unlike rand(). */
static uint32_t next_random(uint32_t *state) {
    uint32_t x = *state;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return *state = x;
}

/* At most four syllables, SPELLED letters; different ranks give different words. */
static size_t spell(char *out, uint32_t rank) {
    static const char *const syllables[] = {"ba", "con", "de", "fro", "gul", "him", "ja", "ker",
                                            "lo", "mi",  "ne", "por", "que", "ras", "su", "ten"};
    char *end = out;
    uint32_t rest = rank * 40503u % 65536u; /* odd, so a permutation of 0..65535 that scatters the first letters */
    do {
        const char *syllable = syllables[rest % 16];
        while (*syllable != '\0') {
            *end++ = *syllable++;
        }
        rest /= 16;
    } while (rest != 0);
    return (size_t)(end - out);
}

/* Words of very unequal frequency, as in natural text, in sentences with capitals and full stops. */
static NOINLINE struct text generate_text(size_t words) {
    struct text text = {allocate(words * (SPELLED + 2) + 1), 0};
    uint32_t state = 2463534242u;
    char *end = text.bytes;
    for (size_t i = 0; i < words; i++) {
        uint64_t u = next_random(&state);
        uint32_t rank = (uint32_t)(((u * u >> 32) * VOCABULARY) >> 32);
        char *start = end;
        end += spell(end, rank);
        if (i % LINE == 0) {
            *start = (char)toupper((unsigned char)*start);
        }
        if (i % LINE == LINE - 1) {
            *end++ = '.';
            *end++ = '\n';
        } else {
            *end++ = ' ';
        }
    }
    text.length = (size_t)(end - text.bytes);
    text.bytes = realloc(text.bytes, text.length + 1);
    if (text.bytes == NULL) {
        exit(EXIT_FAILURE);
    }
    text.bytes[text.length] = '\0';
    return text;
}

/* Moves `*at` behind the next word and writes that word in lower case; the length is 0 at the end of the text. */
static size_t next_word(const struct text *text, size_t *at, char word[LONGEST + 1]) {
    size_t length = 0;
    while (*at < text->length && !isalpha((unsigned char)text->bytes[*at])) {
        ++*at;
    }
    while (*at < text->length && isalpha((unsigned char)text->bytes[*at])) {
        if (length < LONGEST) {
            word[length++] = (char)tolower((unsigned char)text->bytes[*at]);
        }
        ++*at;
    }
    word[length] = '\0';
    return length;
}

/* ---- method "list" ---- */

struct node {
    struct node *next;
    const char *word;
    size_t length;
    size_t times;
};

struct words {
    char **items;
    size_t used;
    size_t room;
};

/* A copy of every word of the text: simple to work with, and the largest thing in memory. */
static NOINLINE struct words split_words(const struct text *text) {
    struct words words = {NULL, 0, 0};
    char word[LONGEST + 1];
    size_t at = 0;
    for (size_t length; (length = next_word(text, &at, word)) != 0;) {
        if (words.used == words.room) {
            words.room = words.room == 0 ? 64 : words.room * 2;
            words.items = realloc(words.items, words.room * sizeof *words.items);
            if (words.items == NULL) {
                exit(EXIT_FAILURE);
            }
        }
        words.items[words.used++] = copy_word(word, length);
    }
    return words;
}

static NOINLINE struct node *find_in_list(struct node *node, const char *word, size_t length) {
    while (node != NULL && (node->length != length || !same_word(node->word, word, length))) {
        node = node->next;
    }
    return node;
}

static NOINLINE struct counts count_with_list(const struct text *text) {
    struct words words = split_words(text);
    struct node *lists[UINT8_MAX + 1] = {NULL};
    struct counts counts = {NULL, 0, words.used};
    for (size_t i = 0; i < words.used; i++) {
        const char *word = words.items[i];
        struct node **list = &lists[(unsigned char)word[0]];
        size_t length = strlen(word);
        struct node *node = find_in_list(*list, word, length);
        if (node == NULL) {
            node = allocate(sizeof *node);
            *node = (struct node){*list, word, length, 0};
            *list = node;
            counts.used++;
        }
        node->times++;
    }
    counts.items = allocate((counts.used + 1) * sizeof *counts.items);
    size_t used = 0;
    for (size_t letter = 0; letter <= UINT8_MAX; letter++) {
        for (struct node *node = lists[letter]; node != NULL; node = node->next) {
            counts.items[used++] = (struct count){node->word, node->length, node->times};
        }
    }
    return counts;
}

/* ---- method "table" ---- */

struct table {
    struct count *slots;
    size_t room; /* a power of two, at least twice `used` */
    size_t used;
};

/* FNV-1a, 32 bits. */
static uint32_t hash_of(const char *word, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)word[i]) * 16777619u;
    }
    return hash;
}

static NOINLINE struct count *find_in_table(const struct table *table, const char *word, size_t length) {
    size_t at = hash_of(word, length) & (table->room - 1);
    while (table->slots[at].word != NULL &&
           (table->slots[at].length != length || !same_word(table->slots[at].word, word, length))) {
        at = (at + 1) & (table->room - 1);
    }
    return &table->slots[at];
}

static NOINLINE void grow_table(struct table *table) {
    struct table larger = {NULL, table->room == 0 ? 256 : table->room * 2, table->used};
    larger.slots = allocate(larger.room * sizeof *larger.slots);
    memset(larger.slots, 0, larger.room * sizeof *larger.slots);
    for (size_t i = 0; i < table->room; i++) {
        if (table->slots[i].word != NULL) {
            *find_in_table(&larger, table->slots[i].word, table->slots[i].length) = table->slots[i];
        }
    }
    free(table->slots);
    *table = larger;
}

static NOINLINE struct counts count_with_table(const struct text *text) {
    struct table table = {NULL, 0, 0};
    struct counts counts = {NULL, 0, 0};
    char word[LONGEST + 1];
    size_t at = 0;
    for (size_t length; (length = next_word(text, &at, word)) != 0; counts.total++) {
        if (table.used * 2 >= table.room) {
            grow_table(&table);
        }
        struct count *slot = find_in_table(&table, word, length);
        if (slot->word == NULL) {
            *slot = (struct count){copy_word(word, length), length, 0};
            table.used++;
        }
        slot->times++;
    }
    for (size_t i = 0; i < table.room; i++) {
        if (table.slots[i].word != NULL) {
            table.slots[counts.used++] = table.slots[i];
        }
    }
    counts.items = table.slots;
    return counts;
}

/* ---- the answer ---- */

/* Most frequent first, equal ones by the alphabet: an order that does not depend on how they were counted. */
static int by_times(const void *left, const void *right) {
    const struct count *a = left;
    const struct count *b = right;
    if (a->times != b->times) {
        return a->times < b->times ? 1 : -1;
    }
    return strcmp(a->word, b->word);
}

static void print_summary(struct counts counts) {
    if (counts.used != 0) {
        qsort(counts.items, counts.used, sizeof *counts.items, by_times);
    }
    printf("words %zu\ndifferent %zu\n", counts.total, counts.used);
    for (size_t i = 0; i < counts.used && i < SHOWN; i++) {
        printf("%6zu %s\n", counts.items[i].times, counts.items[i].word);
    }
}

static bool read_count(const char *text, size_t *count) {
    char *end = NULL;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (end == text || *end != '\0' || errno != 0 || value < 0 || value > MAX_WORDS) {
        return false;
    }
    *count = (size_t)value;
    return true;
}

int main(int argc, char **argv) {
    bool table = false;
    size_t words = DEFAULT_WORDS;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--method=list") == 0 || strcmp(argv[i], "--method=table") == 0) {
            table = strcmp(argv[i], "--method=table") == 0;
        } else if (strncmp(argv[i], "--words=", 8) != 0 || !read_count(argv[i] + 8, &words)) {
            fputs("usage: wordfreq [--method=list|table] [--words=N]\n", stderr);
            return 2;
        }
    }
    struct text text = generate_text(words);
    print_summary(table ? count_with_table(&text) : count_with_list(&text));
    /* Memory is left to the system: the process ends here. */
    return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
