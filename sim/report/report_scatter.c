/* report/report_scatter.c: see report_scatter.h. */
#include "report/report_scatter.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/units.h"

enum {
    PICTURE_WIDTH = 880,
    PICTURE_HEIGHT = 660,
    PLOT_LEFT = 80,
    PLOT_TOP = 40,
    PLOT_SIDE = 540,
    LEGEND_LEFT = 640,
    LABELS_MAX = 16,
    LABEL_HEIGHT = 12,
    LABEL_LETTER = 7, /* width of one, about */
    STYLE_COUNT = 9   /* regimes beyond share the last one */
};
static const double band = 0.15;

struct box {
    double left, top, right, bottom;
};

struct plot {
    FILE *file;
    double low, high; /* log10 of both axes' ends */
    int64_t count;
    struct box labels[LABELS_MAX];
    int32_t label_count;
};

/* Okabe and Ito's colours, which those who are colour-blind can tell apart. */
static const char *const light_colours[STYLE_COUNT] = {"#0072b2", "#d55e00", "#009e73",
                                                       "#cc79a7", "#b8860b", "#56b4e9",
                                                       "#7a5195", "#a05a2c", "#555555"};
static const char *const dark_colours[STYLE_COUNT] = {"#5ab0e6", "#ff8c42", "#3fd0a4",
                                                      "#ee9fc8", "#f0c844", "#9ad7ff",
                                                      "#b89be0", "#d9a06b", "#bbbbbb"};

static bool is_shown(const struct validate_row *row)
{
    return row->reason == NULL && row->is_scored && !isnan(row->step_s.error);
}

static double x_of(const struct plot *plot, double seconds)
{
    return PLOT_LEFT + PLOT_SIDE * (log10(seconds) - plot->low) / (plot->high - plot->low);
}

static double y_of(const struct plot *plot, double seconds)
{
    return PLOT_TOP + PLOT_SIDE -
           PLOT_SIDE * (log10(seconds) - plot->low) / (plot->high - plot->low);
}

static void write_escaped(FILE *file, const char *text)
{
    for (; *text != '\0'; text++)
        switch (*text) {
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '&':
            fputs("&amp;", file);
            break;
        default: /* other control characters than these are no XML */
            fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
}

static void find_range(const struct validation *validation, struct plot *plot)
{
    double least = (double)INFINITY, most = 0.0;
    for (int32_t k = 0; k < validation->row_count; k++) {
        const struct validate_row *row = &validation->rows[k];
        if (!is_shown(row))
            continue;
        plot->count++;
        least = fmin(least, fmin(row->step_s.measured, row->step_s.predicted));
        most = fmax(most, fmax(row->step_s.measured, row->step_s.predicted));
    }
    plot->low = plot->count > 0 ? floor(log10(least)) : 0.0;
    plot->high = plot->count > 0 ? ceil(log10(most)) : 1.0;
    if (plot->high <= plot->low)
        plot->high = plot->low + 1.0;
}

/* ---- frame -------------------------------------------------------------------------------- */

static void write_style(FILE *file)
{
    fputs("<style>\n"
          "text{font-family:system-ui,sans-serif;font-size:12px;fill:#222}\n"
          ".head{font-size:15px;font-weight:600}.small{font-size:11px}\n"
          ".back{fill:#fff}.grid{stroke:#ddd;stroke-width:1}.frame{stroke:#888;fill:none}\n"
          ".band{fill:#888;fill-opacity:.18}.same{stroke:#666;stroke-dasharray:5 4}\n"
          ".dot{fill-opacity:.7;stroke-width:.6;stroke:#fff;stroke-opacity:.7}\n",
          file);
    for (int k = 0; k < STYLE_COUNT; k++)
        fprintf(file, ".c%d{fill:%s}", k, light_colours[k]);
    fputs("\n@media (prefers-color-scheme:dark){\n"
          "text{fill:#e6e6e6}.back{fill:#0d1117}.grid{stroke:#30363d}.frame{stroke:#8b949e}\n"
          ".band{fill:#8b949e;fill-opacity:.22}.same{stroke:#aaa}.dot{stroke:#0d1117}\n",
          file);
    for (int k = 0; k < STYLE_COUNT; k++)
        fprintf(file, ".c%d{fill:%s}", k, dark_colours[k]);
    fputs("\n}\n</style>\n", file);
}

static void write_head(const struct plot *plot, const struct validation *validation)
{
    const struct validate_score *score = &validation->headline.step_time;
    FILE *file = plot->file;
    fprintf(file,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
            "height=\"%d\" role=\"img\" aria-labelledby=\"title desc\">\n"
            "<title id=\"title\">Predicted against measured step time of %" PRId64
            " published training runs</title>\n",
            PICTURE_WIDTH, PICTURE_HEIGHT, PICTURE_WIDTH, PICTURE_HEIGHT, plot->count);
    fputs("<desc id=\"desc\">Logarithmic axes, measured seconds from left to right, predicted "
          "seconds upwards.",
          file);
    if (score->n > 0)
        fprintf(file,
                " The median error is %.1f %%; %.0f %% of the points lie in the band of %.0f %% on "
                "either side of the diagonal.",
                100.0 * score->median_abs_err, 100.0 * score->within_15pct, 100.0 * band);
    fputs("</desc>\n", file);
    write_style(file);
    fprintf(file, "<rect class=\"back\" width=\"%d\" height=\"%d\"/>\n", PICTURE_WIDTH,
            PICTURE_HEIGHT);
    fprintf(file,
            "<text class=\"head\" x=\"%d\" y=\"24\">Step time, predicted against "
            "measured</text>\n",
            PLOT_LEFT);
}

static void write_axes(const struct plot *plot)
{
    FILE *file = plot->file;
    const double bottom = PLOT_TOP + PLOT_SIDE, right = PLOT_LEFT + PLOT_SIDE;
    char text[32];
    for (int decade = (int)plot->low; decade <= (int)plot->high; decade++) {
        const double seconds = pow(10.0, decade);
        const double x = x_of(plot, seconds), y = y_of(plot, seconds);
        format_quantity(text, sizeof(text), seconds, DIM_TIME);
        fprintf(file,
                "<path class=\"grid\" d=\"M%.1f %dV%.1fM%d %.1fH%.1f\"/>\n"
                "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">%s</text>\n"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                x, PLOT_TOP, bottom, PLOT_LEFT, y, right, x, bottom + 18, text, PLOT_LEFT - 8,
                y + 4, text);
    }
    fprintf(file,
            "<rect class=\"frame\" x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/>\n"
            "<text x=\"%d\" y=\"%.1f\" text-anchor=\"middle\">measured</text>\n"
            "<text x=\"20\" y=\"%d\" text-anchor=\"middle\" transform=\"rotate(-90 20 %d)\">"
            "predicted</text>\n",
            PLOT_LEFT, PLOT_TOP, PLOT_SIDE, PLOT_SIDE, PLOT_LEFT + PLOT_SIDE / 2, bottom + 40,
            PLOT_TOP + PLOT_SIDE / 2, PLOT_TOP + PLOT_SIDE / 2);
}

/* Cut by the frame: on logarithmic axes the band is a stripe of one width. */
static void write_band(const struct plot *plot)
{
    const double unit = PLOT_SIDE / (plot->high - plot->low);
    const double above = unit * log10(1.0 + band), below = -unit * log10(1.0 - band);
    const double left = PLOT_LEFT, top = PLOT_TOP, right = left + PLOT_SIDE;
    const double bottom = top + PLOT_SIDE;
    fprintf(plot->file,
            "<path class=\"band\" d=\"M%.1f %.1fV%.1fL%.1f %.1fH%.1fV%.1fL%.1f %.1fZ\"/>\n"
            "<path class=\"same\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n",
            left, bottom, bottom - above, right - above, top, right, top + below, left + below,
            bottom, left, bottom, right, top);
}

/* ---- points ------------------------------------------------------------------------------- */

static int style_of(const struct validation *validation, const char *regime)
{
    for (int32_t k = 0; k < validation->by_regime.count; k++)
        if (strcmp(validation->by_regime.items[k].name, regime) == 0)
            return k < STYLE_COUNT ? k : STYLE_COUNT - 1;
    return STYLE_COUNT - 1;
}

/* Opens the mark; write_mark_end closes it. */
static void write_mark(FILE *file, int style, double x, double y)
{
    fprintf(file, "<path class=\"dot c%d\" d=\"", style);
    switch (style % 4) {
    case 0: /* disc */
        fprintf(file, "M%.1f %.1fa4 4 0 1 0 8 0a4 4 0 1 0 -8 0z", x - 4, y);
        break;
    case 1: /* square */
        fprintf(file, "M%.1f %.1fh7v7h-7z", x - 3.5, y - 3.5);
        break;
    case 2: /* triangle */
        fprintf(file, "M%.1f %.1fl4.6 8h-9.2z", x, y - 5);
        break;
    default: /* lozenge */
        fprintf(file, "M%.1f %.1fl5 5l-5 5l-5 -5z", x, y - 5);
    }
    fputs("\">", file);
}

static void write_point(const struct plot *plot, const struct validation *validation,
                        const struct validate_row *row)
{
    char measured[32], predicted[32];
    FILE *file = plot->file;
    write_mark(file, style_of(validation, row->regime), x_of(plot, row->step_s.measured),
               y_of(plot, row->step_s.predicted));
    fputs("<title>", file);
    write_escaped(file, row->label);
    fputs(", ", file);
    write_escaped(file, row->model);
    fprintf(file, ", %" PRId64 " x ", row->n_gpus);
    write_escaped(file, row->gpu);
    fprintf(file, ": measured %s, predicted %s (%+.1f %%)</title></path>\n",
            format_seconds(measured, sizeof(measured), row->step_s.measured),
            format_seconds(predicted, sizeof(predicted), row->step_s.predicted),
            100.0 * row->step_s.error);
}

static bool is_free(const struct plot *plot, const struct box *box)
{
    if (box->right > LEGEND_LEFT - 8)
        return false;
    for (int32_t k = 0; k < plot->label_count; k++) {
        const struct box *other = &plot->labels[k];
        if (box->left < other->right && other->left < box->right && box->top < other->bottom &&
            other->top < box->bottom)
            return false;
    }
    return true;
}

/* Beside the point away from the diagonal, where no other name stands. */
static void write_label(struct plot *plot, const struct validate_row *row)
{
    const double width = (double)(LABEL_LETTER * strlen(row->label));
    const double x = x_of(plot, row->step_s.measured), y = y_of(plot, row->step_s.predicted);
    const bool is_slow = row->step_s.error > 0;
    const double left = is_slow ? x - 8 - width : x + 8;
    const struct box box = {left, y - LABEL_HEIGHT / 2.0, left + width, y + LABEL_HEIGHT / 2.0};
    if (plot->label_count == LABELS_MAX || row->label[0] == '\0' || !is_free(plot, &box))
        return;
    plot->labels[plot->label_count++] = box;
    fprintf(plot->file, "<text class=\"small\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">",
            is_slow ? x - 8 : x + 8, y + 4, is_slow ? "end" : "start");
    write_escaped(plot->file, row->label);
    fputs("</text>\n", plot->file);
}

/* "multi node, network assumed, bandwidth-bound" is two lines beside a mark. */
static void write_legend(const struct plot *plot, const struct validation *validation)
{
    double y = PLOT_TOP + 8;
    FILE *file = plot->file;
    for (int32_t k = 0; k < validation->by_regime.count; k++) {
        const struct validate_group *group = &validation->by_regime.items[k];
        const struct validate_score *score = &group->scores.step_time;
        if (score->n == 0)
            continue;
        const char *comma = strrchr(group->name, ',');
        const size_t length = comma != NULL ? (size_t)(comma - group->name) : strlen(group->name);
        write_mark(file, style_of(validation, group->name), LEGEND_LEFT, y);
        fprintf(file, "</path>\n<text x=\"%d\" y=\"%.1f\">%.*s</text>\n", LEGEND_LEFT + 12, y + 4,
                (int)length, group->name);
        fprintf(file,
                "<text class=\"small\" x=\"%d\" y=\"%.1f\">%s%sn %" PRId64
                ", median %.1f %%</text>\n",
                LEGEND_LEFT + 12, y + 18, comma != NULL ? comma + 2 : "", comma != NULL ? ": " : "",
                score->n, 100.0 * score->median_abs_err);
        y += 42;
    }
    fprintf(file,
            "<rect class=\"band\" x=\"%d\" y=\"%.1f\" width=\"14\" height=\"10\"/>\n"
            "<text x=\"%d\" y=\"%.1f\">within %.0f %%</text>\n",
            LEGEND_LEFT - 6, y - 5, LEGEND_LEFT + 12, y + 4, 100.0 * band);
}

void report_scatter_svg(const struct validation *validation, FILE *file)
{
    struct plot plot = {.file = file};
    find_range(validation, &plot);
    write_head(&plot, validation);
    write_axes(&plot);
    write_band(&plot);
    for (int32_t k = validation->row_count - 1; k >= 0; k--)
        if (is_shown(&validation->rows[k]))
            write_point(&plot, validation, &validation->rows[k]);
    for (int32_t k = 0; k < validation->row_count; k++) /* the worst first */
        if (is_shown(&validation->rows[k]) && fabs(validation->rows[k].step_s.error) > band)
            write_label(&plot, &validation->rows[k]);
    write_legend(&plot, validation);
    fputs("</svg>\n", file);
}
