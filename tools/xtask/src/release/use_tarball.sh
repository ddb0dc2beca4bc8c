#!/bin/sh
# use_tarball.sh PREFIX HELLO: uses what a tarball has put into the folder PREFIX, in the folder where it is started, and compiles the C program HELLO
# against it, with pkg-config and with cmake. Nothing else of the project is used.
set -eu
prefix=$1
hello=$2
PATH=$prefix/bin:$PATH

pto --version
pto run paged_attention
pto run vector_example --hosting virtual --trace trace.json
pto view trace.json -o page.html
test -s page.html
pto analyze trace.json > analysis.txt
test -s "$prefix/share/man/man1/pto-run.1"
bash -n "$prefix/share/bash-completion/completions/pto"
for image in "$prefix"/share/pto/firmware/*.img; do
    test ! -e "$image" || pto fw inspect "$image" > inspected.txt
done

PKG_CONFIG_PATH=$prefix/lib/pkgconfig
export PKG_CONFIG_PATH
# Words of pkg-config are separate arguments.
# shellcheck disable=SC2046
cc -Wall -Werror "$hello" $(pkg-config --cflags --libs pto_runtime) -o hello
./hello

cat > CMakeLists.txt <<LIST
cmake_minimum_required(VERSION 3.16)
project(hello C)
find_package(pto_runtime 0.1 REQUIRED)
add_executable(hello $hello)
target_link_libraries(hello PRIVATE pto::runtime)
LIST
cmake -S . -B build -DCMAKE_PREFIX_PATH="$prefix" > cmake.txt
cmake --build build > build.txt
build/hello

# A program for CANN finds the headers and, when it runs, the library of the device.
cat > acl.c <<'PROGRAM'
#include <acl/acl.h>
#include <stdio.h>
int main(void) {
    uint32_t devices = 0;
    if (aclInit(NULL) != 0 || aclrtGetDeviceCount(&devices) != 0 || aclFinalize() != 0) {
        return 1;
    }
    printf("%u devices\n", (unsigned)devices);
    return devices == 0;
}
PROGRAM
cc -I "$prefix/include" acl.c -L "$prefix/lib" -lascendcl -o acl
pto compat cann run -- ./acl
