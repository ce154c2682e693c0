// SPDX-License-Identifier: MIT
/*
 * Which calls badinput.c makes of a function, with what arguments, and what may come of
 * each: whether it may succeed, with which code it fails, what it has to say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "badinput.h"

const char *const bad_phases[] = {
	[BEFORE] = "before aclInit", [NO_DEVICE] = "in a thread without device",
	[LIVE] = "", [OTHER_CONTEXT] = "in another context", [AFTER] = "after aclFinalize",
};

const char *const bad_patterns[] = {
	[RIGHT] = "right", [ZERO] = "null", [PAGE] = "page", [WILD] = "wild", [FREED] = "freed",
	[OTHER] = "other", [ODD] = "odd", [HUGE_NUMBER] = "huge", [TOP] = "top", [EMPTY] = "empty",
	[LONG_TEXT] = "long",
};

#ifdef __SANITIZE_ADDRESS__
static const bool aligned = true;
#else
static const bool aligned;
#endif

static bool is_handle(enum bad_kind kind)
{
	return kind >= BAD_HANDLES;
}

static bool is_number(enum bad_kind kind)
{
	return kind == BAD_NUMBER || kind == BAD_SIZE;
}

/* Has a NULL there to be refused, if nothing else is said? */
static bool is_address(enum bad_kind kind)
{
	return is_handle(kind) || kind == BAD_DATA || kind == BAD_TEXT || kind == BAD_MEMORY ||
	       kind == BAD_FUNCTION;
}

/* ---- The calls -------------------------------------------------------------------------- */

static unsigned int add(struct bad_case *c, unsigned int n, enum phase phase, enum pattern p,
			unsigned int arg)
{
	if (n >= CASES) {
		puts("badinput: CASES is too small");
		exit(2);
	}
	c[n] = (struct bad_case){ phase, p, arg };
	return n + 1;
}

static unsigned int add_live(struct bad_case *c, unsigned int n, enum bad_kind kind, unsigned int i)
{
	static const enum pattern handle[] = { ZERO, PAGE, WILD, FREED, OTHER, ODD, HUGE_NUMBER };
	static const enum pattern memory[] = { ZERO, PAGE, FREED, ODD };
	static const enum pattern text[] = { ZERO, EMPTY, LONG_TEXT };
	static const enum pattern data[] = { ZERO, ODD };
	static const enum pattern number[] = { HUGE_NUMBER, TOP };
	const enum pattern *p = NULL;
	unsigned int k, m = 0;

#define SET(list) (p = list, m = sizeof(list) / sizeof(*(list)))
	if (is_handle(kind))
		SET(handle);
	else if (kind == BAD_MEMORY)
		SET(memory);
	else if (kind == BAD_TEXT)
		SET(text);
	else if (kind == BAD_DATA)
		SET(data);
	else if (is_number(kind))
		SET(number);
	else if (kind == BAD_FUNCTION)
		n = add(c, n, LIVE, ZERO, i);
	for (k = 0; k < m; k++) {
		/* to read or write numbers that lie so is the caller's mistake, which UBSan reports */
		if (aligned && p[k] == ODD && !is_handle(kind))
			continue;
		n = add(c, n, LIVE, p[k], i);
	}
	return n;
}

unsigned int bad_cases(const struct bad_function *f, struct bad_case *c)
{
	unsigned int n = 0, i;
	enum phase phase;

	for (phase = BEFORE; phase < PHASES; phase++) {
		/* first: the others' codes are compared with its */
		if (phase != BEFORE)
			n = add(c, n, phase, RIGHT, ALL);
		if (phase != OTHER_CONTEXT) {
			n = add(c, n, phase, ZERO, ALL);
			n = add(c, n, phase, PAGE, ALL);
		}
		if (phase == LIVE || phase == BEFORE)
			n = add(c, n, phase, HUGE_NUMBER, ALL);
		for (i = 0; phase != OTHER_CONTEXT && i < f->args; i++) {
			if (phase == LIVE)
				n = add_live(c, n, f->kind[i], i);
			else if (is_address(f->kind[i]))
				n = add(c, n, phase, ZERO, i);
		}
	}
	return n;
}

static void spoil(const struct bad_function *f, unsigned int i, enum pattern p, union bad_arg *a)
{
	enum bad_kind kind = f->kind[i];

	switch (p) {
	case ZERO:
		if (kind != BAD_STRUCT)
			a->u = 0;
		break;
	case PAGE:
		if (is_handle(kind) || kind == BAD_MEMORY)
			a->p = bad_world.page[i];
		break;
	case WILD:
		a->p = (void *)(uintptr_t)0x123450;
		break;
	case FREED:
		a->p = kind == BAD_MEMORY ? bad_world.gone : bad_world.freed[kind];
		break;
	case OTHER:
		a->p = bad_other(kind);
		break;
	case ODD:
		a->p = (char *)a->p + 1;
		break;
	case HUGE_NUMBER:
		a->u = UINT64_MAX;
		break;
	case TOP:
		a->u = 1ull << (f->bits[i] - 1);
		break;
	case EMPTY:
		bad_world.page[i][0] = 0;
		a->p = bad_world.page[i];
		break;
	case LONG_TEXT:
		memset(bad_world.page[i], 'x', BAD_PAGE - 1);
		a->p = bad_world.page[i];
		break;
	default:
		break;
	}
}

void bad_arguments(const struct bad_function *f, const struct bad_case *c, union bad_arg *a)
{
	unsigned int i;

	bad_pages();
	for (i = 0; i < f->args; i++)
		a[i] = bad_right(f, i);
	f->right(a);
	if (c->arg < ALL) {
		spoil(f, c->arg, c->pattern, &a[c->arg]);
		return;
	}
	for (i = 0; i < f->args; i++) {
		if (c->pattern == HUGE_NUMBER ? is_number(f->kind[i]) : c->pattern != RIGHT)
			spoil(f, i, c->pattern, &a[i]);
		if (c->pattern == PAGE && is_handle(f->kind[i]))
			a[i].p = NULL;
	}
}

/* ---- What may come of them ---------------------------------------------------------------- */

bool bad_must_fail(const struct bad_function *f, const struct bad_case *c)
{
	union bad_arg right[BAD_ARGS];
	enum bad_kind kind;
	unsigned int i;

	for (i = 0; i < f->args; i++)
		right[i] = bad_right(f, i);
	f->right(right);
	if (f->result != BAD_ACL && f->result != BAD_HCCL)
		return false;
	if (c->arg < ALL) {
		kind = f->kind[c->arg];
		switch (c->pattern) {
		case ZERO:
			return right[c->arg].p;
		case ODD:
			return is_handle(kind);
		case HUGE_NUMBER:
			return is_handle(kind) || kind == BAD_SIZE;
		case FREED:	/* only of handles and device memory it is known */
			return is_handle(kind) || right[c->arg].p == bad_world.device ||
			       right[c->arg].p == bad_world.device2;
		case PAGE:
		case WILD:
		case OTHER:
			return is_handle(kind);
		default:
			return false;
		}
	}
	for (i = 0; i < f->args; i++) {
		kind = f->kind[i];
		if (c->pattern == ZERO && is_address(kind) && right[i].p)
			return true;
		if (c->phase == OTHER_CONTEXT && kind == BAD_STREAM)
			return true;
		if (c->pattern == RIGHT && c->phase == AFTER && is_handle(kind))
			return true;
	}
	return false;
}

/*
 * Does it say what it is about: the function, or the argument by its value?  In a thread
 * that has no device, or one of another context, that is what it is about.
 */
bool bad_tells(const char *msg, const struct bad_function *f, const struct bad_case *c,
	       const union bad_arg *a)
{
	char value[32];
	unsigned int i;

	if (strstr(msg, f->name))
		return true;
	for (i = 0; i < f->args; i++) {
		snprintf(value, sizeof(value), "%p", a[i].p);
		if (a[i].p && is_address(f->kind[i]) && strstr(msg, value))
			return true;
		snprintf(value, sizeof(value), "device %d", (int)a[i].u);
		if (is_number(f->kind[i]) && strstr(msg, value))
			return true;
	}
	/* a task that failed later says so */
	if (strstr(msg, ") stream ") && strstr(msg, ": task "))
		return true;
	if (c->phase == OTHER_CONTEXT)
		return strstr(msg, "another context");
	return c->phase != LIVE && strstr(msg, "this thread has no device");
}

/*
 * One of the API's; and if nothing else is wrong, that of a NULL, or of a handle that is
 * none.  Of a NULL stream that cannot be the default one something else may be said.
 */
bool bad_code_fits(const struct bad_function *f, const struct bad_case *c, long code,
		   long right_code)
{
	enum bad_kind kind = c->arg < ALL ? f->kind[c->arg] : BAD_NUMBER;
	bool strict = c->phase == LIVE && is_address(kind) && code != right_code &&
		      (c->pattern == ZERO || is_handle(kind));

	if (f->result == BAD_HCCL)
		return strict && c->pattern == ZERO ? code == HCCL_E_PTR :
			code > HCCL_SUCCESS && code < HCCL_E_RESERVED;
	if (strict && !(kind == BAD_STREAM && c->pattern == ZERO))
		return code == ACL_ERROR_INVALID_PARAM || code == ACL_ERROR_RT_PARAM_INVALID ||
			(kind == BAD_CONTEXT && code == ACL_ERROR_RT_CONTEXT_NULL);
	return code >= ACL_ERROR_INVALID_PARAM && code < 600000;
}
