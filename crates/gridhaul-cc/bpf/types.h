/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Types and helper functions without kernel dependencies.
 */
#pragma once

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;

#define unused __attribute__((unused))
#define inlined static inline __attribute__((always_inline))

inlined u32 larger(u32 a, u32 b) { return a > b ? a : b; }
inlined u32 smaller(u32 a, u32 b) { return a < b ? a : b; }
