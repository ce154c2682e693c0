// SPDX-License-Identifier: MIT
/* Sizes in and out, and tables. */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "text.h"

static int unit_shift(const char *unit)
{
	static const char units[] = "KMGT";
	const char *p;

	if (!*unit || !strcasecmp(unit, "B"))
		return 0;
	p = strchr(units, *unit >= 'a' ? *unit - 32 : *unit);
	if (!p)
		return -1;
	if (unit[1] && strcasecmp(unit + 1, "B") && strcasecmp(unit + 1, "iB"))
		return -1;
	return 10 * (int)(p - units + 1);
}

int npuemu_size_parse(const char *text, uint64_t *out)
{
	unsigned long long v;
	char *end;
	int shift;

	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	v = strtoull(text, &end, 0);
	shift = unit_shift(end);
	if (errno || shift < 0 || (shift && v >> (64 - shift)))
		return -EINVAL;
	*out = (uint64_t)v << shift;
	return 0;
}

struct sizes {
	uint64_t *out;
	int n;
	int max;
};

static int add_size(struct sizes *s, uint64_t v, char *err, size_t len)
{
	if (s->n == s->max) {
		snprintf(err, len, "more than %d sizes", s->max);
		return -EINVAL;
	}
	s->out[s->n++] = v;
	return 0;
}

static int add_range(struct sizes *s, char *item, char *dots, char *err, size_t len)
{
	uint64_t lo, hi;
	int rc;

	*dots = '\0';
	if (npuemu_size_parse(item, &lo) || npuemu_size_parse(dots + 2, &hi)) {
		snprintf(err, len, "'%s..%s' is not a range of sizes like 8..16M",
			 item, dots + 2);
		return -EINVAL;
	}
	if (!lo || lo > hi) {
		snprintf(err, len, "the range %s..%s is empty", item, dots + 2);
		return -EINVAL;
	}
	for (; lo <= hi; lo *= 2) {
		rc = add_size(s, lo, err, len);
		if (rc || lo > UINT64_MAX / 2)
			return rc;
	}
	return 0;
}

int npuemu_sizes_parse(const char *text, uint64_t *out, int max, char *err, size_t len)
{
	struct sizes s = { out, 0, max };
	char copy[256], *item, *save, *dots;
	uint64_t v;
	int rc = 0;

	if (snprintf(copy, sizeof(copy), "%s", text) >= (int)sizeof(copy)) {
		snprintf(err, len, "the list is too long");
		return -EINVAL;
	}
	for (item = strtok_r(copy, ",", &save); item && !rc;
	     item = strtok_r(NULL, ",", &save)) {
		dots = strstr(item, "..");
		if (dots) {
			rc = add_range(&s, item, dots, err, len);
		} else if (npuemu_size_parse(item, &v)) {
			snprintf(err, len, "'%s' is not a size like 8, 64K or 16M", item);
			rc = -EINVAL;
		} else {
			rc = add_size(&s, v, err, len);
		}
	}
	if (!rc && !s.n) {
		snprintf(err, len, "the list is empty");
		rc = -EINVAL;
	}
	return rc ? rc : s.n;
}

const char *npuemu_size_text(char *buf, uint64_t bytes)
{
	static const char *const unit[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	uint64_t whole = bytes, rest = 0;
	int u = 0;

	while (whole >= 1024) {
		rest = whole % 1024;
		whole /= 1024;
		u++;
	}
	if (rest * 10 / 1024)
		snprintf(buf, NPUEMU_TEXT_SIZE, "%llu.%llu %s", (unsigned long long)whole,
			 (unsigned long long)(rest * 10 / 1024), unit[u]);
	else
		snprintf(buf, NPUEMU_TEXT_SIZE, "%llu %s", (unsigned long long)whole,
			 unit[u]);
	return buf;
}

int npuemu_table_init(struct npuemu_table *t, char *heads, const char *align, int boxed)
{
	char *save, *h;

	memset(t, 0, sizeof(*t));
	t->align = align;
	t->boxed = boxed;
	for (h = strtok_r(heads, "|", &save); h && t->cols < NPUEMU_TABLE_COLS;
	     h = strtok_r(NULL, "|", &save))
		t->head[t->cols++] = h;
	return t->cols && strlen(align) == t->cols ? 0 : -EINVAL;
}

void npuemu_table_add(struct npuemu_table *t, const char *fmt, ...)
{
	char text[256];
	va_list ap;
	char **more;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (t->cells == t->room) {
		more = realloc(t->cell, (t->room + 64) * sizeof(*more));
		if (!more)
			return;
		t->cell = more;
		t->room += 64;
	}
	t->cell[t->cells++] = strdup(text);
}

static const char *cell_text(const struct npuemu_table *t, unsigned int i)
{
	return i < t->cells && t->cell[i] ? t->cell[i] : "";
}

static void rule(const struct npuemu_table *t, const int *width, FILE *f)
{
	unsigned int c;
	int i;

	if (!t->boxed)
		return;
	for (c = 0; c < t->cols; c++) {
		fputc('+', f);
		for (i = 0; i < width[c] + 2; i++)
			fputc('-', f);
	}
	fputs("+\n", f);
}

static void print_cell(const struct npuemu_table *t, const int *width, unsigned int c,
		       const char *text, FILE *f)
{
	int last = c + 1 == t->cols;

	fputs(t->boxed ? "| " : c ? "  " : "", f);
	if (t->align[c] == 'r')
		fprintf(f, "%*s", width[c], text);
	else if (last && !t->boxed)
		fputs(text, f);
	else
		fprintf(f, "%-*s", width[c], text);
	if (t->boxed)
		fputs(last ? " |\n" : " ", f);
	else if (last)
		fputc('\n', f);
}

void npuemu_table_print(const struct npuemu_table *t, FILE *f)
{
	int width[NPUEMU_TABLE_COLS], n;
	unsigned int i, c;

	if (!t->cols)
		return;
	for (c = 0; c < t->cols; c++)
		width[c] = (int)strlen(t->head[c]);
	for (i = 0; i < t->cells; i++) {
		n = (int)strlen(cell_text(t, i));
		if (n > width[i % t->cols])
			width[i % t->cols] = n;
	}
	rule(t, width, f);
	for (c = 0; c < t->cols; c++)
		print_cell(t, width, c, t->head[c], f);
	rule(t, width, f);
	for (i = 0; i < t->cells; i++)
		print_cell(t, width, i % t->cols, cell_text(t, i), f);
	if (t->cells)
		rule(t, width, f);
}

void npuemu_table_free(struct npuemu_table *t)
{
	unsigned int i;

	for (i = 0; i < t->cells; i++)
		free(t->cell[i]);
	free(t->cell);
	t->cell = NULL;
	t->cells = 0;
	t->room = 0;
}
