/* SPDX-License-Identifier: MIT */
/* Sizes in and out, and tables. */
#ifndef NPUEMU_TOOLS_TEXT_H
#define NPUEMU_TOOLS_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define NPUEMU_TEXT_SIZE	24	/* room for any size in words */

/* "8", "64K", "16M", "2GiB": powers of 1024.  0 or -EINVAL. */
int npuemu_size_parse(const char *text, uint64_t *out);
/*
 * A list of sizes, "8,64,4K", and ranges by powers of two, "8..16M".  How many,
 * or -EINVAL with what is wrong in @err.
 */
int npuemu_sizes_parse(const char *text, uint64_t *out, int max, char *err, size_t len);
/* 4096 is "4 KiB", 1536 is "1.5 KiB"; @buf has NPUEMU_TEXT_SIZE bytes. */
const char *npuemu_size_text(char *buf, uint64_t bytes);

#define NPUEMU_TABLE_COLS	16

/* Cells are added one by one, row by row; the widths follow from them. */
struct npuemu_table {
	unsigned int cols;
	unsigned int cells;
	unsigned int room;
	int boxed;			/* draw a frame */
	const char *align;		/* one 'l' or 'r' a column */
	const char *head[NPUEMU_TABLE_COLS];
	char **cell;
};

/* @heads: names separated by '|'; kept, not copied, so it must be writable. */
int npuemu_table_init(struct npuemu_table *t, char *heads, const char *align, int boxed);
void npuemu_table_add(struct npuemu_table *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void npuemu_table_print(const struct npuemu_table *t, FILE *f);
void npuemu_table_free(struct npuemu_table *t);

#endif
