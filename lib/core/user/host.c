// SPDX-License-Identifier: MIT
/* The user-space host as a whole: opening, closing, fork, its two tables. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "user.h"

static u64 now_ns(void)
{
	return (u64)npuemu_now_ns();
}

static void *zalloc(size_t bytes)
{
	return calloc(1, bytes);
}

static bool reducer_alive(struct npuemu_chip *chip, u64 who)
{
	struct user *u = chip->host;
	u32 slot = (u32)(who & 0xff);

	return READ_ONCE(slot_head(u, slot)->life) >> 8 == who >> 8 &&
	       slot_alive(u, slot, READ_ONCE(slot_head(u, slot)->life));
}

void user_explain(struct npuemu_jfs *q, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* the first cause stays: what follows is its consequence */
	if (q->cause && !q->cause[0])
		snprintf(q->cause, NPUEMU_CAUSE_BYTES, "%.*s", NPUEMU_CAUSE_BYTES - 1, text);
	npuemu_log(NPUEMU_LOG_INFO, "queue %u (device %u): %s", q->id, q->device, text);
}

static void trace(struct npuemu_jfs *q, u32 event, u32 index, u64 arg)
{
	npuemu_trace_add(q->id, event, index, q->device, arg);
}

/* All of a device's memory is one arena here. */
static const struct npuemu_arena *seg_arena(struct npuemu_chip *chip,
					    const struct npuemu_peer *peer,
					    const struct npuemu_seg_rec *rec)
{
	return peer_arena(chip, peer, rec->device);
}

const struct npuemu_host_ops npuemu_user_ops = {
	.local = place_local,
	.peer = peer_find,
	.arena = seg_arena,
	.back = arena_back,
	.wake = bell_wake_share,
	.wake_cq = bell_wake_cq,
	.alive = reducer_alive,
	.send = inbox_send,
	.send_cancel = inbox_send_cancel,
	.faults = faults_read,
	.now = now_ns,
	.trace = trace,
	.zalloc = zalloc,
	.free = free,
	.explain = user_explain,
};

/* ---- Opening and closing ------------------------------------------------------ */

static struct user *open_boards[16];
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;

/* Kept open in a child, they would keep a dead parent's memory, and its socket. */
static void close_inherited(struct user *u)
{
	const int fds[] = { u->board_fd, u->db_fd, u->uffd, u->listen_fd, u->wake_fd, u->maps_fd };
	u32 i;

	for (i = 0; i < ARRAY_SIZE(fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	for (i = 0; i < NPUEMU_MAX_DEVICES; i++)
		if (u->arena[i] && u->arena[i]->fd >= 0)
			close(u->arena[i]->fd);
}

/* The child of a fork has no engine: its handles are dead, its rings not there. */
static void after_fork(void)
{
	u32 i, q;

	for (i = 0; i < ARRAY_SIZE(open_boards); i++) {
		struct user *u = open_boards[i];

		if (!u)
			continue;
		u->base.broken = -EPERM;
		close_inherited(u);
		for (q = 0; q < SLOT_QUEUES; q++)
			if (u->queues[q])
				u->queues[q]->view.depth = u->queues[q]->view.pi - u->queues[q]->view.ci;
		open_boards[i] = NULL;
	}
	pthread_mutex_init(&open_lock, NULL);
	npuemu_core_fork();
	npuemu_trace_fork();
}

static void once(void)
{
	static int done;

	npuemu_log_init();
	if (!__atomic_exchange_n(&done, 1, __ATOMIC_ACQ_REL))
		pthread_atfork(NULL, NULL, after_fork);
}

static void settings(struct user *u)
{
	u->chip.chaos_seed = (u64)npuemu_env_number("NPUEMU_CHAOS", 0);
	u->async = npuemu_env_number("NPUEMU_ASYNC", 0) || u->chip.chaos_seed;
	u->poll_ns = npuemu_env_number("NPUEMU_POLL_US", 50) * 1000;
	u->hang_report_ns = npuemu_env_number("NPUEMU_HANG_REPORT", 10) * 1000000000;
}

static void teardown(struct user *u)
{
	WRITE_ONCE(u->stop, 1);
	service_stop(u);
	worker_stop(u);
	peers_destroy(u);
	arenas_destroy(u);
	free(u->regions);
	doorbell_exit(u);
	rings_exit(u);
	if (u->slot)
		board_leave(u);
	board_unmap(u);
	if (u->maps_fd >= 0)
		close(u->maps_fd);
	free(u->touched_pages);
	free(u->bufs);
	free(u->inbox.many);
	pthread_mutex_destroy(&u->lock);
	pthread_mutex_destroy(&u->peers_lock);
	free(u);
}

static int join(struct user *u)
{
	int err = board_claim(u);

	if (err)
		return err;
	board_reap(u);	/* what a crashed run left is not in our way */
	u->touched_pages = calloc(1, SLOT_STRIDE / PAGE);
	u->bufs = calloc(SLOT_BUFS, sizeof(*u->bufs));
	if (!u->touched_pages || !u->bufs)
		return npuemu_fail(-ENOMEM, "out of memory");
	if (board_back(u, u->slot_index, OFF_QUEUES, sizeof(struct slot_queue)) ||
	    board_back(u, u->slot_index, OFF_LINKS,
		       sizeof(struct npuemu_link_counters) * NPUEMU_MAX_DEVICES * NPUEMU_MAX_DEVICES))
		return -ENOSPC;
	u->chip.links = (void *)(slot_at(u, u->slot_index) + OFF_LINKS);
	u->chip.slot = u->slot_index;
	u->chip.me = (u->life & ~0xffull) | u->slot_index;
	settings(u);
	err = rings_init(u);
	if (!err)
		err = doorbell_init(u);
	if (err)
		return err;
	inbox_init(u);
	err = worker_start(u);
	return err ? err : service_start(u);
}

static int user_open(const struct npuemu_open_attr *attr, struct npuemu **out)
{
	struct user *u = calloc(1, sizeof(*u)), *other = NULL;
	u32 i, slot = ~0u;
	int err;

	once();
	if (!u)
		return npuemu_fail(-ENOMEM, "out of memory");
	u->board_fd = -1;
	u->db_fd = -1;
	u->uffd = -1;
	u->listen_fd = -1;
	u->wake_fd = -1;
	u->maps_fd = -1;
	pthread_mutex_init(&u->lock, NULL);
	pthread_mutex_init(&u->peers_lock, NULL);
	u->base.host = &npuemu_user_host;
	u->base.pid = getpid();
	u->base.refs = 1;
	u->base.observer = attr->flags & NPUEMU_OPEN_OBSERVE;
	u->chip.ops = &npuemu_user_ops;
	u->chip.host = u;
	pthread_mutex_lock(&open_lock);
	err = board_open(u, attr);
	for (i = 0; i < ARRAY_SIZE(open_boards) && !err && !u->base.observer; i++) {
		if (!open_boards[i])
			slot = slot == ~0u ? i : slot;
		else if (open_boards[i]->head->board_id == u->head->board_id &&
			 !strcmp(open_boards[i]->path, u->path) && !READ_ONCE(open_boards[i]->base.broken))
			other = open_boards[i];
	}
	if (!err && !u->base.observer && !other && slot == ~0u)
		err = npuemu_fail(-EMFILE, "this process has %u boards open, the most it can",
				  (u32)ARRAY_SIZE(open_boards));
	if (!err && !other) {
		u->chip.machine = &u->machine;
		u->chip.fault_gen = &u->head->faults.gen;
		u->chip.board_id = u->head->board_id;
		u->chip.trace = npuemu_trace_init();
		snprintf(u->base.board, sizeof(u->base.board), "%s", u->name);
		snprintf(u->base.machine, sizeof(u->base.machine), "%.31s", u->machine.name);
		u->base.devices = u->machine.devices;
		if (!u->base.observer)
			err = join(u);
		if (!err && !u->base.observer)
			open_boards[slot] = u;
	}
	if (!err && other) {
		npuemu_fetch_add(&other->base.refs, 1);
		*out = &other->base;
	} else if (!err) {
		*out = &u->base;
	}
	if (err || other)
		teardown(u);
	pthread_mutex_unlock(&open_lock);
	return err;
}

/* What the caller left: queues first, then what they work on. */
static void destroy_leftovers(struct user *u)
{
	u32 i;

	for (i = 1; i < SLOT_QUEUES; i++)
		if (u->queues[i])
			npuemu_queue_destroy(u->queues[i]);
	for (i = 1; i < SLOT_QUEUES; i++)
		if (u->rqs[i])
			npuemu_rq_destroy(u->rqs[i]);
}

static int user_close(struct npuemu *ctx)
{
	struct user *u = user_of(ctx);
	u32 i;

	pthread_mutex_lock(&open_lock);
	if (npuemu_fetch_add(&ctx->refs, -1u) > 1) {
		pthread_mutex_unlock(&open_lock);
		return 0;
	}
	for (i = 0; i < ARRAY_SIZE(open_boards); i++)
		if (open_boards[i] == u)
			open_boards[i] = NULL;
	if (!ctx->observer) {
		destroy_leftovers(u);
		for (i = 0; i < u->segs_hi; i++)
			WRITE_ONCE(slot_segs(u, u->slot_index)[i].seq, 0);
		quiesce_all(u);
	}
	teardown(u);
	pthread_mutex_unlock(&open_lock);
	return 0;
}

static int user_reap(struct npuemu *ctx)
{
	return board_reap(user_of(ctx));
}

static void user_trace(struct npuemu *ctx, bool on)
{
	WRITE_ONCE(user_of(ctx)->chip.trace, on);
}

const struct npuemu_host npuemu_user_host = {
	.name = "user",
	.open = user_open,
	.close = user_close,
	.check = board_check,
	.query = user_query,
	.device_query = user_device_query,
	.buf_alloc = user_buf_alloc,
	.buf_free = user_buf_free,
	.buf_export = user_buf_export,
	.buf_import = user_buf_import,
	.buf_map = user_buf_map,
	.buf_unmap = user_buf_unmap,
	.buf_close = user_buf_close,
	.alias = user_alias,
	.exports_own = user_exports_own,
	.exports_of = user_exports_of,
	.mem_register = user_mem_register,
	.mem_unregister = user_mem_unregister,
	.mem_any = user_mem_any,
	.seg_register = user_seg_register,
	.seg_rotate = user_seg_rotate,
	.seg_unregister = user_seg_unregister,
	.cq_create = user_cq_create,
	.cq_destroy = user_cq_destroy,
	.rq_create = user_rq_create,
	.rq_destroy = user_rq_destroy,
	.rq_query = user_rq_query,
	.queue_create = user_queue_create,
	.queue_destroy = user_queue_destroy,
	.queue_modify = user_queue_modify,
	.queue_map = user_queue_map,
	.queue_query = user_queue_query,
	.doorbell = user_doorbell,
	.help = user_help,
	.unstarve = user_unstarve,
	.wait_cq = user_wait_cq,
	.wait_word = user_wait_word,
	.queue_by_id = user_queue_by_id,
	.link_query = user_link_query,
	.process_list = user_process_list,
	.queue_list = user_queue_list,
	.fault_inject = fault_inject,
	.fault_clear = fault_clear,
	.reap = user_reap,
	.trace = user_trace,
	.board_reset = board_reset,
};
