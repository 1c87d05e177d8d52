/*
 * report/report_scatter.h: predicted against measured step times as an SVG picture.
 *
 * Both axes are logarithmic, over whole decades that hold all points: x measured, y predicted. The
 * diagonal is a perfect prediction, the band about it ±15 %. Rows in the scores only; a colour and
 * a shape a regime, so that neither is needed alone; the rows farthest from the diagonal are named
 * where there is room. Each point says its run, model and both times when pointed at.
 *
 * The file stands alone: no script, no font, no link; light and dark by the reader's preference;
 * a title and a description for those who do not see it. Same rows, same bytes.
 */
#ifndef FSDPSIM_REPORT_REPORT_SCATTER_H
#define FSDPSIM_REPORT_REPORT_SCATTER_H

#include <stdio.h>

#include "study/validate.h"

void report_scatter_svg(const struct validation *validation, FILE *file);

#endif
