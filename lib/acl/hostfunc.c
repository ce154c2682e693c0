// SPDX-License-Identifier: MIT
/*
 * Functions of the program's, called in order with a stream's tasks.
 *
 * aclrtLaunchHostFunc: in a thread of ours, which any number of streams share.
 * aclrtLaunchCallback: in the program's own thread, which was named with
 * aclrtSubscribeReport and comes for work with aclrtProcessReport.  The stream
 * waits for the end of the function; with ACL_CALLBACK_NO_BLOCK only until it
 * was handed over.
 */
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>
#include "check.h"

struct job {
	struct job *next;
	struct npuacl_stream *stream;	/* to be woken; NULL: does not wait */
	void (*fn)(void *arg);
	void *arg;
	u64 thread;			/* who runs it; 0: ours */
};

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;		/* work, or an end of one */
	struct job *first;
	struct job *running;		/* by our thread */
	bool started;
	bool stop;
	pthread_t thread;
} func = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

/* ---- Jobs --------------------------------------------------------------------------- */

/* func.lock held */
static struct job *take(u64 thread)
{
	struct job **at, *j;

	for (at = &func.first; (j = *at); at = &j->next)
		if (j->thread == thread) {
			*at = j->next;
			return j;
		}
	return NULL;
}

static void append(struct job *j)
{
	struct job **at = &func.first;

	while (*at)
		at = &(*at)->next;
	*at = j;
}

/* func.lock held on entry and exit, not while it runs */
static void run(struct job *j)
{
	struct npuacl_stream *s;

	pthread_mutex_unlock(&func.lock);
	NPUACL_CHECK(npuacl_check_function(true));
	j->fn(j->arg);
	NPUACL_CHECK(npuacl_check_function(false));
	pthread_mutex_lock(&func.lock);
	s = j->stream;
	if (s) {
		smp_store_release(&s->func, NPUACL_FUNC_DONE);
		npuacl_wake_parked(s);
	}
}

static void *func_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&func.lock);
	while (!func.stop) {
		struct job *j = take(0);

		if (!j) {
			pthread_cond_wait(&func.more, &func.lock);
			continue;
		}
		func.running = j;
		run(j);
		func.running = NULL;
		free(j);
		pthread_cond_broadcast(&func.more);
	}
	pthread_mutex_unlock(&func.lock);
	return NULL;
}

/* func.lock held */
static void start(void)
{
	sigset_t all, old;

	if (func.started)
		return;
	sigfillset(&all);
	/* a fault in a function of the program's is for the program, and check_fault.c */
	sigdelset(&all, SIGSEGV);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	func.started = !pthread_create(&func.thread, NULL, func_main, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void npuacl_func_give(struct npuacl_stream *s, struct npuacl_task *t)
{
	bool block = !(t->flags & NPUACL_NO_BLOCK);
	struct job *j = malloc(sizeof(*j));

	if (!j) {
		npuacl_stream_error(s, t->id, ACL_ERROR_BAD_ALLOC, "task %u: out of host memory", t->id);
		smp_store_release(&s->func, NPUACL_FUNC_DONE);
		npuacl_wake_parked(s);
		return;
	}
	*j = (struct job){
		.stream = block ? s : NULL, .fn = t->call.fn, .arg = t->call.arg,
		.thread = t->call.thread,
	};
	pthread_mutex_lock(&func.lock);
	append(j);
	if (!j->thread)
		start();
	pthread_cond_broadcast(&func.more);
	pthread_mutex_unlock(&func.lock);
	if (!block) {
		smp_store_release(&s->func, NPUACL_FUNC_DONE);
		npuacl_wake_parked(s);
	}
}

/* The stream is no longer told; a function that runs is waited for, as it may use what goes next. */
void npuacl_func_cancel(struct npuacl_stream *s)
{
	struct job **at, *j;

	pthread_mutex_lock(&func.lock);
	for (at = &func.first; (j = *at);) {
		if (j->stream != s) {
			at = &j->next;
			continue;
		}
		*at = j->next;
		free(j);
	}
	while (func.running && func.running->stream == s && READ_ONCE(s->func) != NPUACL_FUNC_DONE)
		pthread_cond_wait(&func.more, &func.lock);
	pthread_mutex_unlock(&func.lock);
}

void npuacl_func_fork(void)
{
	memset(&func, 0, sizeof(func));
	pthread_mutex_init(&func.lock, NULL);
	pthread_cond_init(&func.more, NULL);
}

void npuacl_func_stop(void)
{
	bool started;

	pthread_mutex_lock(&func.lock);
	started = func.started;
	func.stop = true;
	pthread_cond_broadcast(&func.more);
	pthread_mutex_unlock(&func.lock);
	if (started)
		pthread_join(func.thread, NULL);
	func.started = false;
	func.stop = false;
}

/* ---- What programs call ----------------------------------------------------------------- */

static aclError launch(struct npuacl_stream *s, void (*fn)(void *), void *arg, u64 thread, u16 flags)
{
	struct npuacl_task t = {
		.kind = NPUACL_HOST_FUNC, .flags = flags, .call = { .fn = fn, .arg = arg, .thread = thread },
	};

	return npuacl_submit(s, &t, NULL);
}

aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!fn)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchHostFunc: fn is NULL");
	ret = npuacl_stream(stream, &s);
	return ret ? ret : launch(s, fn, args, 0, 0);
}

static aclError subscribe(u64 thread, aclrtStream stream, const char *what)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	if (!thread)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: thread 0", what);
	pthread_mutex_lock(&s->lock);
	if (s->report_thread && s->report_thread != thread)
		ret = ACL_ERROR_RT_STREAM_SUBSCRIBE;
	else if (s->report_thread)
		ret = ACL_ERROR_RT_THREAD_SUBSCRIBE;
	else
		s->report_thread = thread;
	pthread_mutex_unlock(&s->lock);
	return ret ? npuacl_fail(ret, "%s: stream %u has a thread for its callbacks already", what, s->id) : ret;
}

static aclError unsubscribe(u64 thread, aclrtStream stream, const char *what)
{
	struct npuacl_stream *s;
	aclError ret = npuacl_stream(stream, &s);

	if (ret)
		return ret;
	pthread_mutex_lock(&s->lock);
	if (!s->report_thread)
		ret = ACL_ERROR_RT_STREAM_NO_CB_REG;
	else if (s->report_thread != thread)
		ret = ACL_ERROR_RT_THREAD_SUBSCRIBE;
	else
		s->report_thread = 0;
	pthread_mutex_unlock(&s->lock);
	return ret ? npuacl_fail(ret, "%s: thread %" PRIu64 " is not the one of stream %u", what, thread, s->id) :
		     ret;
}

/* One function, or a timeout.  The thread is known by its pthread_self(), as programs give it. */
static aclError process(s32 timeout, aclError expired, const char *what)
{
	u64 me = (u64)pthread_self();
	struct timespec until;
	struct job *j;
	int err = 0;

	if (timeout < -1)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "%s: %d ms; -1 means for ever", what, timeout);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += timeout / 1000;
	until.tv_nsec += (long)(timeout % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&func.lock);
	while (!(j = take(me)) && err != ETIMEDOUT)
		err = timeout == -1 ? pthread_cond_wait(&func.more, &func.lock) :
				      pthread_cond_timedwait(&func.more, &func.lock, &until);
	if (j)
		run(j);
	pthread_mutex_unlock(&func.lock);
	if (j) {
		free(j);
		return ACL_SUCCESS;
	}
	return npuacl_fail(expired, "%s: no function came for this thread in %d ms", what, timeout);
}

aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	return subscribe(threadId, stream, "aclrtSubscribeReport");
}

aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
{
	return unsubscribe(threadId, stream, "aclrtUnSubscribeReport");
}

aclError aclrtProcessReport(int32_t timeout)
{
	return process(timeout, ACL_ERROR_WAIT_CALLBACK_TIMEOUT, "aclrtProcessReport");
}

aclError aclrtSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
	return subscribe(hostFuncThreadId, exeStream, "aclrtSubscribeHostFunc");
}

aclError aclrtUnSubscribeHostFunc(uint64_t hostFuncThreadId, aclrtStream exeStream)
{
	return unsubscribe(hostFuncThreadId, exeStream, "aclrtUnSubscribeHostFunc");
}

aclError aclrtProcessHostFunc(int32_t timeout)
{
	return process(timeout, ACL_ERROR_RT_REPORT_TIMEOUT, "aclrtProcessHostFunc");
}

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType,
			     aclrtStream stream)
{
	struct npuacl_stream *s;
	aclError ret;

	if (!fn)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: fn is NULL");
	if (blockType != ACL_CALLBACK_NO_BLOCK && blockType != ACL_CALLBACK_BLOCK)
		return npuacl_fail(ACL_ERROR_INVALID_PARAM, "aclrtLaunchCallback: blockType %d", (int)blockType);
	ret = npuacl_stream(stream, &s);
	if (ret)
		return ret;
	if (!s->report_thread)
		return npuacl_fail(ACL_ERROR_RT_STREAM_NO_CB_REG,
				   "aclrtLaunchCallback: stream %u has no thread for it: aclrtSubscribeReport comes first", s->id);
	return launch(s, fn, userData, s->report_thread, blockType == ACL_CALLBACK_NO_BLOCK ? NPUACL_NO_BLOCK : 0);
}
