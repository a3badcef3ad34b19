/* Which code and files does a program use? Usage: trace OUT ROOT... -- PROGRAM ARGUMENT...
 *
 * Runs the program, its children and its threads under ptrace. In each ELF file below a ROOT, every function has a
 * breakpoint at its entry that is removed when it is first hit, so the program soon runs at full speed. A seccomp filter
 * stops it at the system calls that name files or map code, and at no others.
 *
 * OUT gets one record per fact, each ended by a NUL byte: a letter, then a text.
 *   x PATH           a file whose code is mapped
 *   f ADDRESS PATH   a function entered: hexadecimal, the symbol's value
 *   r PATH           a file opened for reading, executed, or found by a look-up
 *   a PATH           a look-up that failed
 *   d PATH           a folder that was listed
 *   w PATH           a file that existed, emptied, replaced or removed
 *   k PATH           a file that existed, opened for writing, which keeps its content
 *   c PATH           a file or folder that the program made
 *   ! WORD           why not all code is known
 *   ? WORD           why not all is known
 *   e STATUS         how the program ended, as a shell reports it; always the last record
 * Paths are absolute, and may contain `..`. Exits with the program's status; with 125 and a line on stderr if it cannot
 * trace. */
#define _GNU_SOURCE
#include <stdio.h>
#if !defined(__x86_64__) || !defined(__linux__)
int main(void) {
    fputs("programs are traced on x86-64 Linux only\n", stderr);
    return 125;
}
#else
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST_RECORDS 2000000
#define MOST_PATH 4096
#define CANNOT 125
/* Seconds for processes that outlive the program. */
#define PATIENCE 2
/* Data of a stop at a system call of 32-bit programs, whose numbers are others. */
#define OTHER_MACHINE 1

typedef struct { unsigned long offset, value; char hit, throws; } Spot;
typedef struct Object {
    char *path;
    dev_t device;
    ino_t inode;
    const unsigned char *bytes;
    size_t size, count;
    Spot *spots;
    struct Object *next;
} Object;
typedef struct { unsigned long start, end, offset; Object *object; } Map;
/* The address space of one process, or of several after vfork. */
typedef struct { Map *maps; size_t count; } Space;
typedef struct Task {
    pid_t id;
    Space *space;
    long call;
    char kind, stopped, existed, reads;
    unsigned long flags;
    char path[MOST_PATH], second[MOST_PATH];
    struct Task *next;
} Task;

static char **roots;
static int out;
static Object *objects;
static Task *tasks;

static void fail(const char *what) {
    dprintf(2, "%s: %s\n", what, strerror(errno));
    _exit(CANNOT);
}

static void *room(void *old, size_t size) {
    void *made = realloc(old, size);
    if (!made) fail("memory");
    return made;
}

static char **known;
static size_t known_count, known_room;

static size_t place_of(const char *text) {
    unsigned long hash = 1469598103934665603UL;
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 1099511628211UL;
    size_t at = hash % known_room;
    while (known[at] && strcmp(known[at], text)) at = (at + 1) % known_room;
    return at;
}

/* Write a record, once. */
static void record(char kind, const char *text) {
    static char line[2 * MOST_PATH + 64];
    int length = snprintf(line, sizeof line, "%c %s", kind, text);
    if (length >= (int)sizeof line) length = sizeof line - 1;
    if (2 * (known_count + 1) > known_room) {
        char **old = known;
        size_t before = known_room;
        known_room = before ? 2 * before : 4096;
        known = calloc(known_room, sizeof *known);
        if (!known) fail("memory");
        for (size_t i = 0; i < before; i++) if (old[i]) known[place_of(old[i])] = old[i];
        free(old);
    }
    size_t at = place_of(line);
    if (known[at] || known_count > MOST_RECORDS) return;
    known[at] = strdup(line);
    if (++known_count > MOST_RECORDS) { length = 6; strcpy(line, "? many"); }
    for (int done = 0; done <= length;) {
        ssize_t wrote = write(out, line + done, length + 1 - done);
        if (wrote < 0) fail("writing");
        done += wrote;
    }
}

static int below_root(const char *path) {
    for (char **root = roots; *root; root++) {
        size_t length = strlen(*root);
        if (!strncmp(path, *root, length) && (path[length] == '/' || !path[length])) return 1;
    }
    return 0;
}

static int by_offset(const void *a, const void *b) {
    unsigned long x = ((const Spot *)a)->offset, y = ((const Spot *)b)->offset;
    return x < y ? -1 : x > y;
}

/* Find the entries of the functions in a file: of all below a root, else of the one that throws exceptions. */
static void read_symbols(Object *object, int own) {
    const unsigned char *bytes = object->bytes;
    const Elf64_Ehdr *head = (const void *)bytes;
    if (object->size < sizeof *head || memcmp(bytes, ELFMAG, SELFMAG) || bytes[EI_CLASS] != ELFCLASS64 ||
        head->e_machine != EM_X86_64 || head->e_shentsize != sizeof(Elf64_Shdr) ||
        head->e_shoff > object->size || (object->size - head->e_shoff) / sizeof(Elf64_Shdr) < head->e_shnum) {
        if (own) record('!', "format");
        return;
    }
    const Elf64_Shdr *sections = (const void *)(bytes + head->e_shoff);
    size_t space = 0;
    for (int i = 0; i < head->e_shnum; i++) {
        const Elf64_Shdr *table = sections + i;
        if (table->sh_type != SHT_SYMTAB && table->sh_type != SHT_DYNSYM) continue;
        if (table->sh_offset > object->size || object->size - table->sh_offset < table->sh_size) continue;
        if (table->sh_link >= head->e_shnum) continue;
        const Elf64_Shdr *strings = sections + table->sh_link;
        if (strings->sh_offset > object->size || object->size - strings->sh_offset < strings->sh_size) continue;
        for (size_t k = 0; k < table->sh_size / sizeof(Elf64_Sym); k++) {
            const Elf64_Sym *symbol = (const Elf64_Sym *)(bytes + table->sh_offset) + k;
            int type = ELF64_ST_TYPE(symbol->st_info);
            if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol->st_shndx == SHN_UNDEF ||
                symbol->st_shndx >= head->e_shnum || symbol->st_name >= strings->sh_size) continue;
            const Elf64_Shdr *section = sections + symbol->st_shndx;
            if (!(section->sh_flags & SHF_EXECINSTR) || symbol->st_value < section->sh_addr ||
                symbol->st_value >= section->sh_addr + section->sh_size) continue;
            unsigned long offset = symbol->st_value - section->sh_addr + section->sh_offset;
            if (offset >= object->size) continue;
            const char *name = (const char *)bytes + strings->sh_offset + symbol->st_name;
            size_t most = strings->sh_size - symbol->st_name;
            int throws = !strncmp(name, "_Unwind_RaiseException", most);
            if (!own && !throws) continue;
            if (object->count == space) object->spots = room(object->spots, (space = space ? 2 * space : 256) * sizeof(Spot));
            object->spots[object->count++] = (Spot){offset, symbol->st_value, 0, throws};
        }
    }
    qsort(object->spots, object->count, sizeof(Spot), by_offset);
    size_t kept = 0;
    for (size_t i = 0; i < object->count; i++) {
        if (kept && object->spots[kept - 1].offset == object->spots[i].offset) object->spots[kept - 1].throws |= object->spots[i].throws;
        else object->spots[kept++] = object->spots[i];
    }
    object->count = kept;
}

/* Return the object of a mapped file, NULL if it cannot be read. Several files may have had one path. */
static Object *object_at(const char *path, dev_t device, ino_t inode) {
    for (Object *object = objects; object; object = object->next)
        if (object->inode == inode && object->device == device && !strcmp(object->path, path)) return object;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat state;
    if (file < 0) return NULL;
    if (fstat(file, &state) || state.st_ino != inode || state.st_dev != device || !S_ISREG(state.st_mode) || !state.st_size) {
        close(file);
        return NULL;
    }
    Object *object = calloc(1, sizeof *object);
    if (!object) fail("memory");
    object->path = strdup(path);
    object->device = device;
    object->inode = inode;
    object->size = state.st_size;
    object->bytes = mmap(NULL, object->size, PROT_READ, MAP_PRIVATE, file, 0);
    close(file);
    if (object->bytes == MAP_FAILED) fail(path);
    object->next = objects;
    objects = object;
    read_symbols(object, below_root(path));
    return object;
}

static int memory_of(pid_t id) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", id);
    int file = open(path, O_RDWR | O_CLOEXEC);
    if (file < 0) fail(path);
    return file;
}

/* Set the breakpoints of a new mapping that were never hit. */
static void set_breakpoints(pid_t id, const Map *map) {
    const Object *object = map->object;
    unsigned long length = map->end - map->start;
    if (!object->count) return;
    unsigned char *code = room(NULL, length);
    int file = memory_of(id), changed = 0;
    ssize_t got = pread(file, code, length, map->start);
    for (size_t i = 0; i < object->count; i++) {
        const Spot *spot = object->spots + i;
        if (spot->hit || spot->offset < map->offset || (ssize_t)(spot->offset - map->offset) >= got) continue;
        code[spot->offset - map->offset] = 0xcc;
        changed = 1;
    }
    if (changed && pwrite(file, code, got, map->start) != got) fail("writing a breakpoint");
    close(file);
    free(code);
}

/* Read the mappings of code, and set breakpoints in those that are new. */
static void read_maps(Task *task) {
    char path[64], *line = NULL;
    size_t size = 0;
    snprintf(path, sizeof path, "/proc/%d/maps", task->id);
    FILE *file = fopen(path, "re");
    if (!file) return;
    Space fresh = {0};
    while (getline(&line, &size, file) > 0) {
        unsigned long start, end, offset, inode;
        unsigned major_number, minor_number;
        char rights[5];
        int at = 0;
        if (sscanf(line, "%lx-%lx %4s %lx %x:%x %lu %n", &start, &end, rights, &offset, &major_number, &minor_number, &inode, &at) != 7) continue;
        if (rights[2] != 'x') continue;
        char *name = line + at;
        name[strcspn(name, "\n")] = 0;
        if (!strncmp(name, "[v", 2)) continue;
        if (name[0] != '/' || !inode) { record('!', "made"); continue; }
        struct stat state;
        if (stat(name, &state) || state.st_ino != inode) { record('!', "made"); continue; }
        Object *object = object_at(name, state.st_dev, state.st_ino);
        record('x', name);
        if (!object) { record('!', "unreadable"); continue; }
        fresh.maps = room(fresh.maps, (fresh.count + 1) * sizeof(Map));
        Map map = {start, end, offset, object};
        fresh.maps[fresh.count++] = map;
        int old = 0;
        for (size_t i = 0; i < task->space->count; i++) {
            const Map *before = task->space->maps + i;
            /* A new mapping may have merged with its neighbour. */
            old |= before->start <= start && end <= before->end && before->object == object && before->offset + (start - before->start) == offset;
        }
        if (!old) set_breakpoints(task->id, &map);
    }
    free(line);
    fclose(file);
    free(task->space->maps);
    *task->space = fresh;
}

static Task *task_of(pid_t id) {
    for (Task *task = tasks; task; task = task->next) if (task->id == id) return task;
    return NULL;
}

static Task *add_task(pid_t id) {
    Task *task = calloc(1, sizeof *task);
    if (!task) fail("memory");
    task->id = id;
    task->next = tasks;
    return tasks = task;
}

static void drop_task(pid_t id) {
    for (Task **at = &tasks; *at; at = &(*at)->next)
        if ((*at)->id == id) {
            Task *gone = *at;
            *at = gone->next;
            free(gone);
            return;
        }
}

static void link_of(pid_t id, const char *what, char *to) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/%s", id, what);
    ssize_t length = readlink(path, to, MOST_PATH - 1);
    to[length < 0 ? 0 : length] = 0;
}

/* Read a path of the program and make it absolute; '' if it has none. */
static void read_path(pid_t id, int folder, unsigned long at, char *to) {
    char text[MOST_PATH], around[MOST_PATH];
    size_t got = 0;
    to[0] = 0;
    if (!at) return;
    for (;;) {
        size_t part = 256 - (at + got) % 256;
        if (got + part >= MOST_PATH) part = MOST_PATH - 1 - got;
        struct iovec mine = {text + got, part}, theirs = {(void *)(at + got), part};
        if (!part || process_vm_readv(id, &mine, 1, &theirs, 1, 0) != (ssize_t)part) return;
        if (memchr(text + got, 0, part)) break;
        got += part;
    }
    if (!text[0]) return;
    if (text[0] == '/') { strcpy(to, text); return; }
    char what[32] = "cwd";
    if (folder != AT_FDCWD) snprintf(what, sizeof what, "fd/%d", folder);
    link_of(id, what, around);
    if (around[0] != '/' || snprintf(to, MOST_PATH, "%s/%s", around, text) >= MOST_PATH) to[0] = 0;
}

static int exists(const char *path) { return !faccessat(AT_FDCWD, path, F_OK, AT_SYMLINK_NOFOLLOW); }

/* A system call begins. Return whether its result matters. */
static int begins(Task *task) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, task->id, 0, &r)) return 0;
    pid_t id = task->id;
    unsigned long message = 0;
    ptrace(PTRACE_GETEVENTMSG, id, 0, &message);
    if (message == OTHER_MACHINE) {
        record('?', "machine");
        return 0;
    }
    unsigned long a = r.rdi, b = r.rsi, c = r.rdx, d = r.r10;
    int mode = 0;
    task->call = r.orig_rax;
    task->kind = 'r';
    task->flags = 0;
    task->path[0] = task->second[0] = 0;
    switch (r.orig_rax) {
    case SYS_open: read_path(id, AT_FDCWD, a, task->path); mode = b; break;
    case SYS_creat: read_path(id, AT_FDCWD, a, task->path); mode = O_CREAT | O_WRONLY | O_TRUNC; break;
    case SYS_openat: read_path(id, a, b, task->path); mode = c; break;
    case SYS_openat2: {
        unsigned long how = 0;
        struct iovec mine = {&how, sizeof how}, theirs = {(void *)c, sizeof how};
        if (process_vm_readv(id, &mine, 1, &theirs, 1, 0) < 0) return 0;
        read_path(id, a, b, task->path);
        mode = how;
        break;
    }
    case SYS_stat: case SYS_lstat: case SYS_access: case SYS_readlink: case SYS_execve: case SYS_chdir: case SYS_statfs:
    case SYS_truncate: case SYS_getxattr: case SYS_lgetxattr: read_path(id, AT_FDCWD, a, task->path); break;
    case SYS_newfstatat: case SYS_faccessat: case SYS_faccessat2: case SYS_readlinkat: case SYS_execveat: case SYS_statx:
        read_path(id, a, b, task->path);
        break;
    case SYS_mkdir: case SYS_mknod: task->kind = 'c'; read_path(id, AT_FDCWD, a, task->path); break;
    case SYS_mkdirat: case SYS_mknodat: task->kind = 'c'; read_path(id, a, b, task->path); break;
    case SYS_rename: case SYS_link: case SYS_symlink:
        task->kind = 'c';
        read_path(id, AT_FDCWD, b, task->path);
        if (r.orig_rax != SYS_symlink) read_path(id, AT_FDCWD, a, task->second);
        break;
    case SYS_renameat: case SYS_renameat2: case SYS_linkat:
        task->kind = 'c';
        read_path(id, c, d, task->path);
        read_path(id, a, b, task->second);
        break;
    case SYS_symlinkat: task->kind = 'c'; read_path(id, b, c, task->path); break;
    case SYS_unlink: case SYS_rmdir: task->kind = 'w'; read_path(id, AT_FDCWD, a, task->path); break;
    case SYS_unlinkat: task->kind = 'w'; read_path(id, a, b, task->path); break;
    case SYS_getdents: case SYS_getdents64: {
        char what[32];
        snprintf(what, sizeof what, "fd/%d", (int)a);
        link_of(id, what, task->path);
        if (task->path[0] == '/') record('d', task->path);
        return 0;
    }
    case SYS_mmap:
        if ((int)r.r8 < 0 || d & MAP_ANONYMOUS) { record('!', "made"); return 0; }
        /* Code that the program can write is not that of the file. */
        if (c & PROT_WRITE) record('!', "made");
        return 1;
    case SYS_mprotect: case SYS_pkey_mprotect: record('!', "made"); return 1;
    case SYS_clone: task->flags = a; if (a & CLONE_UNTRACED) record('?', "untraced"); return 1;
    case SYS_clone3: {
        unsigned long flags = 0;
        struct iovec mine = {&flags, sizeof flags}, theirs = {(void *)a, sizeof flags};
        if (process_vm_readv(id, &mine, 1, &theirs, 1, 0) < 0) return 0;
        task->flags = flags;
        if (flags & CLONE_UNTRACED) record('?', "untraced");
        return 1;
    }
    case SYS_connect: return 1;
    case SYS_ptrace: record('?', "debugs"); return 0;
    case SYS_io_uring_setup: record('?', "io_uring"); return 0;
    case SYS_open_by_handle_at: record('?', "handles"); return 0;
    default: record('?', "namespaces"); return 0;
    }
    if (!task->path[0]) return 0;
    if (mode & O_CREAT || task->kind == 'c') task->existed = exists(task->path);
    if (mode & O_CREAT && !task->existed) task->kind = 'c';
    else if (mode & O_TRUNC) task->kind = 'w';
    else if ((mode & O_ACCMODE) != O_RDONLY || r.orig_rax == SYS_truncate) task->kind = 'k';
    task->reads = (mode & O_ACCMODE) == O_RDWR && !(mode & O_TRUNC);
    if ((mode & O_TMPFILE) == O_TMPFILE) return 0;
    return 1;
}

/* The system call of a task is done. */
static void ends(Task *task) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, task->id, 0, &r)) return;
    long result = r.rax;
    switch (task->call) {
    case SYS_mmap: case SYS_mprotect: case SYS_pkey_mprotect: if (result >= 0 || result < -4095) read_maps(task); return;
    case SYS_clone: case SYS_clone3: return;
    case SYS_connect: if (!result || result == -EINPROGRESS) record('?', "connects"); return;
    }
    if (!task->path[0]) return;
    if (result == -ENOENT || result == -ENOTDIR) record('a', task->path);
    else if (result < 0) record('r', task->path);
    else {
        /* That it did not exist is a fact that a program can see. */
        if (task->kind == 'c') record(task->existed ? 'w' : 'a', task->path);
        if (task->kind == 'k' && task->reads) record('r', task->path);
        record(task->kind, task->path);
        if (task->second[0]) record('r', task->second);
    }
}

#define STOP(number) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE)
/* With the bit 4 (PROT_EXEC) in the low half of the third argument. */
#define STOP_IF_CODE(number)                                                                                       \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 4),                                                             \
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),                                \
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),       \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter_calls(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | OTHER_MACHINE),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        /* Calls of x32 have this bit. */
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE | OTHER_MACHINE),
        STOP_IF_CODE(SYS_mmap), STOP_IF_CODE(SYS_mprotect), STOP_IF_CODE(SYS_pkey_mprotect),
        STOP(SYS_open), STOP(SYS_creat), STOP(SYS_openat), STOP(SYS_openat2), STOP(SYS_stat), STOP(SYS_lstat),
        STOP(SYS_access), STOP(SYS_readlink), STOP(SYS_execve), STOP(SYS_chdir), STOP(SYS_statfs), STOP(SYS_truncate),
        STOP(SYS_getxattr), STOP(SYS_lgetxattr), STOP(SYS_newfstatat), STOP(SYS_faccessat), STOP(SYS_faccessat2),
        STOP(SYS_readlinkat), STOP(SYS_execveat), STOP(SYS_statx), STOP(SYS_mkdir), STOP(SYS_mknod), STOP(SYS_mkdirat),
        STOP(SYS_mknodat), STOP(SYS_rename), STOP(SYS_link), STOP(SYS_symlink), STOP(SYS_renameat), STOP(SYS_renameat2),
        STOP(SYS_linkat), STOP(SYS_symlinkat), STOP(SYS_unlink), STOP(SYS_rmdir), STOP(SYS_unlinkat), STOP(SYS_getdents),
        STOP(SYS_getdents64), STOP(SYS_clone), STOP(SYS_clone3), STOP(SYS_connect), STOP(SYS_ptrace),
        STOP(SYS_io_uring_setup), STOP(SYS_open_by_handle_at), STOP(SYS_chroot), STOP(SYS_mount), STOP(SYS_unshare),
        STOP(SYS_setns),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) fail("PR_SET_NO_NEW_PRIVS");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) fail("seccomp");
}

/* Return whether a trap is one of ours; remove its breakpoint. */
static int hits(Task *task) {
    struct user_regs_struct r;
    if (ptrace(PTRACE_GETREGS, task->id, 0, &r)) return 0;
    unsigned long at = r.rip - 1;
    for (size_t i = 0; i < task->space->count; i++) {
        const Map *map = task->space->maps + i;
        if (at < map->start || at >= map->end || !map->object->count) continue;
        Spot wanted = {.offset = at - map->start + map->offset};
        Spot *spot = bsearch(&wanted, map->object->spots, map->object->count, sizeof wanted, by_offset);
        if (!spot) return 0;
        int file = memory_of(task->id);
        /* The byte of the file: a second thread or process may be here after the first removed the breakpoint. */
        if (pwrite(file, map->object->bytes + spot->offset, 1, at) != 1) fail("removing a breakpoint");
        close(file);
        r.rip = at;
        if (ptrace(PTRACE_SETREGS, task->id, 0, &r)) return 1;
        if (spot->throws) record('!', "throws");
        if (!spot->hit && below_root(map->object->path)) {
            char text[MOST_PATH + 32];
            snprintf(text, sizeof text, "%lx %s", spot->value, map->object->path);
            record('f', text);
        }
        spot->hit = 1;
        return 1;
    }
    return 0;
}

static Space *new_space(const Space *from) {
    Space *space = calloc(1, sizeof *space);
    if (!space) fail("memory");
    if (from && from->count) {
        space->maps = room(NULL, from->count * sizeof(Map));
        memcpy(space->maps, from->maps, from->count * sizeof(Map));
        space->count = from->count;
    }
    return space;
}

static void go_on(pid_t id, int request, int signal) { ptrace(request, id, 0, signal); }

/* A task made another one, which may have stopped already. */
static void begat(Task *task, int event) {
    unsigned long id = 0;
    ptrace(PTRACE_GETEVENTMSG, task->id, 0, &id);
    Task *child = task_of(id);
    int stopped = child && child->stopped;
    if (!child) child = add_task(id);
    int shared = event == PTRACE_EVENT_VFORK || (event == PTRACE_EVENT_CLONE && task->flags & CLONE_VM);
    child->space = shared ? task->space : new_space(task->space);
    child->stopped = 0;
    if (stopped) go_on(id, PTRACE_CONT, 0);
}

static void executes(Task *task) {
    unsigned long former = 0;
    char path[MOST_PATH];
    ptrace(PTRACE_GETEVENTMSG, task->id, 0, &former);
    Task *caller = task_of(former);
    if (caller && caller->path[0]) record('r', caller->path);
    if (caller && caller != task) drop_task(former);
    link_of(task->id, "exe", path);
    if (path[0] == '/') record('x', path);
    task->space = new_space(NULL);
    task->path[0] = 0;
    read_maps(task);
}

static volatile sig_atomic_t late;
static void too_late(int signal) { (void)signal; late = 1; }

/* Follow the program until it and all that it started ended; return its status. */
static int follow(pid_t program) {
    int status = 0, state;
    struct sigaction patience = {.sa_handler = too_late};
    sigaction(SIGALRM, &patience, NULL);
    for (;;) {
        pid_t id = late ? -1 : waitpid(-1, &state, __WALL);
        if (late || (id < 0 && errno == EINTR)) {
            if (!late) continue;
            record('?', "left");
            return status;
        }
        if (id < 0) return status;
        Task *task = task_of(id);
        if (WIFEXITED(state) || WIFSIGNALED(state)) {
            drop_task(id);
            if (id == program) {
                status = WIFEXITED(state) ? WEXITSTATUS(state) : 128 + WTERMSIG(state);
                alarm(PATIENCE);
            }
            if (WIFSIGNALED(state)) record('?', "killed");
            continue;
        }
        int signal = WSTOPSIG(state), event = state >> 16;
        if (!task || !task->space) {
            /* The event of its parent is still to come. */
            if (!task) task = add_task(id);
            task->stopped = 1;
            continue;
        }
        switch (event) {
        case PTRACE_EVENT_SECCOMP: go_on(id, begins(task) ? PTRACE_SYSCALL : PTRACE_CONT, 0); continue;
        case PTRACE_EVENT_FORK: case PTRACE_EVENT_VFORK: case PTRACE_EVENT_CLONE: begat(task, event); go_on(id, PTRACE_CONT, 0); continue;
        case PTRACE_EVENT_EXEC: executes(task); go_on(id, PTRACE_CONT, 0); continue;
        case PTRACE_EVENT_STOP:
            if (signal == SIGSTOP || signal == SIGTSTP || signal == SIGTTIN || signal == SIGTTOU) go_on(id, PTRACE_LISTEN, 0);
            else go_on(id, PTRACE_CONT, 0);
            continue;
        }
        if (signal == (SIGTRAP | 0x80)) { ends(task); go_on(id, PTRACE_CONT, 0); continue; }
        go_on(id, PTRACE_CONT, signal == SIGTRAP && hits(task) ? 0 : signal);
    }
}

int main(int argc, char **argv) {
    int at = 2, gate[2];
    while (at < argc && strcmp(argv[at], "--")) at++;
    if (at + 1 >= argc) {
        fputs("usage: trace OUT ROOT... -- PROGRAM ARGUMENT...\n", stderr);
        return CANNOT;
    }
    argv[at] = NULL;
    roots = argv + 2;
    if ((out = open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600)) < 0) fail(argv[1]);
    if (pipe2(gate, O_CLOEXEC)) fail("pipe");
    pid_t child = fork();
    if (child < 0) fail("fork");
    if (!child) {
        char word;
        close(gate[1]);
        /* The tracer writes a byte when it is attached. */
        if (read(gate[0], &word, 1) != 1) _exit(CANNOT);
        filter_calls();
        execvp(argv[at + 1], argv + at + 1);
        dprintf(2, "%s: %s\n", argv[at + 1], strerror(errno));
        _exit(errno == ENOENT ? 127 : 126);
    }
    close(gate[0]);
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACECLONE | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SEIZE, child, 0, options)) {
        int why = errno;
        kill(child, SIGKILL);
        errno = why;
        fail("ptrace");
    }
    add_task(child)->space = new_space(NULL);
    if (write(gate[1], "", 1) != 1) fail("pipe");
    close(gate[1]);
    int status = follow(child);
    char text[16];
    snprintf(text, sizeof text, "%d", status);
    record('e', text);
    /* No destructors: a preloaded library has its own in the program. */
    _exit(status);
}
#endif
