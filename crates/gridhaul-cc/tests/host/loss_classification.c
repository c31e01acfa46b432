/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Reads connections from standard input, one line each: α and β in thousandths, the length of the delay
 * buffer, then pairs of a reported delay and a round-trip time, in microseconds. Writes the classification of a
 * subsequent loss, and the estimated offset between the clocks.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../bpf/loss_classification.h"

int main(void)
{
    static const char *const names[] = {"none", "error", "congestion", "unclassified"};
    static char line[1 << 16];
    while (fgets(line, sizeof(line), stdin)) {
        struct connection connection = {0};
        char *rest = line;
        struct settings settings = {0};
        settings.alpha_permille = strtoul(rest, &rest, 10);
        settings.beta_permille = strtoul(rest, &rest, 10);
        settings.list_length = strtoul(rest, &rest, 10);
        while (*rest && *rest != '\n') {
            u32 reported = strtoul(rest, &rest, 10);
            add_delay(&connection, &settings, reported, strtoul(rest, &rest, 10));
        }
        enum cause cause = classify_loss(&connection, &settings);
        printf("%s %u\n", names[cause], offset(&connection) + connection.base);
    }
    return 0;
}
