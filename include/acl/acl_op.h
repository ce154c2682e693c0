/* SPDX-License-Identifier: MIT */
/*
 * acl_op.h - stands where programs include the operator interface, which the
 * runtime does not have.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_OP_H
#define ACL_ACL_OP_H

#include "acl_base.h"
#include "acl_rt.h"

#endif
