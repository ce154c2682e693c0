// SPDX-License-Identifier: MIT
/*
 * The machine descriptions that are shipped, for where their files are not: a
 * program alone in a container or a VM.  Files come first, so that they can be
 * looked at and changed.
 */
#include "core.h"

/* Read by the assembler, from the top of the tree. */
#define MACHINE(sym, file)						\
	__asm__("	.pushsection .rodata, \"a\"\n"			\
		"	.local npuemu_machine_" #sym "\n"		\
		"npuemu_machine_" #sym ": .incbin \"machines/" file "\"\n"	\
		"	.local npuemu_machine_" #sym "_end\n"		\
		"npuemu_machine_" #sym "_end: .byte 0\n"		\
		"	.popsection\n");				\
	extern const char npuemu_machine_##sym[] __attribute__((visibility("hidden")));	\
	extern const char npuemu_machine_##sym##_end[] __attribute__((visibility("hidden")))

MACHINE(950, "950.txt");
MACHINE(950_2x8, "950-2x8.txt");
MACHINE(910b, "910b.txt");
MACHINE(910c, "910c.txt");
MACHINE(small, "small.txt");

const char *npuemu_machine_builtin(const char *name, size_t *bytes)
{
	static const struct {
		const char *name, *text, *end;
	} machines[] = {
		{ "950", npuemu_machine_950, npuemu_machine_950_end },
		{ "950-2x8", npuemu_machine_950_2x8, npuemu_machine_950_2x8_end },
		{ "910b", npuemu_machine_910b, npuemu_machine_910b_end },
		{ "910c", npuemu_machine_910c, npuemu_machine_910c_end },
		{ "small", npuemu_machine_small, npuemu_machine_small_end },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(machines); i++)
		if (!strcmp(name, machines[i].name)) {
			*bytes = (size_t)(machines[i].end - machines[i].text);
			return machines[i].text;
		}
	return NULL;
}
