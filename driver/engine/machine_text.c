// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Lines, words and messages of machine descriptions.  The text may come from
 * anybody: nothing here reads behind its end, allocates or divides by more
 * than ten.
 */
#include "machine_text.h"

#define MAX_SHOWN	24u	/* bytes of a word that a message repeats */

static void say_bytes(struct npuemu_text *x, const char *text, u32 len)
{
	u32 room = (u32)sizeof(x->err->what) - 1 - x->said;

	if (len > room)
		len = room;
	memcpy(x->err->what + x->said, text, len);
	x->said += len;
	x->err->what[x->said] = 0;
}

void npuemu_text_say(struct npuemu_text *x, const char *words)
{
	say_bytes(x, words, (u32)strlen(words));
}

void npuemu_text_say_number(struct npuemu_text *x, u32 n)
{
	char digits[10];
	u32 i = sizeof(digits);

	do {
		digits[--i] = (char)('0' + n % 10);
		n /= 10;
	} while (n);
	say_bytes(x, digits + i, (u32)sizeof(digits) - i);
}

void npuemu_text_say_token(struct npuemu_text *x, const struct npuemu_token *t)
{
	npuemu_text_say(x, "'");
	say_bytes(x, t->text, t->len < MAX_SHOWN ? t->len : MAX_SHOWN);
	npuemu_text_say(x, t->len > MAX_SHOWN ? "...'" : "'");
}

int npuemu_text_refuse_at(struct npuemu_text *x, u32 line, u32 column)
{
	x->err->line = line;
	x->err->column = column;
	return -EINVAL;
}

int npuemu_text_refuse(struct npuemu_text *x, const struct npuemu_token *t)
{
	return npuemu_text_refuse_at(x, t->line, t->column);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t';
}

struct npuemu_token npuemu_text_word(struct npuemu_text *x)
{
	struct npuemu_token t;

	while (x->at < x->stop && is_space(*x->at))
		x->at++;
	t.text = x->at;
	t.line = x->line;
	t.column = (u32)(x->at - x->start) + 1;
	while (x->at < x->stop && !is_space(*x->at))
		x->at++;
	t.len = (u32)(x->at - t.text);
	return t;
}

bool npuemu_token_is(const struct npuemu_token *t, const char *word)
{
	return t->len == strlen(word) && !memcmp(t->text, word, t->len);
}

u32 npuemu_token_index(const struct npuemu_token *t, const char *const words[],
		       u32 n)
{
	u32 i;

	for (i = 0; i < n; i++)
		if (npuemu_token_is(t, words[i]))
			break;
	return i;
}

/* What is wrong with a byte, or NULL. */
static const char *byte_fault(u8 c, bool comment)
{
	if (!c)
		return "NUL byte: a description is plain text, remove it";
	if ((c < ' ' && c != '\t') || c == 0x7f)
		return "control character: replace it by a space";
	if (c > 0x7f && !comment)
		return "byte outside ASCII: allowed in comments only, rewrite it in ASCII";
	return NULL;
}

static int check_line(struct npuemu_text *x, const char *eol)
{
	bool comment = false;
	const char *s;

	x->stop = eol;
	for (s = x->start; s < eol; s++) {
		const char *fault;

		if (*s == '#' && !comment) {
			comment = true;
			x->stop = s;
		}
		fault = byte_fault((u8)*s, comment);
		if (fault) {
			npuemu_text_say(x, fault);
			return npuemu_text_refuse_at(x, x->line,
						     (u32)(s - x->start) + 1);
		}
	}
	return 0;
}

int npuemu_text_line(struct npuemu_text *x)
{
	const char *eol = x->next;
	const char *stop;

	if (x->next == x->end)
		return 0;
	while (eol < x->end && *eol != '\n')
		eol++;
	x->line++;
	x->start = x->next;
	x->at = x->next;
	stop = eol;
	if (eol < x->end && eol > x->start && eol[-1] == '\r')
		stop--;
	if (check_line(x, stop))
		return -EINVAL;
	if (eol == x->end) {
		/* A number cut in half would otherwise pass as a smaller one. */
		npuemu_text_say(x, "no newline after the last line: complete the file, or add one");
		return npuemu_text_refuse_at(x, x->line,
					     (u32)(eol - x->start) + 1);
	}
	x->next = eol + 1;
	return 1;
}
