/* Loses memory: a sanitizer that finds leaks finds this one. */
#include <stdlib.h>

int main(void) {
    void *volatile lost = malloc(100);
    lost = NULL;
    return lost != NULL;
}
