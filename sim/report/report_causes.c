/* report/report_causes.c: see report_causes.h. */
#include "report/report_causes.h"

#include <inttypes.h>

#include "report/report_page_private.h"

static void write_cause(const struct validate_cause *cause, bool is_markdown, FILE *file)
{
    const char *start = is_markdown ? "* " : "  ";
    if (cause->text == NULL)
        fprintf(file, "%snot known", start);
    else
        fprintf(file, "%s%s%s", start, cause->is_known ? "" : "not known; tried: ", cause->text);
    double low = cause->rows[0]->step_s.error, high = low;
    for (int32_t k = 0; k < cause->count; k++) {
        const double error = cause->rows[k]->step_s.error;
        low = error < low ? error : low;
        high = error > high ? error : high;
        fprintf(file, "%s%s", k > 0 ? ", " : ": ", cause->rows[k]->label);
    }
    if (cause->count == 1)
        fprintf(file, " (%+.1f %%)\n", 100.0 * low);
    else
        fprintf(file, " (%+.1f to %+.1f %%)\n", 100.0 * low, 100.0 * high);
}

void report_causes(const struct validate_causes *causes, bool is_markdown, FILE *file)
{
    const struct page page = {.file = file, .is_markdown = is_markdown};
    if (causes->far == 0)
        return;
    page_heading(&page, "What stands behind the rows that are far off");
    fprintf(file,
            "%" PRId32 " scored step times are off by more than %.0f %%; of %" PRId32
            " of them no cause is known.\n\n",
            causes->far, 100.0 * cause_far, causes->unknown);
    for (int32_t k = 0; k < causes->count; k++)
        write_cause(&causes->items[k], is_markdown, file);
    fputc('\n', file);
}
