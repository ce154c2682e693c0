/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What the chip needs of the place it runs in: types, ordered loads and
 * stores, atomics, copying, and leave to use the FPU.  The only file of the
 * engine that includes anything from a kernel or a C library.
 */
#ifndef NPUEMU_ENGINE_PORT_H
#define NPUEMU_ENGINE_PORT_H

#ifdef __KERNEL__

#include <linux/atomic.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/types.h>
#include <linux/math64.h>
#include <asm/barrier.h>
#include <asm/fpu/api.h>
#include <asm/processor.h>

#define npuemu_fpu_begin()	kernel_fpu_begin()
#define npuemu_fpu_end()	kernel_fpu_end()
#define npuemu_relax()		cpu_relax()
/* Around a lock that others spin for: its holder must not be scheduled away. */
#define npuemu_spin_enter()	preempt_disable()
#define npuemu_spin_exit()	preempt_enable()
/* Within something long: owner words may be held, locks may not. */
#define npuemu_breathe()	cond_resched()

#else /* the user-space host */

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;

#define likely(x)	__builtin_expect(!!(x), 1)
#define unlikely(x)	__builtin_expect(!!(x), 0)
#define noinline	__attribute__((__noinline__))
#ifndef __cold
#define __cold		__attribute__((__cold__))
#endif
#ifndef __printf
#define __printf(a, b)	__attribute__((__format__(__printf__, a, b)))
#endif
#ifndef __aligned
#define __aligned(n)	__attribute__((__aligned__(n)))
#endif
#define fallthrough	__attribute__((__fallthrough__))
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))

/* A shared word is read or written once, whole. */
#define READ_ONCE(x)		__atomic_load_n(&(x), __ATOMIC_RELAXED)
#define WRITE_ONCE(x, v)	__atomic_store_n(&(x), (v), __ATOMIC_RELAXED)
#define smp_load_acquire(p)	__atomic_load_n((p), __ATOMIC_ACQUIRE)
#define smp_store_release(p, v)	__atomic_store_n((p), (v), __ATOMIC_RELEASE)
#if defined(__x86_64__)
/* Cheaper than mfence, and unlike a C11 fence it means something to TSan. */
#define smp_mb()		__asm__ __volatile__("lock; addl $0,-4(%%rsp)" ::: "memory", "cc")
#define smp_mb__after_atomic()	__asm__ __volatile__("" ::: "memory")
#else
#define smp_mb()		__atomic_thread_fence(__ATOMIC_SEQ_CST)
#define smp_mb__after_atomic()	smp_mb()
#endif
#define xchg(p, v)		__atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

#define npuemu_fpu_begin()	do { } while (0)
#define npuemu_fpu_end()	do { } while (0)
#define npuemu_spin_enter()	do { } while (0)
#define npuemu_spin_exit()	do { } while (0)
#define npuemu_breathe()	do { } while (0)
#if defined(__x86_64__) || defined(__i386__)
#define npuemu_relax()		__builtin_ia32_pause()
#else
#define npuemu_relax()		__asm__ __volatile__("yield" ::: "memory")
#endif

#endif /* __KERNEL__ */

/* True when the previous value equalled @old and @new was stored. */
#define npuemu_cas(p, old, new)						\
	__extension__ ({						\
		__typeof__(*(p)) __o = (old);				\
		__atomic_compare_exchange_n((p), &__o, (new), false,	\
					    __ATOMIC_SEQ_CST,		\
					    __ATOMIC_SEQ_CST);		\
	})
#define npuemu_fetch_add(p, v)	__atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define npuemu_fetch_or(p, v)	__atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define npuemu_fetch_and(p, v)	__atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)

#endif
