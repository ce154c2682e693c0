// SPDX-License-Identifier: MIT
/*
 * Tables of names that processes give out.  The driver has no place for them, so they
 * lie in a file of the user's in shared memory, a part for each slot of the board, and
 * each process writes its own.  What protects what: the file is the user's alone, and
 * so are the buffers that its entries name, which the driver checks; an entry of a
 * process that is gone names buffers that the driver does not know any more.
 */
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "kernel.h"

#define MAGIC		0x5350584545504eull	/* "NPEEXPS" */
#define PART		(NPUEMU_EXPORT_BYTES + 4096ull)
#define FILE_BYTES	(4096 + NPUEMU_MAX_SLOTS * PART)

struct file_head {
	u64 magic;
	u64 board_id;		/* the parts are of another life of the module otherwise */
};

struct part_head {
	u32 bytes;		/* of the table that there are */
};

static struct part_head *part(const struct npuemu_kernel *k, u32 slot)
{
	return (void *)(k->exports + 4096 + slot * PART);
}

/* Empty it, if it is not of this board.  The lock is the file's. */
static int file_begin(struct npuemu_kernel *k)
{
	struct file_head h = { 0 };
	int err = 0;

	if (flock(k->exports_fd, LOCK_EX))
		return -errno;
	if (pread(k->exports_fd, &h, sizeof(h), 0) != sizeof(h) || h.magic != MAGIC ||
	    h.board_id != k->about.board_id) {
		h.magic = MAGIC;
		h.board_id = k->about.board_id;
		/* a hole: who has it mapped still finds zeroes there */
		if (ftruncate(k->exports_fd, FILE_BYTES) ||
		    fallocate(k->exports_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, FILE_BYTES) ||
		    pwrite(k->exports_fd, &h, sizeof(h), 0) != sizeof(h))
			err = -errno;
	}
	flock(k->exports_fd, LOCK_UN);
	return err;
}

static int file_open(struct npuemu_kernel *k, char *path, size_t room)
{
	struct stat st;

	snprintf(path, room, "/dev/shm/npuemu-exports-%u", (unsigned int)geteuid());
	k->exports_fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (k->exports_fd < 0)
		return -errno;
	if (fstat(k->exports_fd, &st))
		return -errno;
	return !S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 077 ? -EACCES : file_begin(k);
}

/* k->lock held */
static int exports_open(struct npuemu_kernel *k)
{
	char path[64];
	void *p;
	int err;

	if (k->exports)
		return 0;
	err = file_open(k, path, sizeof(path));
	p = err ? MAP_FAILED : mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
				    k->exports_fd, 0);
	if (!err && p == MAP_FAILED)
		err = -errno;
	if (err) {
		if (k->exports_fd >= 0)
			close(k->exports_fd);
		k->exports_fd = -1;
		return npuemu_fail(err, "%s, by which processes find each other's memory, cannot be used: %s%s", path,
				   strerror(-err), err == -EACCES ? " (it has to be this user's alone)" : "");
	}
	madvise(p, FILE_BYTES, MADV_DONTFORK);
	k->exports = p;
	return 0;
}

/* Zeroes: also what an earlier process in this slot left. */
static void part_clear(struct npuemu_kernel *k)
{
	smp_store_release(&part(k, k->about.slot)->bytes, 0);
	fallocate(k->exports_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		  (off_t)(4096 + k->about.slot * PART + 4096), NPUEMU_EXPORT_BYTES);
}

/* Its pages, now: -ENOSPC rather than SIGBUS. */
static int part_back(struct npuemu_kernel *k, u32 bytes)
{
	int err;

	do {
		err = posix_fallocate(k->exports_fd, (off_t)(4096 + k->about.slot * PART), 4096 + bytes);
	} while (err == EINTR);
	return err ? npuemu_fail(-err, "no room for a table of %u bytes in /dev/shm: %s", bytes, strerror(err)) : 0;
}

static int part_grow(struct npuemu_kernel *k, u32 bytes)
{
	int err = 0;

	if (!k->exports_bytes) {
		err = part_back(k, 0);
		if (!err)
			part_clear(k);
	}
	if (!err)
		err = part_back(k, bytes);
	if (err)
		return err;
	k->exports_bytes = bytes;
	smp_store_release(&part(k, k->about.slot)->bytes, bytes);
	return 0;
}

int npuemu_k_exports_own(struct npuemu *ctx, u32 bytes, void **table)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	int err;

	pthread_mutex_lock(&k->lock);
	err = exports_open(k);
	if (!err && bytes > k->exports_bytes)
		err = part_grow(k, bytes);
	if (!err)
		*table = (u8 *)part(k, k->about.slot) + 4096;
	pthread_mutex_unlock(&k->lock);
	return err;
}

int npuemu_k_exports_of(struct npuemu *ctx, u32 slot, const void **table, u32 *bytes)
{
	struct npuemu_kernel *k = npuemu_kernel_of(ctx);
	struct part_head *h;
	int err;
	u32 n;

	pthread_mutex_lock(&k->lock);
	err = exports_open(k);
	pthread_mutex_unlock(&k->lock);
	if (err)
		return err;
	h = part(k, slot);
	n = smp_load_acquire(&h->bytes);
	*bytes = n < NPUEMU_EXPORT_BYTES ? n : NPUEMU_EXPORT_BYTES;
	*table = (u8 *)h + 4096;
	return 0;
}

void npuemu_k_exports_close(struct npuemu_kernel *k)
{
	if (!k->exports)
		return;
	if (k->exports_bytes && READ_ONCE(k->base.broken) != -EPERM)
		part_clear(k);
	munmap(k->exports, FILE_BYTES);
	close(k->exports_fd);
	k->exports = NULL;
	k->exports_fd = -1;
}
