/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Definitions that only the BPF target supports: fields that the loader finds by name, and kernel helper
 * functions.
 */
#pragma once

#include "types.h"

#define FIELDS_BY_NAME                                                                             \
    _Pragma("clang attribute push(__attribute__((preserve_access_index)), apply_to = record)")
#define FIELDS_END _Pragma("clang attribute pop")

/* A bit field within a byte at a relocated offset: the byte is shifted to both ends of a 64-bit word.
 * The constants select the relocations for the byte offset and the two shifts. */
#define BYTE_OFFSET 0
#define SHIFT_LEFT 4
#define SHIFT_RIGHT 5
#define bit_of(pointer, field)                                                                     \
    ({                                                                                             \
        u32 _at = __builtin_preserve_field_info((pointer)->field, BYTE_OFFSET);                    \
        u64 _byte = *((const volatile u8 *)(pointer) + _at);                                       \
        _byte <<= __builtin_preserve_field_info((pointer)->field, SHIFT_LEFT);                     \
        _byte >> __builtin_preserve_field_info((pointer)->field, SHIFT_RIGHT);                     \
    })

unused static void *(*const map_lookup)(void *map, const void *key) = (void *)1;
unused static u64 (*const clock_ns)(void) = (void *)5;
unused static void *(*const storage_of)(void *map, void *sk, void *initial, u64 flags) = (void *)107;
