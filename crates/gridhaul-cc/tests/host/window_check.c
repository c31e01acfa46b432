/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Reads senders from standard input, one line each: window and threshold at the last acknowledgement and the
 * last notified state, the window before the last loss, and window, threshold and state now. Writes which
 * of window and threshold is wrong. Windows and thresholds are in segments.
 */
#include <stdio.h>

#include "../../bpf/window_check.h"

int main(void)
{
    struct observed_window observed;
    u32 notified_state, before, window, threshold, state;
    while (scanf("%u %u %u %u %u %u %u", &observed.window, &observed.threshold, &notified_state, &before, &window, &threshold,
                 &state) == 7) {
        observed.notified_state = notified_state;
        printf("%s%s\n", window_is_wrong(&observed, window, before, state) ? "window " : "",
               threshold_is_wrong(&observed, threshold, before, state) ? "threshold" : "");
    }
    return 0;
}
