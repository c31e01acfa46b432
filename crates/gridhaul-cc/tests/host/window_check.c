/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Reads senders from standard input, a line each: window and threshold at the last acknowledgement and the
 * state that was told last, the window before the last loss, and window, threshold and state now. Writes which
 * of window and threshold is wrong. Windows and thresholds in segments.
 */
#include <stdio.h>

#include "../../bpf/window_check.h"

int main(void)
{
    struct known known;
    u32 told, before, window, threshold, state;
    while (scanf("%u %u %u %u %u %u %u", &known.window, &known.threshold, &told, &before, &window, &threshold,
                 &state) == 7) {
        known.told = told;
        printf("%s%s\n", window_is_wrong(&known, window, before, state) ? "window " : "",
               threshold_is_wrong(&known, threshold, before, state) ? "threshold" : "");
    }
    return 0;
}
