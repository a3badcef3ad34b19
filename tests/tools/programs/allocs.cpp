// allocs: 4096 B through a container in hot_path(), 28 B in an operator, 5 B below two calls that are inlined, and 3 B
// below forty levels of dive() under start().
#include <vector>

__attribute__((noinline)) static int hot_path(std::vector<int> &values, int count) {
    values.reserve(count);
    for (int i = 0; i < count; i++) values.push_back(i);
    return values.back();
}

namespace area {
struct Maker {
    __attribute__((noinline)) int *operator()(int count) const { return new int[count]; }
};
inline char *small() { return new char[5]; }
inline char *inlined() { return small(); }
}  // namespace area

static char *volatile deepest;
__attribute__((noinline)) static int dive(int levels) {
    if (levels == 0) deepest = new char[3];
    return levels == 0 ? 0 : dive(levels - 1) + 1;
}
__attribute__((noinline)) static int start() { return dive(40) + 1; }

int main() {
    std::vector<int> values;
    int sum = hot_path(values, 1024);
    int *made = area::Maker()(7);
    char *volatile held = area::inlined();
    made[3] = held[2] = 1;
    sum += made[3] + held[2];
    sum += start();
    delete[] deepest;
    delete[] made;
    delete[] held;
    return sum == 0;
}
