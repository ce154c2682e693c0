/* SPDX-License-Identifier: MIT */
/*
 * acl_dvpp.h - for programs that include it and use nothing of it.
 *
 * DVPP, the image and video units, is not emulated: no acldvpp function is declared
 * here, so a program that calls one is told by its compiler, not when it runs.
 */
#ifndef ACL_OPS_ACL_DVPP_H
#define ACL_OPS_ACL_DVPP_H

#include "../acl.h"

#endif
