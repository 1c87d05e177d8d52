/*
 * base/shown_text.h: texts of a user or of a file on their way to a terminal.
 *
 * Control characters can move the cursor and rewrite what stands there, and the characters that
 * turn the direction of writing (U+202A to U+202E, U+2066 to U+2069) make a name look like another
 * one. Neither is shown: each is replaced by '?'. "a\033[2Jb" is shown as "a?[2Jb".
 */
#ifndef FSDPSIM_BASE_SHOWN_TEXT_H
#define FSDPSIM_BASE_SHOWN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

/* Control characters (C0 but the tab, DEL, C1) and changes of direction. */
bool is_hidden_character(uint32_t code);
/* Bytes of the hidden character at `at`, of which `left` bytes may be read; 0: it may be shown. */
size_t hidden_length(const char *at, size_t left);
/* The text as it may be shown: itself, or a copy in the arena. */
const char *text_shown(struct arena *arena, const char *text);

#endif
