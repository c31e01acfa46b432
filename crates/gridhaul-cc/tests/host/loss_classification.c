/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
 *
 * Reads connections from standard input, a line each: α and β in thousandths, the length of the list, then
 * pairs of a reported delay and a round trip, in microseconds. Writes what a loss behind them is judged to
 * be, and the offset between the clocks that was taken out.
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
        settings.kept = strtoul(rest, &rest, 10);
        while (*rest && *rest != '\n') {
            u32 reported = strtoul(rest, &rest, 10);
            take_delay(&connection, &settings, reported, strtoul(rest, &rest, 10));
        }
        enum cause cause = judge(&connection, &settings);
        printf("%s %u\n", names[cause], offset(&connection) + connection.base);
    }
    return 0;
}
