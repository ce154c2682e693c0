/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * Lines, words and messages for the parser of machine descriptions, apart
 * from what a description means.
 */
#ifndef NPUEMU_ENGINE_MACHINE_TEXT_H
#define NPUEMU_ENGINE_MACHINE_TEXT_H

#include "machine.h"

/* A word of a line.  @len is 0 where the line has ended. */
struct npuemu_token {
	const char *text;
	u32 len;
	u32 line;
	u32 column;
};

struct npuemu_text {
	const char *next;	/* the line after this one */
	const char *end;	/* of the text */
	const char *start;	/* of the current line */
	const char *at;
	const char *stop;	/* of its content: comment and newline cut off */
	u32 line;
	u32 said;		/* bytes of the message so far */
	struct npuemu_machine_error *err;
};

/* Go to the next line: 1, or 0 at the end, or -EINVAL for bytes that are no text. */
int npuemu_text_line(struct npuemu_text *x);
struct npuemu_token npuemu_text_word(struct npuemu_text *x);

bool npuemu_token_is(const struct npuemu_token *t, const char *word);
/* Its index in @words, or @n. */
u32 npuemu_token_index(const struct npuemu_token *t, const char *const words[],
		       u32 n);

/* A message is put together piece by piece: there is no printf here. */
void npuemu_text_say(struct npuemu_text *x, const char *words);
void npuemu_text_say_number(struct npuemu_text *x, u32 n);
void npuemu_text_say_token(struct npuemu_text *x, const struct npuemu_token *t);
/* End the message; both return -EINVAL. */
int npuemu_text_refuse(struct npuemu_text *x, const struct npuemu_token *t);
int npuemu_text_refuse_at(struct npuemu_text *x, u32 line, u32 column);

#endif
