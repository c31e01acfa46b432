/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Reads senders from standard input, a line each, in segments: window and threshold at the last
 * acknowledgement, the window before the last loss, window and threshold now. Writes which of the latter two
 * is wrong.
 */
#include <stdio.h>

#include "../../bpf/known.h"

int main(void)
{
    struct known known;
    u32 before, window, threshold;
    while (scanf("%u %u %u %u %u", &known.window, &known.threshold, &before, &window, &threshold) == 5)
        printf("%s%s\n", window_is_wrong(&known, window, before) ? "window " : "",
               threshold_is_wrong(&known, threshold, before) ? "threshold" : "");
    return 0;
}
