/* SPDX-License-Identifier: MIT */
/*
 * replay: main() for a fuzz target that runs over given files, without libFuzzer.
 *
 *     fuzz_NAME [FILE...]    by default all files of tests/fuzz/corpus/NAME
 *
 * The program prints one TAP line. If a promise (`must`) is broken, the program aborts,
 * as it does under libFuzzer.
 */
#include "fuzz.h"
#include "tap.h"

#include <dirent.h>

static bool replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data = malloc(1 << 20);
    size_t n = 0;

    if (file != NULL && data != NULL)
        n = fread(data, 1, 1 << 20, file);
    printf("# begins: %s, %zu bytes\n", path, n);
    fflush(stdout); /* if the program aborts, run_tests shows the last such line */
    if (file != NULL && data != NULL)
        LLVMFuzzerTestOneInput(data, n);
    free(data);
    return file != NULL && fclose(file) == 0;
}

static void replay_folder(const char *program)
{
    const char *name = strstr(program, "fuzz_");
    const struct dirent *entry;
    char folder[128];
    char path[512];
    DIR *all;

    while (name != NULL && strstr(name + 1, "fuzz_") != NULL)
        name = strstr(name + 1, "fuzz_");
    snprintf(folder, sizeof folder, "tests/fuzz/corpus/%s", name != NULL ? name + 5 : "");
    all = opendir(folder);
    while (all != NULL && (entry = readdir(all)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        okf(replay(path), "%s", entry->d_name);
    }
    if (all != NULL)
        closedir(all);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        okf(replay(argv[i]), "%s", argv[i]);
    if (argc == 1)
        replay_folder(argv[0]);
    return done_testing();
}
