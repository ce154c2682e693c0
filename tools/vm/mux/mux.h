/* SPDX-License-Identifier: MIT */
/*
 * What npuemu-vm-host and npuemu-vm-guest say to each other: frames over one
 * byte stream (a virtio port, or a serial line where there is none).  One
 * stream, so that the exit code cannot overtake the output; credits, so that
 * neither side ever has to hold more than a window of stdin.
 */
#ifndef NPUEMU_VM_MUX_H
#define NPUEMU_VM_MUX_H

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

/* The guest's first words.  What came before them is noise on the line. */
#define NPUEMU_VM_HELLO "\nnpuemu-vm guest 1\n"

/* The most one frame carries. */
#define NPUEMU_VM_CHUNK 32768u

enum npuemu_vm_type {
	NPUEMU_VM_STDIN = 1,	/* to the guest: bytes; none: end of file */
	NPUEMU_VM_STDOUT,	/* to the host: bytes */
	NPUEMU_VM_STDERR,	/* to the host: bytes */
	NPUEMU_VM_CREDIT,	/* to the host: value more bytes of stdin may come */
	NPUEMU_VM_EXIT,		/* to the host: value is COMMAND's exit code */
	NPUEMU_VM_BYE,		/* to the guest: all has arrived, go down */
	NPUEMU_VM_DUMP,		/* to the guest: log where it hangs */
	NPUEMU_VM_DUMPED,	/* to the host: that is done */
};

/* Both ends are x86: no byte order to agree on. */
struct npuemu_vm_frame {
	uint8_t type;
	uint8_t pad[3];
	uint32_t value;		/* bytes that follow, or the number the type is about */
};

static inline int npuemu_vm_has_data(const struct npuemu_vm_frame *frame)
{
	return frame->type <= NPUEMU_VM_STDERR;
}

/* Everything, or -1. */
static inline int npuemu_vm_write(int fd, const void *data, size_t len)
{
	const char *at = data;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

/* One write for head and data: a half frame must not wait for a second system call. */
static inline int npuemu_vm_send(int fd, enum npuemu_vm_type type, uint32_t value,
				 const void *data)
{
	char out[sizeof(struct npuemu_vm_frame) + NPUEMU_VM_CHUNK];
	struct npuemu_vm_frame frame = { .type = (uint8_t)type, .value = value };
	size_t len = npuemu_vm_has_data(&frame) ? value : 0;

	memcpy(out, &frame, sizeof(frame));
	if (len)
		memcpy(out + sizeof(frame), data, len);
	return npuemu_vm_write(fd, out, sizeof(frame) + len);
}

#endif
