// SPDX-License-Identifier: MIT
/*
 * The board: making and joining it, claiming a slot, telling the dead from the
 * living, reaping, reset.
 *
 * A slot's life is one 64-bit word {state, generation, pid}, changed only by
 * compare-and-swap.  That its process lives is told by a robust mutex which
 * the process's engine thread holds; that mutex is set up once with the board
 * and never again, so trying it is always safe.
 */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>
#include "user.h"

static int board_name_ok(const char *name)
{
	size_t i, n = strlen(name);

	if (n < 1 || n > 48)
		return 0;
	for (i = 0; i < n; i++)
		if (!((name[i] >= 'a' && name[i] <= 'z') || (name[i] >= 'A' && name[i] <= 'Z') ||
		      (name[i] >= '0' && name[i] <= '9') || name[i] == '-' || name[i] == '_' ||
		      (name[i] == '.' && i)))
			return 0;
	return 1;
}

static int board_path(const char *name, char *path, size_t room)
{
	if (!name)
		name = npuemu_getenv("NPUEMU_BOARD");
	if (!name)
		name = "default";
	if (!board_name_ok(name))
		return npuemu_fail(-EINVAL, "board name \"%.60s\": use 1 to 48 letters, digits, '-', '_', '.'",
				   name);
	snprintf(path, room, "/dev/shm/npuemu-%u-%s", (unsigned int)geteuid(), name);
	return 0;
}

static u64 read_number(const char *path)
{
	char text[32];
	ssize_t n;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	return strtoull(text, NULL, 10);	/* "max" gives 0 */
}

/* What may be backed: 60 % of RAM or of the cgroup's limit, if smaller. */
static u64 physical_budget(void)
{
	static const char *const limits[] = {
		"/sys/fs/cgroup/memory.max",
		"/sys/fs/cgroup/memory/memory.limit_in_bytes",
	};
	const char *env = npuemu_getenv("NPUEMU_BUDGET_MB");
	struct sysinfo si;
	u64 ram, v;
	u32 i;

	if (env && strtoull(env, NULL, 10))
		return strtoull(env, NULL, 10) << 20;
	sysinfo(&si);
	ram = (u64)si.totalram * si.mem_unit;
	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		v = read_number(limits[i]);
		if (v && v < ram)
			ram = v;
	}
	return ram / 10 * 6;
}

static int init_mutexes(u8 *map)
{
	pthread_mutexattr_t a;
	u32 i;

	pthread_mutexattr_init(&a);
	pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		struct slot_head *s = (void *)(map + BOARD_HEAD + i * SLOT_STRIDE);

		pthread_mutex_init(&s->alive, &a);
	}
	pthread_mutexattr_destroy(&a);
	return 0;
}

/* A complete board without a name; nobody ever sees half a one. */
static int board_make(const char *path, const char *machine)
{
	struct npuemu_machine m;
	struct board_head *h;
	char proc[64];
	u8 *map;
	u32 i;
	int fd, err;

	err = npuemu_machine_load(machine, &m);
	if (err)
		return err;
	if (m.hbm_bytes > (u64)BACKED_WORDS * 64 << NPUEMU_CHUNK_SHIFT)
		return npuemu_fail(-EINVAL, "machine %s: more than 256 GiB of HBM a device", m.name);
	fd = open("/dev/shm", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return npuemu_fail(-errno, "cannot make a board in /dev/shm: %s", strerror(errno));
	err = ftruncate(fd, BOARD_BYTES) || posix_fallocate(fd, 0, BOARD_HEAD);
	for (i = 0; i < NPUEMU_MAX_SLOTS && !err; i++)
		err = posix_fallocate(fd, (off_t)(BOARD_HEAD + i * SLOT_STRIDE),
				      sizeof(struct slot_head));
	map = err ? MAP_FAILED : mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED) {
		close(fd);
		return npuemu_fail(-ENOSPC, "no room for a board in /dev/shm (about 2 MiB are needed)");
	}
	h = (void *)map;
	h->version = BOARD_VERSION;
	h->uid = geteuid();
	h->budget = physical_budget();
	h->machine = m;
	if (getrandom(&h->board_id, sizeof(h->board_id), 0) != sizeof(h->board_id))
		h->board_id = (u32)getpid();
	init_mutexes(map);
	h->magic = BOARD_MAGIC;
	munmap(map, BOARD_BYTES);
	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	if (linkat(AT_FDCWD, proc, AT_FDCWD, path, AT_SYMLINK_FOLLOW) && errno != EEXIST)
		err = npuemu_fail(-errno, "cannot name the board %s: %s", path, strerror(errno));
	else
		err = 0;
	close(fd);
	return err;
}

static int board_map_file(struct user *u, int fd)
{
	struct stat st;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_mode & 077)
		return npuemu_fail(-EACCES, "%s is not a board of this user only: remove it", u->path);
	if (st.st_size != (off_t)BOARD_BYTES)
		return npuemu_fail(-EUCLEAN, "board %s has a wrong size: it is damaged or of another version; npuemu-ctl reset --board %s removes it",
				   u->path, u->name);
	u->map = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (u->map == MAP_FAILED) {
		u->map = NULL;
		return npuemu_fail(-ENOMEM, "cannot map board %s: %s", u->path, strerror(errno));
	}
	madvise(u->map, BOARD_BYTES, MADV_DONTFORK);
	u->head = (void *)u->map;
	if (READ_ONCE(u->head->magic) == BOARD_MAGIC && u->head->version != BOARD_VERSION)
		return npuemu_fail(-EUCLEAN, "board %s was made by another version of npuemu (layout %u, this one has %u): npuemu-ctl reset --board %s removes it",
				   u->path, u->head->version, BOARD_VERSION, u->name);
	if (READ_ONCE(u->head->magic) != BOARD_MAGIC || u->head->uid != geteuid() || u->head->machine.devices == 0 ||
	    u->head->machine.devices > NPUEMU_MAX_DEVICES ||
	    u->head->machine.links > NPUEMU_MAX_LINKS ||
	    u->head->machine.devices_per_server == 0 || u->head->machine.devices_per_module == 0 ||
	    u->head->machine.hbm_bytes > (u64)BACKED_WORDS * 64 << NPUEMU_CHUNK_SHIFT)
		return npuemu_fail(-EUCLEAN, "board %s is damaged: npuemu-ctl reset --board %s removes it",
				   u->path, u->name);
	u->machine = u->head->machine;
	u->budget = u->head->budget;
	if (u->machine.link_self >= NPUEMU_MAX_LINKS || u->machine.link_module >= NPUEMU_MAX_LINKS ||
	    u->machine.link_server >= NPUEMU_MAX_LINKS || u->machine.link_net >= NPUEMU_MAX_LINKS ||
	    !memchr(u->machine.name, 0, sizeof(u->machine.name)) ||
	    !memchr(u->machine.soc, 0, sizeof(u->machine.soc)))
		return npuemu_fail(-EUCLEAN, "board %s is damaged: npuemu-ctl reset --board %s removes it",
				   u->path, u->name);
	return 0;
}

int board_open(struct user *u, const struct npuemu_open_attr *attr)
{
	const char *machine = attr->machine ? attr->machine : npuemu_getenv("NPUEMU_MACHINE");
	const char *wanted = machine ? machine : "950";
	int err, fd, tries;

	err = board_path(attr->board, u->path, sizeof(u->path));
	if (err)
		return err;
	snprintf(u->name, sizeof(u->name), "%s", strchr(u->path + 16, '-') + 1);
	for (tries = 0; tries < 3; tries++) {
		fd = open(u->path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0)
			break;
		if (errno != ENOENT)
			return npuemu_fail(errno == ELOOP ? -EACCES : -errno,
					   "cannot open board %s: %s", u->path, strerror(errno));
		if (attr->flags & NPUEMU_OPEN_EXISTING)
			return npuemu_fail(-ENOENT, "there is no board \"%s\": no process of this user uses one",
					   u->name);
		err = board_make(u->path, wanted);
		if (err)
			return err;
	}
	if (fd < 0)
		return npuemu_fail(-EAGAIN, "board %s appears and disappears", u->path);
	u->board_fd = fd;
	err = board_map_file(u, fd);
	if (err)
		return err;
	if (READ_ONCE(u->head->dead))
		return npuemu_fail(-EUCLEAN, "board \"%s\" is being reset: try again", u->name);
	if (machine && !(attr->flags & NPUEMU_OPEN_OBSERVE)) {
		struct npuemu_machine m;

		err = npuemu_machine_load(wanted, &m);
		if (err)
			return err;
		if (memcmp(&m, &u->head->machine, sizeof(m)))
			return npuemu_fail(-EBUSY, "board \"%s\" is a %s; for a %s use another NPUEMU_BOARD, or npuemu-ctl reset",
					   u->name, u->head->machine.name, m.name);
	}
	return 0;
}

void board_unmap(struct user *u)
{
	if (u->map)
		munmap(u->map, BOARD_BYTES);
	u->map = NULL;
	if (u->board_fd >= 0)
		close(u->board_fd);
	u->board_fd = -1;
}

int board_back(struct user *u, u32 slot, u64 off, u64 len)
{
	u64 first = off / PAGE, last = (off + len - 1) / PAGE, p;
	int err;

	for (p = first; p <= last; p++) {
		if (slot == u->slot_index && READ_ONCE(u->touched_pages[p]))
			continue;
		do {
			err = posix_fallocate(u->board_fd, (off_t)(BOARD_HEAD + slot * SLOT_STRIDE +
								   p * PAGE), PAGE);
		} while (err == EINTR);
		if (err)
			return npuemu_fail(-ENOSPC, "/dev/shm is full: the board needs a few more pages");
		if (slot == u->slot_index)
			WRITE_ONCE(u->touched_pages[p], 1);
	}
	return 0;
}

u64 process_start_time(u32 pid)
{
	char path[32], text[1024], *p;
	ssize_t n;
	int fd, i;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	p = strrchr(text, ')');	/* the name may hold anything */
	for (i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	return p ? strtoull(p + 1, NULL, 10) : 0;
}

static void slot_name(struct slot_head *s)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, s->comm, sizeof(s->comm) - 1) : 0;

	if (fd >= 0)
		close(fd);
	n = n > 0 ? n : 1;
	s->comm[n - 1] = '\0';
}

int board_claim(struct user *u)
{
	u32 i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
			struct slot_head *s = slot_head(u, i);
			u64 l = READ_ONCE(s->life);
			/* 16 bits of the generation go into endpoint ids: never 0 */
			u32 gen = (LIFE_GEN(l) + 1) & 0xffff ? LIFE_GEN(l) + 1 : 1;

			if (LIFE_STATE(l) != SLOT_FREE ||
			    !npuemu_cas(&s->life, l, LIFE(SLOT_CLAIMED, gen, getpid())))
				continue;
			u->slot_index = i;
			u->slot = s;
			u->life = LIFE(SLOT_LIVE, gen, getpid());
			s->start_time = process_start_time((u32)getpid());
			if (getrandom(s->secret, sizeof(s->secret), 0) != sizeof(s->secret))
				s->secret[0] = (u64)npuemu_now_ns();
			slot_name(s);
			return 0;
		}
		board_reap(u);
	}
	return npuemu_fail(-ENOSPC, "all %u process slots of board \"%s\" are taken", NPUEMU_MAX_SLOTS,
			   u->name);
}

/* Empty a slot that nobody uses any more; the caller owns it (REAPING). */
static void slot_empty(struct user *u, u32 slot, u64 life)
{
	struct slot_head *s = slot_head(u, slot);
	u32 i;

	fallocate(u->board_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)(BOARD_HEAD + slot * SLOT_STRIDE + OFF_BUFS),
		  (off_t)(SLOT_STRIDE - OFF_BUFS));
	memset(s->arena, 0, sizeof(s->arena));
	memset(s->sleeper, 0, sizeof(s->sleeper));
	for (i = 0; i < ARRAY_SIZE(s->inbox); i++)
		WRITE_ONCE(s->inbox[i], 0);
	/* others may be looking at it: they check the life word afterwards */
	WRITE_ONCE(s->engine_turns, 0);
	WRITE_ONCE(s->engine_parks, 0);
	WRITE_ONCE(s->engine_sleeps, 0);
	WRITE_ONCE(s->doorbell_faults, 0);
	WRITE_ONCE(s->queues_hi, 0);
	WRITE_ONCE(s->bufs_hi, 0);
	WRITE_ONCE(s->segs_hi, 0);
	WRITE_ONCE(s->imports_hi, 0);
	WRITE_ONCE(s->exports_hi, 0);
	WRITE_ONCE(s->esleep, 0);
	WRITE_ONCE(s->sleepers, 0);
	npuemu_cas(&s->life, life, LIFE(SLOT_FREE, LIFE_GEN(life), 0));
}

/* Ordered leaving: the engine thread has ended and let go of the mutex. */
void board_leave(struct user *u)
{
	u64 mine = LIFE(SLOT_REAPING, LIFE_GEN(u->life), getpid());

	if (npuemu_cas(&u->slot->life, u->life, mine) ||
	    npuemu_cas(&u->slot->life, LIFE(SLOT_CLAIMED, LIFE_GEN(u->life), getpid()), mine)) {
		slot_empty(u, u->slot_index, mine);
		board_ring_all(u);
	}
}

/* The mutex of a LIVE slot: true if its holder is gone (and we let it go again). */
static bool holder_gone(struct slot_head *s)
{
	int r = pthread_mutex_trylock(&s->alive);

	if (r == EBUSY)
		return false;
	if (r == EOWNERDEAD)
		pthread_mutex_consistent(&s->alive);
	else if (r)
		return false;
	pthread_mutex_unlock(&s->alive);
	return true;
}

static bool pid_gone(u32 pid)
{
	return kill((pid_t)pid, 0) && errno == ESRCH;
}

/* One slot: reap it if it is dead.  Whoever wins the swap does the work. */
static bool reap_one(struct user *u, u32 i)
{
	struct slot_head *s = slot_head(u, i);
	u64 l = READ_ONCE(s->life), mine;

	switch (LIFE_STATE(l)) {
	case SLOT_LIVE:
		if (l == u->life || !holder_gone(s))
			return false;
		break;
	case SLOT_CLAIMED:
	case SLOT_REAPING:
		/* between two words of its own; a reused pid only delays this */
		if (LIFE_PID(l) == (u32)getpid() || !pid_gone(LIFE_PID(l)))
			return false;
		break;
	default:
		return false;
	}
	mine = LIFE(SLOT_REAPING, LIFE_GEN(l), getpid());
	if (!npuemu_cas(&s->life, l, mine))
		return false;
	npuemu_log(NPUEMU_LOG_INFO, "process %u (%.15s) has died: its slot %u is freed", LIFE_PID(l),
		   s->comm, i);
	slot_empty(u, i, mine);
	return true;
}

bool slot_alive(struct user *u, u32 slot, u64 life)
{
	struct slot_head *s = slot_head(u, slot);

	if (READ_ONCE(s->life) != life)
		return false;
	if (life == u->life || !reap_one(u, slot))
		return READ_ONCE(s->life) == life;
	board_ring_all(u);
	return false;
}

int board_reap(struct user *u)
{
	int n = 0;
	u32 i;

	for (i = 0; i < NPUEMU_MAX_SLOTS; i++)
		n += reap_one(u, i);
	if (n)
		board_ring_all(u);
	return n;
}

void board_ring_all(struct user *u)
{
	u32 i;

	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		struct slot_head *s = slot_head(u, i);

		if (LIFE_STATE(READ_ONCE(s->life)) == SLOT_LIVE) {
			bell_ring_engine(s);
			bell_ring(s);
		}
	}
}

int board_check(struct npuemu *ctx)
{
	struct user *u = user_of(ctx);

	if (likely(!READ_ONCE(u->head->dead) && READ_ONCE(u->head->magic) == BOARD_MAGIC &&
		   (ctx->observer || READ_ONCE(u->slot->life) == u->life)))
		return 0;
	WRITE_ONCE(ctx->broken, -EUCLEAN);
	return -EUCLEAN;
}

/* Stop everybody on a board that still looks like one. */
static void board_stop(struct user *u)
{
	u32 i;

	WRITE_ONCE(u->head->dead, 1);
	npuemu_fetch_add(&u->head->faults.gen, 2);
	for (i = 0; i < NPUEMU_MAX_SLOTS; i++) {
		bell_ring_engine(slot_head(u, i));
		bell_ring(slot_head(u, i));
	}
}

int board_reset(const char *board)
{
	struct user u = { .board_fd = -1 };
	struct stat st;
	int err;

	err = board_path(board, u.path, sizeof(u.path));
	if (err)
		return err;
	u.board_fd = open(u.path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (u.board_fd < 0 && errno == ENOENT)
		return npuemu_fail(-ENOENT, "there is no board %s", u.path);
	if (u.board_fd >= 0 && !fstat(u.board_fd, &st) && st.st_uid == geteuid() &&
	    st.st_size == (off_t)BOARD_BYTES) {
		u.map = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, u.board_fd, 0);
		if (u.map != MAP_FAILED) {
			u.head = (void *)u.map;
			board_stop(&u);
		} else {
			u.map = NULL;
		}
	}
	if (unlink(u.path) && errno != ENOENT)
		err = npuemu_fail(-errno, "cannot remove %s: %s", u.path, strerror(errno));
	board_unmap(&u);
	return err;
}
