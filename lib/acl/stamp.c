// SPDX-License-Identifier: MIT
/*
 * What programs note in a trace themselves: marks, ranges, steps.  A range is one record,
 * written when it is closed; one that is open when profiling stops is not in the trace.
 */
#include <stdlib.h>
#include "devinfo.h"
#include "prof.h"
#include "trace.h"

#define MAX_STAMPS	65536
#define MAX_TEXT	127u		/* of a stamp or a mark */
#define MAX_DEPTH	64u		/* ranges of a thread, each in the one before */
#define MAX_RANGES	65536u		/* of the process, open */

struct stamp {
	u32 text;		/* npuemu_trace_text()'s; 0: none */
};

struct aclprofStepInfo {
	u32 id;
};

static struct npuemu_slab stamps = {
	.what = "stamp", .size = NPUEMU_SLAB_SIZE(struct stamp), .max = MAX_STAMPS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static struct npuemu_slab steps = {
	.what = "step", .size = NPUEMU_SLAB_SIZE(struct aclprofStepInfo), .max = MAX_STAMPS,
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

static u32 next_step;

/* An open range. */
struct range {
	struct range *next;	/* of the process's */
	u32 id;
	u32 text;
	u64 ns;
};

/* Of one thread, of two kinds: aclprofPush(), aclprofRangePushEx(). */
struct nest {
	u32 turn;		/* of the profiling in which they were opened */
	u32 depth;
	struct range range[MAX_DEPTH];
};

static __thread struct nest nests[2];

static struct {
	pthread_mutex_t lock;
	u32 turn;
	u32 last;		/* id */
	u32 n;
	struct range *open;
} ranges = { .lock = PTHREAD_MUTEX_INITIALIZER };

void npuacl_stamps_fork(void)
{
	static struct npuemu_slab *const slabs[] = { &stamps, &steps };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(slabs); i++) {
		npuemu_slab_fork(slabs[i]);
	}
	memset(nests, 0, sizeof(nests));
	pthread_mutex_init(&ranges.lock, NULL);
	ranges.open = NULL;
	ranges.n = 0;
}

static void note(u32 event, u64 ns, u32 text, u32 index, u64 arg)
{
	struct npuemu_trace_record r = {
		.ns = ns, .event = event, .queue = text, .index = index, .device = NPUEMU_TRACE_HOST, .arg = arg,
	};

	if (READ_ONCE(npuemu_trace_marks) & NPUEMU_TRACE_MARKS)
		npuemu_trace_put(&r);
}

static void note_range(const struct range *r, enum npuemu_trace_range kind)
{
	note(NPUEMU_TR_RANGE | (u32)kind << 8, r->ns, r->text, r->id, (u64)npuemu_now_ns() - r->ns);
}

/* ---- Stamps ------------------------------------------------------------------------- */

static aclError find_stamp(const char *what, void *handle, struct stamp **out)
{
	if (!handle)
		return npuacl_null(what, "stamp");
	if (!npuemu_slab_alive(&stamps, handle))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not a stamp, or no longer", what, handle);
	*out = handle;
	return npuacl_prof_on(what);
}

void *aclprofCreateStamp(void)
{
	struct stamp *s;

	if (npuacl_prof_on("aclprofCreateStamp"))
		return NULL;
	s = npuemu_slab_alloc(&stamps);
	if (!s) {
		npuacl_fail_say(ACL_ERROR_STORAGE_OVER_LIMIT,
				"aclprofCreateStamp: there are %u stamps, the most there can be", MAX_STAMPS);
		return NULL;
	}
	npuemu_slab_publish(&stamps, s);
	return s;
}

void aclprofDestroyStamp(void *stamp)
{
	if (!stamp)
		npuacl_null("aclprofDestroyStamp", "stamp");
	else if (!npuemu_slab_retire(&stamps, stamp))
		npuacl_fail_say(ACL_ERROR_INVALID_PARAM, "aclprofDestroyStamp: %p is not a stamp, or no longer", stamp);
	else
		npuemu_slab_free(&stamps, stamp);
}

/* @n bytes at most, and no NUL among them. */
static aclError check_message(const char *what, const char *msg, size_t n)
{
	if (!msg)
		return npuacl_null(what, "msg");
	if (!n || n > MAX_TEXT)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the message has %zu bytes; 1 to %u are possible", what,
				   n, MAX_TEXT);
	if (strnlen(msg, n) != n)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: the message ends before the %zu bytes that its length says",
				   what, n);
	return ACL_SUCCESS;
}

aclError aclprofSetStampTraceMessage(void *stamp, const char *msg, uint32_t msgLen)
{
	static const char what[] = "aclprofSetStampTraceMessage";
	struct stamp *s;
	aclError ret = find_stamp(what, stamp, &s);

	if (!ret)
		ret = check_message(what, msg, msgLen);
	if (!ret)
		WRITE_ONCE(s->text, npuemu_trace_text(msg, msgLen));
	return ret;
}

/* ---- Marks ------------------------------------------------------------------------------ */

aclError aclprofMark(void *stamp)
{
	struct stamp *s;
	aclError ret = find_stamp("aclprofMark", stamp, &s);

	if (!ret)
		note(NPUEMU_TR_MARK, (u64)npuemu_now_ns(), READ_ONCE(s->text), NPUEMU_TRACE_HOST, 0);
	return ret;
}

static void on_stream(struct npuacl_stream *s, u32 event, u32 number)
{
	struct npuemu_trace_record r = {
		.ns = (u64)npuemu_now_ns(), .event = event, .queue = number, .index = s->id, .device = s->dev->phys,
	};

	npuemu_trace_put(&r);
}

static void mark_there(struct npuacl_stream *s, u32 task, void *arg)
{
	(void)task;
	if (READ_ONCE(npuemu_trace_marks) & NPUEMU_TRACE_MARKS)
		on_stream(s, NPUEMU_TR_MARK, (u32)(uintptr_t)arg);
}

aclError aclprofMarkEx(const char *msg, size_t msgLen, aclrtStream stream)
{
	static const char what[] = "aclprofMarkEx";
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct npuacl_stream *s;
	aclError ret = check_message(what, msg, msgLen);
	u32 text;

	if (!ret)
		ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = npuacl_prof_on(what);
	if (ret || !(READ_ONCE(npuemu_trace_marks) & NPUEMU_TRACE_MARKS))
		return ret;
	text = npuemu_trace_text(msg, msgLen);
	note(NPUEMU_TR_MARK, (u64)npuemu_now_ns(), text, NPUEMU_TRACE_HOST, 0);
	t.own.fn = mark_there;
	t.own.arg = (void *)(uintptr_t)text;
	return npuacl_submit(s, &t, NULL);
}

/* ---- Ranges of a thread -------------------------------------------------------------------- */

static struct nest *nest_of(enum npuemu_trace_range kind)
{
	struct nest *n = &nests[kind == NPUEMU_TG_OPERATOR];
	const u32 turn = npuacl_prof_turn();

	if (n->turn != turn)
		n->depth = 0;	/* those are of a profiling that is over */
	n->turn = turn;
	return n;
}

static aclError push(const char *what, enum npuemu_trace_range kind, u32 text)
{
	struct nest *n = nest_of(kind);
	struct range *r;

	if (n->depth == MAX_DEPTH)
		return npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: %u ranges of this thread are open, the most there can be",
				   what, MAX_DEPTH);
	r = &n->range[n->depth];
	r->id = n->depth++;
	r->text = text;
	r->ns = (u64)npuemu_now_ns();
	return ACL_SUCCESS;
}

static aclError pop(const char *what, enum npuemu_trace_range kind)
{
	aclError ret = npuacl_prof_on(what);
	struct nest *n;

	if (ret)
		return ret;
	n = nest_of(kind);
	if (!n->depth)
		return npuacl_fail(ACL_ERROR_PROFILING_FAILURE, "%s: no range of this thread is open", what);
	note_range(&n->range[--n->depth], kind);
	return ACL_SUCCESS;
}

aclError aclprofPush(void *stamp)
{
	struct stamp *s;
	aclError ret = find_stamp("aclprofPush", stamp, &s);

	return ret ? ret : push("aclprofPush", NPUEMU_TG_THREAD, READ_ONCE(s->text));
}

aclError aclprofPop(void)
{
	return pop("aclprofPop", NPUEMU_TG_THREAD);
}

static aclError check_attributes(const char *what, const aclprofEventAttributes *a)
{
	if (!a)
		return npuacl_null(what, "attr");
	if (a->version != ACL_PROF_EVENT_ATTR_VERSION || a->size != sizeof(*a))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: version %u with %u bytes; it is %u with %zu", what,
				   a->version, a->size, ACL_PROF_EVENT_ATTR_VERSION, sizeof(*a));
	if (a->messageType != ACL_PROF_MESSAGE_TYPE_TENSOR_INFO)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: messageType %u is none", what, a->messageType);
	if (!a->message.tensorInfo)
		return npuacl_null(what, "message.tensorInfo");
	return ACL_SUCCESS;
}

aclError aclprofRangePushEx(aclprofEventAttributes *attr)
{
	static const char what[] = "aclprofRangePushEx";
	aclError ret = check_attributes(what, attr);

	if (!ret)
		ret = npuacl_prof_on(what);
	return ret ? ret : push(what, NPUEMU_TG_OPERATOR, (u32)attr->message.tensorInfo->opNameId);
}

aclError aclprofRangePop(void)
{
	return pop("aclprofRangePop", NPUEMU_TG_OPERATOR);
}

uint64_t aclprofStr2Id(const char *message)
{
	static const char what[] = "aclprofStr2Id";
	size_t n = message ? strnlen(message, NPUEMU_TRACE_TEXT_MAX + 1) : 0;
	u32 id = 0;

	if (!message)
		npuacl_null(what, "message");
	else if (!n || n > NPUEMU_TRACE_TEXT_MAX)
		npuacl_fail_say(ACL_ERROR_INVALID_PARAM, "%s: texts of 1 to %u bytes are possible", what,
				NPUEMU_TRACE_TEXT_MAX);
	else
		id = npuemu_trace_text(message, n);
	if (n && n <= NPUEMU_TRACE_TEXT_MAX && !id)
		npuacl_fail_say(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: there is no room for more texts", what);
	return id;
}

/* ---- Ranges of the process --------------------------------------------------------------------- */

/* ranges.lock held */
static void forget_old(u32 turn)
{
	struct range *r;

	while (ranges.turn != turn && (r = ranges.open)) {
		ranges.open = r->next;
		free(r);
	}
	if (ranges.turn != turn)
		ranges.n = 0;
	ranges.turn = turn;
}

aclError aclprofRangeStart(void *stamp, uint32_t *rangeId)
{
	static const char what[] = "aclprofRangeStart";
	struct stamp *s;
	struct range *r;
	aclError ret = find_stamp(what, stamp, &s);

	if (!ret && !rangeId)
		ret = npuacl_null(what, "rangeId");
	if (ret)
		return ret;
	r = malloc(sizeof(*r));
	if (!r)
		return npuacl_fail(ACL_ERROR_BAD_ALLOC, "%s: out of host memory", what);
	r->text = READ_ONCE(s->text);
	r->ns = (u64)npuemu_now_ns();
	pthread_mutex_lock(&ranges.lock);
	forget_old(npuacl_prof_turn());
	if (ranges.n == MAX_RANGES) {
		ret = npuacl_fail(ACL_ERROR_STORAGE_OVER_LIMIT, "%s: %u ranges are open, the most there can be", what,
				  MAX_RANGES);
	} else {
		ranges.n++;
		r->id = ++ranges.last;
		*rangeId = r->id;
		r->next = ranges.open;
		ranges.open = r;
	}
	pthread_mutex_unlock(&ranges.lock);
	if (ret)
		free(r);
	return ret;
}

aclError aclprofRangeStop(uint32_t rangeId)
{
	static const char what[] = "aclprofRangeStop";
	aclError ret = npuacl_prof_on(what);
	struct range **at, *r;

	if (ret)
		return ret;
	pthread_mutex_lock(&ranges.lock);
	forget_old(npuacl_prof_turn());
	for (at = &ranges.open; *at && (*at)->id != rangeId; at = &(*at)->next)
		;
	r = *at;
	if (r) {
		*at = r->next;
		ranges.n--;
	}
	pthread_mutex_unlock(&ranges.lock);
	if (!r)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: no range %u is open", what, rangeId);
	note_range(r, NPUEMU_TG_PROCESS);
	free(r);
	return ACL_SUCCESS;
}

/* ---- Steps ------------------------------------------------------------------------------------------ */

aclprofStepInfo *aclprofCreateStepInfo(void)
{
	struct aclprofStepInfo *s = npuemu_slab_alloc(&steps);

	if (!s) {
		npuacl_fail_say(ACL_ERROR_STORAGE_OVER_LIMIT,
				"aclprofCreateStepInfo: there are %u steps, the most there can be", MAX_STAMPS);
		return NULL;
	}
	s->id = npuemu_fetch_add(&next_step, 1) + 1;
	npuemu_slab_publish(&steps, s);
	return s;
}

void aclprofDestroyStepInfo(aclprofStepInfo *stepInfo)
{
	if (!stepInfo)
		npuacl_null("aclprofDestroyStepInfo", "stepInfo");
	else if (!npuemu_slab_retire(&steps, stepInfo))
		npuacl_fail_say(ACL_ERROR_INVALID_PARAM, "aclprofDestroyStepInfo: %p is not a step, or no longer",
				(void *)stepInfo);
	else
		npuemu_slab_free(&steps, stepInfo);
}

static void step_there(struct npuacl_stream *s, u32 task, void *arg)
{
	const u64 v = (uintptr_t)arg;

	(void)task;
	if (READ_ONCE(npuemu_trace_marks) & NPUEMU_TRACE_STEPS)
		on_stream(s, NPUEMU_TR_STEP | (u32)(v & 1) << 8, (u32)(v >> 1));
}

aclError aclprofGetStepTimestamp(aclprofStepInfo *stepInfo, aclprofStepTag tag, aclrtStream stream)
{
	static const char what[] = "aclprofGetStepTimestamp";
	struct npuacl_task t = { .kind = NPUACL_CALL };
	struct npuacl_stream *s;
	aclError ret;

	if (!stepInfo)
		return npuacl_null(what, "stepInfo");
	if (!npuemu_slab_alive(&steps, stepInfo))
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %p is not a step, or no longer", what,
				   (void *)stepInfo);
	if ((u32)tag > ACL_STEP_END)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %d is none of aclprofStepTag", what, (int)tag);
	ret = npuacl_stream(stream, &s);
	if (!ret)
		ret = npuacl_prof_on(what);
	if (ret || !(READ_ONCE(npuemu_trace_marks) & NPUEMU_TRACE_STEPS))
		return ret;
	t.own.fn = step_there;
	t.own.arg = (void *)(uintptr_t)((u64)stepInfo->id << 1 | tag);
	return npuacl_submit(s, &t, NULL);
}
