/* A builder program that reads a table through the library, or follows its address as a pointer: `follows read|follow`. It prints what the run
 * ends with. */
#include <inttypes.h>

#include "check.h"

static int is_following;

static int32_t build(pto_builder *builder, void *user) {
    const uint64_t *words = NULL;
    uint32_t count = 0, word = 0;
    (void)user;
    if (pto_builder_words(builder, &words, &count) != 0 || count != 2) {
        return 1;
    }
    if (is_following) {
        word = ((const uint32_t *)(uintptr_t)words[0])[3];
    } else if (pto_builder_read_u32(builder, words[0] + 12, &word) != 0) {
        return 2;
    }
    return word == words[1] ? 0 : 3;
}

int main(int count, char **arguments) {
    pto_device *device = open_device();
    pto_error error;
    uint64_t words[2] = {0, 40};
    const uint32_t table[4] = {10, 20, 30, 40};
    is_following = count > 1 && strcmp(arguments[1], "follow") == 0;
    OK(pto_device_malloc(device, sizeof table, &words[0]));
    OK(pto_copy_to_device(device, words[0], table, sizeof table));
    OK(pto_register_builder(device, "reads a table", build, NULL));
    const int32_t code = pto_run_builder(device, "reads a table", words, 2, NULL, NULL);
    if (code != 0) {
        OK(pto_last_error(&error));
        printf("%s: %s\n", error.name, error.message);
    } else {
        printf("it read the table\n");
    }
    OK(pto_device_close(device));
    return 0;
}
