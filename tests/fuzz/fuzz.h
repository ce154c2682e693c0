/* SPDX-License-Identifier: MIT */
/*
 * What a fuzz target defines.  libFuzzer calls it in `make fuzz`, driver.c in
 * `make check`.
 */
#ifndef NPUEMU_TESTS_FUZZ_H
#define NPUEMU_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Handle one input; crash when something is wrong, else return 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Optional: called once, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((__weak__));

#endif
