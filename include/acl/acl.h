/* SPDX-License-Identifier: MIT */
/*
 * acl.h - the whole interface by one name: runtime, operators, models.
 *
 * Follows the public ACL runtime interface, version 1.17.
 */
#ifndef ACL_ACL_H
#define ACL_ACL_H

#include "acl_rt.h"
#include "acl_op.h"
#include "acl_mdl.h"

#endif
